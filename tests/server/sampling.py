"""Samples `/healthz` of a server from a process of its own: `python -m tests.server.sampling ADDRESS PID INTERVAL`.

A campaign is too busy to measure while it sends. It ends when its input is closed, and prints the seconds as one JSON
list.
"""

from __future__ import annotations

import http.client
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


def waited_for_core(pid: int) -> float:
    """Seconds that its main thread could have run but had to queue; see the kernel's sched-stats."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


@contextmanager
def sampled(address: str, pid: int, found: list[float], interval: float = 0.02) -> Iterator[None]:
    """While the block runs; the seconds of all samples are in `found` after it."""
    command = [sys.executable, "-m", "tests.server.sampling", address, str(pid), str(interval)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield
    finally:
        out, _ = process.communicate(timeout=PATIENCE)
        found += json.loads(out) if out else []


def main() -> None:
    address, pid, interval = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    both = (os.getpid(), pid)
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=PATIENCE)
    found = []
    while not select.select([sys.stdin], [], [], interval)[0]:
        queued, begin = sum(map(waited_for_core, both)), time.perf_counter()
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - begin
        # The machine is shared: what counts is whether the server lets a request wait.
        found.append(seconds - (sum(map(waited_for_core, both)) - queued))
        if answer.status != 200:
            found.append(PATIENCE)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
