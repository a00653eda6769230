"""Logs of 1 GB, and logs at 10,000 lines a second (performance goals D1, D2, I3), beside the tools everybody knows."""

from __future__ import annotations

import asyncio
import math
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.logs.contents import WRITER

from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.layout import create_log
from astrago_trainer.logs.reader import LogFile
from bench.measure import comparison, interleaved

ROUNDS = 15
BYTES = 1_000_000_000
_LINE = b"2026-11-15 12:00:00 rank 0 step %08d loss 0.123456 lr 0.001000 tokens/s 12345.6\n"
_SIZES = (10**6, 10**7, 10**8, BYTES)
_FOLLOWERS = 8
_LINES = 15_000
# What it does with the log goes to stdout; by how many kilobytes it grew at most, to stderr.
_OURS = """
import os, sys
from pathlib import Path
from astrago_trainer.logs import search
from astrago_trainer.logs.reader import LogFile

def largest():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])

use, log = sys.argv[1], LogFile(Path(sys.argv[2]))
Path("/proc/self/clear_refs").write_text("5")
before = largest()
if use == "download":
    for block in log.iter_bytes():
        os.write(1, block)
elif use == "line":
    print(*(line.text for line in log.lines(int(sys.argv[3]), 1)))
else:
    for hit in log.search(sys.argv[3], budget=120).hits:
        print(hit.line.text)
print(largest() - before, file=sys.stderr)
"""


def run() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        log = _make_log(Path(folder) / "node.log", BYTES)
        yield _download(log)
        yield _tail(log)
        yield from _growth(Path(folder), log)
        yield _line(log)
        last = f"{BYTES // len(_LINE % 0) - 1:08d}"
        yield _search(log, f"step {last} ", "text, 1 GB", ["grep", "-F"])
        yield _search(log, rf"step\s+{last}\b", "pattern, 1 GB", ["grep", "-P"])
        log.unlink()
        # Without a fixed beginning Python tries the pattern at every byte.
        small = _make_log(Path(folder) / "small.log", BYTES // 10)
        last = f"{BYTES // 10 // len(_LINE % 0) - 1:08d}"
        yield _search(small, f"(nan|{last}) ", "alternatives, 100 MB", ["grep", "-E"])
        small.unlink()
        yield _follow(Path(folder))
        yield _thousand(Path(folder))


def _make_log(path: Path, size: int) -> Path:
    length = len(_LINE % 0)
    with path.open("wb") as file:
        for first in range(0, size // length, 10_000):
            last = min(first + 10_000, size // length)
            file.write(b"".join(_LINE % number for number in range(first, last)))
    return path


def _run(command: list[str], output: list[bytes] | None = None) -> tuple[float, int]:
    """Seconds until all of its output was read through a pipe, and what it said of its memory."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while data := os.read(process.stdout.fileno(), 1 << 20):
            if output is not None:
                output.append(data)
        seconds = time.perf_counter() - start
        said = process.stderr.read()
    if process.returncode != 0:
        raise RuntimeError(f"{command} ended with {process.returncode}: {said.decode()}")
    return seconds, int(said or 0)


def _compared(ours: list[str], peer: list[str], size: int) -> dict[str, Any]:
    """MB/s of both, with their process, over the same file; their output is the same."""
    mine_said: list[bytes] = []
    peer_said: list[bytes] = []
    _run(ours, mine_said)
    _run(peer, peer_said)
    if b"".join(mine_said) != b"".join(peer_said):
        raise RuntimeError(f"{ours} and {peer} do not say the same")
    del mine_said, peer_said
    memory = 0

    def measure() -> float:
        nonlocal memory
        seconds, kilobytes = _run(ours)
        memory = max(memory, kilobytes)
        return size / 1e6 / seconds

    result = comparison(*interleaved(measure, lambda: size / 1e6 / _run(peer)[0], ROUNDS))
    return {**result, "memory_mb": round(memory / 1024, 1), "peer_command": Path(peer[0]).name}


def _download(log: Path) -> dict[str, Any]:
    ours = [sys.executable, "-c", _OURS, "download", str(log)]
    described = {"id": "logs download 1 GB", "unit": "MB/s", "goal": ">= 300, memory < 32 MB"}
    return {**described, **_compared(ours, ["cat", str(log)], log.stat().st_size)}


def _line(log: Path) -> dict[str, Any]:
    """The first question for a line counts all before it; the next ones take what `again_ms` says."""
    last = log.stat().st_size // len(_LINE % 0)
    ours = [sys.executable, "-c", _OURS, "line", str(log), str(last - 1)]
    described = {"id": "logs last line by number, 1 GB", "unit": "MB/s", "goal": ">= 300"}
    result = _compared(ours, ["sed", "-n", f"{last}p", str(log)], log.stat().st_size)
    file = LogFile(log)
    list(file.lines(last - 1, 1))
    start = time.perf_counter()
    list(file.lines(last // 2, 1))
    return {**described, **result, "again_ms": round((time.perf_counter() - start) * 1000, 2)}


def _search(log: Path, pattern: str, kind: str, grep: list[str]) -> dict[str, Any]:
    ours = [sys.executable, "-c", _OURS, "search", str(log), pattern]
    described = {"id": f"logs search {kind}", "unit": "MB/s", "pattern": pattern}
    return {**described, **_compared(ours, [*grep, pattern, str(log)], log.stat().st_size)}


def _tail(log: Path) -> dict[str, Any]:
    """Ours is a call in a running server, the peer a process: as each is used."""
    file = LogFile(log)
    peer = ["tail", "-n", "100", str(log)]

    def ours() -> float:
        start = time.perf_counter()
        file.tail(100)
        return (time.perf_counter() - start) * 1000

    if file.tail(100).data != subprocess.run(peer, capture_output=True, check=True).stdout:
        raise RuntimeError("the tails differ")
    described = {"id": "logs tail -n 100, 1 GB", "unit": "ms", "goal": "<= 10"}
    result = comparison(*interleaved(ours, lambda: _run(peer)[0] * 1000, ROUNDS))
    return {**described, **result, "peer_command": "tail -n 100"}


def _growth(folder: Path, largest: Path) -> Iterator[dict[str, Any]]:
    """The exponent k in cost ~ size^k, by least squares over the sizes."""
    files = [_make_log(folder / f"{size}.log", size) for size in _SIZES[:-1]] + [largest]
    costs = []
    for path in files:
        file = LogFile(path)
        times = []
        for _ in range(200):
            start = time.perf_counter()
            file.tail(100)
            times.append(time.perf_counter() - start)
        costs.append(sorted(times)[100])
    for path in files[:-1]:
        path.unlink()
    points = [(math.log(size), math.log(cost)) for size, cost in zip(_SIZES, costs, strict=True)]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    yield {
        "id": "logs growth of tail, 1 MB to 1 GB",
        "unit": "k in cost ~ size^k",
        "goal": "<= 0.2",
        "ours": round(slope, 3),
        "peer": None,
        "us": [round(cost * 1e6, 1) for cost in costs],
    }


def _follow(folder: Path) -> dict[str, Any]:
    number = 0
    cpu: dict[str, list[float]] = {"ours": [], "peer": []}

    def ours() -> float:
        nonlocal number
        number += 1
        start = time.process_time()
        lags = asyncio.run(_lags_of_ours(folder / f"{number}.log", _FOLLOWERS))
        cpu["ours"].append(time.process_time() - start)
        return _p99(lags)

    def peer() -> float:
        nonlocal number
        number += 1
        lags, seconds = _lags_of_tail(folder / f"{number}.log")
        cpu["peer"].append(seconds)
        return _p99(lags)

    mine, theirs = interleaved(ours, peer, ROUNDS)
    return {
        "id": "logs follow lag p99, 10,000 lines/s, 8 followers",
        "unit": "ms",
        "goal": "<= 100",
        **comparison(mine, theirs),
        "worst_round": round(max(mine), 1),
        "peer_command": "tail -f, 8 processes",
        "cpu_s": [round(sorted(cpu[who])[ROUNDS // 2], 2) for who in ("ours", "peer")],
    }


def _thousand(folder: Path) -> dict[str, Any]:
    start, memory = time.process_time(), _resident()
    lags = asyncio.run(_lags_of_ours(folder / "thousand.log", 1000, sampled=20))
    return {
        "id": "logs follow lag p99, 10,000 lines/s, 1,000 followers",
        "unit": "ms",
        "ours": round(_p99(lags), 1),
        "peer": None,
        "n": 1,
        "cpu_s": round(time.process_time() - start, 2),
        "memory_mb": round((_resident() - memory) / 1e6, 1),
    }


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _write(log: Path) -> subprocess.Popen[bytes]:
    stdout = create_log(log)
    try:
        return subprocess.Popen([sys.executable, "-c", WRITER, str(_LINES)], stdout=stdout)
    finally:
        os.close(stdout)


def _whole_lines(data: bytes) -> list[bytes]:
    return data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1].splitlines()


async def _lags_of_ours(log: Path, followers: int, sampled: int | None = None) -> list[int]:
    """Nanoseconds from a line's time stamp to its arrival; every line, or of the first followers only."""
    hub, done = LogHub(), asyncio.Event()
    lags: list[int] = []
    received = [0] * followers

    async def follow(number: int) -> None:
        async for chunk in hub.follow(log, done=done):
            now = time.time_ns()
            received[number] += len(chunk.data)
            if sampled is None or number < sampled:
                lags.extend(now - int(line[:19]) for line in _whole_lines(chunk.data))

    async with asyncio.TaskGroup() as group:
        for number in range(followers):
            group.create_task(follow(number))
        writer = _write(log)
        await asyncio.to_thread(writer.wait)
        done.set()
    hub.close()
    if set(received) != {log.stat().st_size}:
        raise RuntimeError("a follower lost something")
    return lags


def _lags_of_tail(log: Path) -> tuple[list[int], float]:
    log.write_bytes(b"ready\n")
    lags: list[int] = []
    command = ["tail", "-n", "+1", "-f", str(log)]
    tails = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(_FOLLOWERS)]
    with selectors.DefaultSelector() as selector:
        received = {}
        for tail in tails:
            assert tail.stdout is not None
            selector.register(tail.stdout, selectors.EVENT_READ)
            received[tail.stdout.fileno()] = len(os.read(tail.stdout.fileno(), 100))
        writer = _write(log)
        while writer.poll() is None or any(got < log.stat().st_size for got in received.values()):
            for key, _ in selector.select(0.1):  # the writer ends without a word
                data = os.read(key.fd, 1 << 16)
                now = time.time_ns()
                received[key.fd] += len(data)
                lags += [now - int(line[:19]) for line in _whole_lines(data)]
    cpu = 0.0
    for tail in tails:
        tail.kill()
        _, status, usage = os.wait4(tail.pid, 0)
        tail.returncode = os.waitstatus_to_exitcode(status)
        assert tail.stdout is not None
        tail.stdout.close()
        cpu += usage.ru_utime + usage.ru_stime
    return lags, cpu


def _p99(lags: list[int]) -> float:
    return sorted(lags)[len(lags) * 99 // 100] / 1e6
