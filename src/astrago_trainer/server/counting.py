"""Numbers for Prometheus: how many requests, how long they took, what is going on.

Routes are counted by their templates, never by what callers put into them: names of jobs would make endless series, and
tell everybody who reads the numbers.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from astrago_trainer.server.disk import DiskAlarm, DiskState
from astrago_trainer.server.loop_times import BOUNDS as HELD_BOUNDS
from astrago_trainer.server.loop_times import INTERVAL, LoopTimes

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        buckets = self._buckets.get(route)
        if buckets is None:
            buckets = self._buckets[route] = [0] * (len(BOUNDS) + 1)
        buckets[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] = self._seconds.get(route, 0.0) + seconds

    def text(
        self,
        jobs: Mapping[str, int],
        gauges: Mapping[str, tuple[str, int]],
        loop: LoopTimes,
        disk: DiskState | None = None,
    ) -> str:
        """The exposition format, version 0.0.4. `gauges`: name -> what it is, its value."""
        lines = (*self._lines(jobs, gauges), *loop_lines(loop), *_disk_lines(disk), "")
        return "\n".join(lines)

    def _lines(
        self, jobs: Mapping[str, int], gauges: Mapping[str, tuple[str, int]]
    ) -> Iterator[str]:
        yield "# HELP astrago_http_requests_total Answers, by method, route and status."
        yield "# TYPE astrago_http_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"astrago_http_requests_total{{{labels}}} {count}"
        yield "# HELP astrago_http_request_seconds Time to the end of the answer; streams are not in it."
        yield "# TYPE astrago_http_request_seconds histogram"
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*BOUNDS, "+Inf"), buckets, strict=True):
                total += count
                yield f'astrago_http_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'astrago_http_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'astrago_http_request_seconds_count{{route="{route}"}} {total}'
        yield "# HELP astrago_jobs Jobs by phase."
        yield "# TYPE astrago_jobs gauge"
        for phase, count in sorted(jobs.items()):
            yield f'astrago_jobs{{phase="{phase}"}} {count}'
        for name, (what, value) in gauges.items():
            yield f"# HELP {name} {what}"
            yield f"# TYPE {name} gauge"
            yield f"{name} {value}"
        yield "# HELP process_resident_memory_bytes Memory of the server."
        yield "# TYPE process_resident_memory_bytes gauge"
        yield f"process_resident_memory_bytes {_resident()}"


def loop_lines(loop: LoopTimes) -> Iterator[str]:
    """How long the event loop was held: no request is answered in that time."""
    name = "astrago_event_loop_held_seconds"
    yield f"# HELP {name} How late the event loop was, measured {1 / INTERVAL:.0f} times a second."
    yield f"# TYPE {name} histogram"
    total = 0
    for bound, count in zip((*HELD_BOUNDS, "+Inf"), loop.buckets, strict=True):
        total += count
        yield f'{name}_bucket{{le="{bound}"}} {total}'
    yield f"{name}_sum {loop.total:.6f}"
    yield f"{name}_count {total}"
    yield f"# HELP {name}_max The longest since the start."
    yield f"# TYPE {name}_max gauge"
    yield f"{name}_max {loop.longest:.6f}"


def _disk_lines(disk: DiskState | None) -> Iterator[str]:
    if disk is None:
        return
    numbers = (
        ("total_bytes", "Size of the disk of the data folder.", disk.total),
        ("free_bytes", "Free space in the data folder.", disk.free),
        ("reserve_bytes", "Free space below which no log is written.", disk.reserve),
    )
    for name, text, value in numbers:
        yield f"# HELP astrago_disk_{name} {text}"
        yield f"# TYPE astrago_disk_{name} gauge"
        yield f"astrago_disk_{name} {value}"
    yield "# HELP astrago_disk_alarm 1 for the state that holds."
    yield "# TYPE astrago_disk_alarm gauge"
    for alarm in DiskAlarm:
        yield f'astrago_disk_alarm{{code="{alarm}"}} {int(alarm is disk.alarm)}'


def _resident() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:  # not Linux
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
