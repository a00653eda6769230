"""Numbers out of the logs of running jobs, while they run: what `progress` picks becomes series of the job.

The log of rank 0 is followed, of every job that this server looks after. Where it stopped is noted in a small file
after its points were stored, so a server that was killed goes on there; what came in the last seconds before may come
twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.logs.follow import LogHub
from astrago_trainer.progress.picker import Picked, Picker
from astrago_trainer.progress.points import Point as PickedPoint
from astrago_trainer.progress.points import Progress
from astrago_trainer.server.log_places import TRAINING_CONTAINER, find_places
from astrago_trainer.server.problems import encoded
from astrago_trainer.server.watching import JobWatch
from astrago_trainer.service.board import Record
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.service import Service
from astrago_trainer.store import StoreError
from astrago_trainer.store.jobs import Job
from astrago_trainer.store.metrics import Point

PROGRESS, REMAINING = "progress", "remaining_seconds"
"""Series of our own: the fraction that is done, and the seconds that are left."""
MOST_JOBS = 1000
"""Followed at a time; a follower is an open file and an offset."""
QUIET_SECONDS = 1.0
"""After which a line that has not ended is read as it is: a bar's newest state has no end."""
CATCH_UP_SECONDS = 5.0
NOTE_SECONDS = 5.0
"""How often the place in the log is noted."""
_MOST_REMEMBERED = 10_000
"""Runs that were read to their ends; news of an older one come only when it is removed."""

_SILENT = (Phase.QUEUED, Phase.PENDING, Phase.PULLING, Phase.SUSPENDED, Phase.DELETING)
"""Before the first line of a training; a job that was suspended is followed already."""

_log = logging.getLogger(__name__)
Listener = Callable[[Job, Progress], None]


class Collector:
    """Follows what runs; one per server."""

    def __init__(self, service: Service, hub: LogHub, watch: JobWatch, folder: Path) -> None:
        self._service = service
        self._hub = hub
        self._watch = watch
        self._folder = folder
        self._following: dict[tuple[int, int], asyncio.Task[None]] = {}
        self._read: dict[tuple[int, int], None] = {}
        self.listeners: set[Listener] = set()

    def start(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._watch.add(self._see)
        for record in self._service.board:
            # What had ended before was read before, unless a note says that it was not read to its end.
            if not is_terminal(Phase(record.job.phase)) or self._note_path(record.job).exists():
                self._see(record)

    async def close(self) -> None:
        tasks = list(self._following.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def catch_up(self, record: Record) -> None:
        """Returns when the log of a job that has ended was read to its end, or after a moment.

        Who waits for the end of a job and then asks for its numbers wants the last ones.
        """
        if not is_terminal(Phase(record.job.phase)):
            return
        self._see(record)
        task = self._following.get((record.job.number, record.job.run))
        if task is not None:
            await asyncio.wait((task,), timeout=CATCH_UP_SECONDS)

    def tell(self, job: Job, progress: Progress) -> None:
        """To those who stream it; the training's own reports come here too."""
        for listener in list(self.listeners):
            listener(job, progress)

    def record(self, job: Job, points: list[tuple[str, Point]]) -> None:
        try:
            self._service.record_metric(job.namespace, job.name, points)
        except NotFound:
            return  # deleted meanwhile

    def _see(self, record: Record) -> None:
        job = record.job
        key = (job.number, job.run)
        if key in self._following or key in self._read or len(self._following) >= MOST_JOBS:
            return
        if Phase(job.phase) in _SILENT or job.is_reaped or job.is_deleting:
            return
        if not self._service.looks_after(job):
            return
        task = asyncio.create_task(self._follow(job), name=f"numbers of {job.namespace}/{job.name}")
        self._following[key] = task
        task.add_done_callback(lambda _: self._following.pop(key, None))

    async def _follow(self, job: Job) -> None:
        note = self._note_path(job)
        try:
            # Most jobs begin here and have none: to look is quicker than to ask a thread.
            known = await asyncio.to_thread(_read_note, note) if note.exists() else {}
            follower = _Follower(self, job, known)
            while await follower.attempt():
                pass
            note.unlink(missing_ok=True)
            self._read[job.number, job.run] = None
            if len(self._read) > _MOST_REMEMBERED:
                del self._read[next(iter(self._read))]
        except (OSError, StoreError) as error:
            _log.warning(
                "the numbers of the job cannot be read: %s",
                error,
                extra={"job": job.name, "tenant": job.namespace},
            )
        except Exception:  # a mistake of ours must cost the plot of one job, not more
            _log.exception(
                "reading numbers broke", extra={"job": job.name, "tenant": job.namespace}
            )

    def _note_path(self, job: Job) -> Path:
        return self._folder / f"{job.uid}-{job.run}.json"


class _Follower:
    """One run of one job."""

    def __init__(self, owner: Collector, job: Job, note: dict[str, Any]) -> None:
        self._owner = owner
        self._job = job
        self._attempt: int = note.get("attempt", 0)
        self._counts: dict[str, int] = note.get("counts", {})
        self._picker = Picker(attempt=self._attempt, rank=0, state=note.get("picker"))
        self._noted_at = 0.0

    def note(self) -> dict[str, Any]:
        return {
            "attempt": self._attempt,
            "picker": self._picker.state(),
            "counts": self._counts,
        }

    async def attempt(self) -> bool:
        """Reads one attempt to its end; whether there is another."""
        service, number = self._owner._service, self._job.number
        folder = service.engine.logs(handle_of(self._job))
        speaks = (
            self._job.nodes if self._job.framework == "horovod" else 0
        )  # mpirun is the launcher's
        (place,) = find_places(self._job, folder, self._attempt, (speaks,), TRAINING_CONTAINER)
        with (
            self._owner._watch.over(number, self._is_over) as done,
            self._owner._hub.follower(place.path, self._picker.offset, done=done) as log,
        ):
            reading: asyncio.Task[Any] | None = None
            try:
                while True:
                    reading = reading or asyncio.ensure_future(log.read())
                    await asyncio.wait((reading,), timeout=QUIET_SECONDS)
                    now = service.clock.time()
                    if not reading.done():
                        self._take(self._picker.settle(time=now))
                        await self._remember_now_and_then()
                        await asyncio.wait((reading,))  # nothing more can be made of silence
                    chunk = reading.result()
                    reading = None
                    if chunk is None:
                        break
                    self._take(self._picker.feed(chunk.offset, chunk.data, time=now))
                    await self._remember_now_and_then()
            finally:
                if reading is not None:
                    reading.cancel()
        self._take(self._picker.settle(time=service.clock.time()))
        await self._remember()
        record = service.board.find_number(number)
        if record is None or record.job.run != self._job.run or record.job.attempt <= self._attempt:
            return False
        self._attempt += 1
        self._picker = Picker(attempt=self._attempt, rank=0)
        return True

    def _is_over(self, record: Record | None) -> bool:
        if record is None or record.job.run != self._job.run:
            return True
        return record.job.attempt > self._attempt or is_terminal(Phase(record.job.phase))

    def _take(self, picked: Picked) -> None:
        points = [
            (point.series, self._stored(point))
            for point in picked.points
            if point.value is not None
        ]
        if picked.progress is not None:
            points += progress_points(picked.progress)
            self._owner.tell(self._job, picked.progress)
        if points:
            self._owner.record(self._job, points)

    def _stored(self, point: PickedPoint) -> Point:
        """Where the log names no step, points are counted: a plot needs an order."""
        count = self._counts[point.series] = self._counts.get(point.series, 0) + 1
        assert point.value is not None
        return Point(count if point.step is None else point.step, point.time, point.value)

    async def _remember_now_and_then(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() - self._noted_at >= NOTE_SECONDS:
            await self._remember()

    async def _remember(self) -> None:
        """After the points are durable, or they would be missing after a kill."""
        self._noted_at = asyncio.get_running_loop().time()
        path = self._owner._note_path(self._job)
        if not self._picker.offset and not path.exists():
            return
        try:
            await self._owner._service.flush_metrics()
        except StoreError as error:
            _log.warning("numbers of jobs wait: %s", error)
            return
        await asyncio.to_thread(_write_note, path, self.note())


def progress_points(progress: Progress) -> list[tuple[str, Point]]:
    """Progress as points of its own series."""
    found = ((PROGRESS, progress.fraction), (REMAINING, progress.remaining_seconds))
    step = progress.step if progress.step is not None else int(progress.time)
    return [
        (name, Point(step, progress.time, value))
        for name, value in found
        if value is not None and math.isfinite(value)
    ]


def progress_view(job: Job, progress: Progress) -> bytes:
    """As the stream tells it."""
    return encoded(
        {
            "name": job.name,
            "namespace": job.namespace,
            "uid": job.uid,
            "fraction": progress.fraction,
            "remaining_seconds": progress.remaining_seconds,
            "step": progress.step,
            "steps": progress.steps,
            "epoch": progress.epoch,
            "epochs": progress.epochs,
        }
    )


def _read_note(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_note(path: Path, note: dict[str, Any]) -> None:
    """Whole or not at all; not synced, because the log can always be read again."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(note), encoding="utf-8")
    os.replace(new, path)  # noqa: PTH105 - atomic, as its name says
