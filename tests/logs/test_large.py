"""Logs that are larger than the memory we allow ourselves: 64 MB here, 1 GB in `make bench`."""

from __future__ import annotations

import subprocess
import sys

import pytest

MEGABYTES = 64
LINE = b"2026-11-15 12:00:00 rank 0 step %08d loss 0.123456 lr 0.001000 tokens/s 12345.6\n"
# Its memory is measured by the kernel: the largest resident size since the mark was reset.
MEASURED = """
import sys
from pathlib import Path
from astrago_trainer.logs import follow_sync, merged, search
from astrago_trainer.logs.reader import LogFile

def largest():
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])

def use(path):
    log = LogFile(path)
    last = log.line_count() - 1
    USES = {
        "download": lambda: sum(map(len, log.iter_bytes())),
        "tail": lambda: len(log.tail(1000).data),
        "all of the tail": lambda: len(log.tail(10**9).data),
        "tail lines": lambda: sum(1 for _ in log.tail_lines(10**9)),
        "line by number": lambda: sum(len(line.data) for line in log.lines(last, 1)),
        "all lines": lambda: sum(1 for _ in log.lines(0, 10**9)),
        "raw lines": lambda: sum(1 for _ in log.lines(0, 10**9, raw=True)),
        "search text": lambda: len(log.search("absent").hits),
        "search many": lambda: len(log.search("0", max_hits=10**9).hits),
        "search pattern": lambda: len(log.search("absent [0-9]+", budget=60).hits),
        "follow": lambda: sum(len(c.data) for c in follow_sync.follow(path, done=lambda: True)),
        "follow lines": lambda: sum(len(b) for b in follow_sync.follow_lines(path, done=lambda: True)),
        "merged": lambda: sum(1 for _ in merged.merged([merged.Source("a", "node", path)] * 2)),
    }
    return USES[sys.argv[1]]()

use(Path(sys.argv[2]))  # a small log, so that everything is imported
Path("/proc/self/clear_refs").write_text("5")
before = largest()
result = use(Path(sys.argv[3]))
print(result, largest() - before)
"""
USES = (
    "download", "tail", "all of the tail", "tail lines", "line by number", "all lines", "raw lines", "search text",
    "search many", "search pattern", "follow", "follow lines", "merged",
)  # fmt: skip


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A log of many lines, one of a single line, one of a progress bar, and a small one."""
    folder = tmp_path_factory.mktemp("large")
    many = b"".join(LINE % number for number in range((1 << 20) // len(LINE % 0)))
    for name, block in (
        ("lines", many),
        ("line", b"x" * (1 << 20)),
        ("bar", b"\r 50% of an epoch"[:16] * (1 << 16)),
    ):
        with (folder / name).open("wb") as file:
            for _ in range(MEGABYTES):
                file.write(block)
    (folder / "small").write_bytes(b"one\ntwo\n")
    return folder


BYTEWISE = (
    "download",
    "tail",
    "search many",
    "follow",
)  # to these a bar is no different from a line
CASES = [
    (use, kind)
    for use in USES
    for kind in ("lines", "line", "bar")
    if kind != "bar" or use not in BYTEWISE
]


@pytest.mark.parametrize(("use", "kind"), CASES)
def test_no_use_of_a_log_needs_memory_for_it(logs, use, kind):
    answer = subprocess.run(
        [sys.executable, "-c", MEASURED, use, logs / "small", logs / kind],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    result, kilobytes = map(int, answer.stdout.split())
    assert kilobytes < 16 << 10, f"{use} of {kind} needed {kilobytes} KiB more"
    size = (logs / kind).stat().st_size
    lines = (size // len(LINE % 0)) if kind == "lines" else 1
    expected = {
        "download": size,
        "tail lines": lines,
        "all lines": lines,
        "raw lines": lines,
        "follow": size,
        "merged": 2 * lines,
    }
    assert result == expected.get(use, result)
