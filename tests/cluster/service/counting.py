"""A training that counts, whether its log is whole, and how long faults last."""

from __future__ import annotations

import hashlib
import os
import time
from typing import Any

from tests.cluster.service.people import Person

DOWN_SECONDS = float(os.environ.get("ASTRAGO_DOWN_SECONDS", "15"))
"""For which parts of the cluster are away; `make campaign-cluster` takes a minute."""
ENOUGH = "/tmp/enough"
COUNTS = f"""
import hashlib, os, time
whole = hashlib.sha256()
for number in range(1, int(os.environ.get("LINES", 10**9)) + 1):
    line = f"line {{number}} " + "x" * (number % 97)
    whole.update(line.encode() + b"\\n")
    print(line, flush=True)
    time.sleep(0.01)
    if os.path.exists("{ENOUGH}"):
        break
print("sha256", whole.hexdigest(), flush=True)
"""
"""A hundred lines a second at most, `LINES` of them, or until there is a file ENOUGH; then their hash."""


def counting(lines: int) -> list[dict[str, Any]]:
    return [{"name": "LINES", "value": str(lines)}]


LONGER = round(DOWN_SECONDS * 100) + 100
"""Lines of a training that begins before a fault and ends after it."""


def assert_whole(person: Person, name: str, lines: int | None = None, rank: int = 0) -> None:
    """The store has what the training wrote, by content; so many lines, where they are known."""
    said = person.lines(name, rank)
    *counted, last = said[said.index(next(each for each in said if each.startswith("line"))) :]
    assert lines is None or len(counted) == lines
    whole = hashlib.sha256("".join(f"{each}\n" for each in counted).encode()).hexdigest()
    assert last == f"sha256 {whole}"


def answers_until(end: float, person: Person, name: str, *phases: str) -> None:
    """Until `end` (of time.monotonic) every question about a job is answered at once, and with one of these phases."""
    while time.monotonic() < end:
        before = time.monotonic()
        job = person.client.get(name)
        assert time.monotonic() - before < 1, "answered late"
        assert job.phase in phases, job
        time.sleep(0.05)
