"""Free memory goes back to the machine while a server runs."""

from __future__ import annotations

import asyncio
import platform
import re
from pathlib import Path

import pytest

from astrago_trainer.server import memory

MB = 1_000_000


def resident() -> int:
    text = Path("/proc/self/status").read_text()
    return int(re.findall(r"^VmRSS:\s+(\d+) kB$", text, re.MULTILINE)[0]) * 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps it")
def test_free_pieces_between_others_are_given_back(monkeypatch):
    monkeypatch.setattr(memory, "SECONDS", 0.0)
    pieces = [bytes(10_000) for _ in range(10_000)]  # too large for Python's own heap
    kept = pieces[::100]
    del pieces
    before = resident()

    async def until_given_back() -> None:
        task = asyncio.create_task(memory.give_back())
        async with asyncio.timeout(60):
            while resident() > before - 50 * MB:
                await asyncio.sleep(0)
        task.cancel()

    asyncio.run(until_given_back())
    assert len(kept) == 100
