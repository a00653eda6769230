"""Knows when the time of a finished job is over, by the steady clock: a clock that somebody sets ends nobody's time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.store.jobs import Job

_LONGEST_SLEEP = 3600.0


class Reaper:
    """Calls for a look at each job when its time has come; the decision is made there."""

    def __init__(self, steady: Callable[[], float], look: Callable[[int], None]) -> None:
        self._steady = steady
        self._look = look
        self._due: list[tuple[float, int]] = []
        self._changed = asyncio.Event()

    def add(self, job: Job) -> None:
        """A job that has ended, or was found so."""
        if (
            job.settled_at is not None
            and job.ttl_seconds is not None
            and not job.is_reaped
            and is_terminal(Phase(job.phase))
        ):
            heappush(self._due, (job.settled_at + job.ttl_seconds, job.number))
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.call_due()
            self._changed.clear()
            wait = self._due[0][0] - self._steady() if self._due else _LONGEST_SLEEP
            try:
                async with asyncio.timeout(min(max(wait, 0), _LONGEST_SLEEP)):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def call_due(self) -> None:
        now = self._steady()
        while self._due and self._due[0][0] <= now:
            self._look(heappop(self._due)[1])
