"""Points that trainings report, gathered for a second and written together.

A point is not a promise: what came in the last second before a kill may be missing from the plot.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable

from astrago_trainer.store import Store, StoreError
from astrago_trainer.store.metrics import Point, Points, insert_points

FLUSH_SECONDS = 1.0
MOST_WAITING = 50_000
"""Points of all jobs; more are dropped until the database has taken them."""
_MOST_NAME = 120

_log = logging.getLogger(__name__)


class Metrics:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: dict[tuple[int, int, int, str], list[Point]] = {}
        self._count = 0
        self._flushing: asyncio.Task[None] | None = None

    def record(self, job: int, run: int, rank: int, points: Iterable[tuple[str, Point]]) -> int:
        """How many of the named points were taken; numbers that are no numbers are not."""
        taken = 0
        for name, point in points:
            is_sound = (
                math.isfinite(point.value) and 0 < len(name) <= _MOST_NAME and "\0" not in name
            )
            if not is_sound or abs(point.step) >= 2**63 or self._count >= MOST_WAITING:
                continue
            self._waiting.setdefault((job, run, rank, name), []).append(point)
            self._count += 1
            taken += 1
        if taken and (self._flushing is None or self._flushing.done()):
            self._flushing = asyncio.create_task(self._flush_later(), name="metrics")
        return taken

    async def flush(self) -> None:
        """Writes what waits."""
        waiting, self._waiting, self._count = self._waiting, {}, 0
        batches = [
            Points(job, run, name, tuple(points), rank)
            for (job, run, rank, name), points in waiting.items()
        ]
        await asyncio.gather(*(self._store.write(insert_points, batch) for batch in batches))

    async def close(self) -> None:
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
        try:
            await self.flush()
        except StoreError as error:
            _log.warning("the last points of metrics are lost: %s", error)

    async def _flush_later(self) -> None:
        while self._waiting:
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                await self.flush()
            except StoreError as error:
                _log.warning("points of metrics are lost: %s", error)
