"""How long the event loop is held: while one function runs on it, no other request is answered.

A timer is due ten times a second; what it comes too late was held by something else. Shorter holds between two of its
times are not seen, a longer one is seen up to one interval shorter than it was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left

INTERVAL = 0.1
BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
LONG_SECONDS = 1.0
"""A longer hold is written to the log."""

_log = logging.getLogger(__name__)


class LoopTimes:
    """Counts of delays of the running event loop, and the longest."""

    def __init__(self) -> None:
        self.buckets = [0] * (len(BOUNDS) + 1)
        self.total = 0.0
        self.longest = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Measure from now on; a loop is running."""
        self._set(asyncio.get_running_loop())

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, seconds: float) -> None:
        """One measured delay."""
        self.buckets[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds
        self.longest = max(self.longest, seconds)
        if seconds > LONG_SECONDS:
            _log.warning(
                "the event loop was held for %.1f s; no request was answered meanwhile", seconds
            )

    def _set(self, loop: asyncio.AbstractEventLoop) -> None:
        # Not loop.time(): uvloop reads the clock once for all that runs in one turn.
        self._timer = loop.call_later(INTERVAL, self._measure, loop, time.monotonic() + INTERVAL)

    def _measure(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.note(max(0.0, time.monotonic() - due))
        self._set(loop)
