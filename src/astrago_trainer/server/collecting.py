"""Numbers out of the logs of running jobs, while they run: what `progress` picks becomes series of the job.

The logs of the first ranks are followed, of every job that this server looks after; how far a job is, rank 0 says.
Where each stopped is noted in a small file after its points were stored, so a server that was killed goes on there;
what came in the last seconds before may come twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.logs.follow import Follower, LogHub
from astrago_trainer.logs.lines import Chunk
from astrago_trainer.progress.picker import Picked, Picker
from astrago_trainer.progress.points import Point as PickedPoint
from astrago_trainer.progress.points import Progress
from astrago_trainer.server.log_places import TRAINING_CONTAINER, find_places, numbered_ranks
from astrago_trainer.server.metric_view import PROGRESS, REMAINING
from astrago_trainer.server.problems import encoded
from astrago_trainer.server.watching import JobWatch
from astrago_trainer.service.board import Record
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.service import Service
from astrago_trainer.store import StoreError
from astrago_trainer.store.jobs import Job
from astrago_trainer.store.metrics import Point

MOST_JOBS = 1000
"""Followed at a time; a follower is an open file and an offset."""
MOST_OTHER_LOGS = 1000
"""Of ranks beside rank 0, of all jobs together; who begins when there are so many is followed by rank 0 alone."""
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
        self._other_logs = 0
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

    def record(self, job: Job, rank: int, points: list[tuple[str, Point]]) -> None:
        try:
            self._service.record_metric(job.namespace, job.name, points, rank=rank)
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
        ranks = numbered_ranks(job)
        if self._other_logs + len(ranks) - 1 > MOST_OTHER_LOGS:
            ranks = {0: ranks[0]}
        work = self._follow(job, ranks)
        task = asyncio.create_task(work, name=f"numbers of {job.namespace}/{job.name}")
        self._following[key] = task
        self._other_logs += len(ranks) - 1

        def forget(_: asyncio.Task[None]) -> None:
            self._following.pop(key, None)
            self._other_logs -= len(ranks) - 1

        task.add_done_callback(forget)

    async def _follow(self, job: Job, ranks: Mapping[int, int]) -> None:
        note = self._note_path(job)
        try:
            # Most jobs begin here and have none: to look is quicker than to ask a thread.
            known = await asyncio.to_thread(_read_note, note) if note.exists() else {}
            follower = _Follower(self, job, ranks, known)
            try:
                while await follower.attempt():
                    pass
            except asyncio.CancelledError:  # the server ends: the next one goes on exactly here
                await follower.remember()
                raise
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


class _Rank:
    """The log of one rank, and how far it was read."""

    def __init__(self, rank: int, log: int, attempt: int, note: Mapping[str, Any]) -> None:
        self.rank = rank
        self.log = log
        """Its rank among the logs."""
        self.picker = Picker(attempt=attempt, rank=rank, state=note.get("picker"))
        self._counts: dict[str, int] = note.get("counts", {})

    def note(self) -> dict[str, Any]:
        return {"picker": self.picker.state(), "counts": self._counts}

    def next_attempt(self, attempt: int) -> None:
        self.picker = Picker(attempt=attempt, rank=self.rank)

    def points(self, picked: Picked) -> list[tuple[str, Point]]:
        return [
            (point.series, self._stored(point, point.value))
            for point in picked.points
            if point.value is not None
        ]

    def _stored(self, point: PickedPoint, value: float) -> Point:
        """Where the log names no step, points are counted: a plot needs an order."""
        count = self._counts[point.series] = self._counts.get(point.series, 0) + 1
        return Point(count if point.step is None else point.step, point.time, value)


class _Follower:
    """One run of one job."""

    def __init__(
        self, owner: Collector, job: Job, ranks: Mapping[int, int], note: Mapping[str, Any]
    ) -> None:
        self._owner = owner
        self._job = job
        self._attempt: int = note.get("attempt", 0)
        # A note of an older server is all about rank 0.
        known: Mapping[str, Any] = note.get("ranks") or {"0": note}
        self._ranks = [
            _Rank(rank, log, self._attempt, known.get(str(rank), {})) for rank, log in ranks.items()
        ]
        self._speaking: dict[_Rank, float] = {}
        """When each was heard that has not been quiet since; who was heard last stands last."""
        self._noted_at = 0.0
        self._is_noted = True

    def note(self) -> dict[str, Any]:
        return {
            "attempt": self._attempt,
            "ranks": {str(each.rank): each.note() for each in self._ranks},
        }

    async def attempt(self) -> bool:
        """Reads one attempt to its end; whether there is another."""
        service, number = self._owner._service, self._job.number
        folder = service.engine.logs(handle_of(self._job))
        wanted = tuple(each.log for each in self._ranks)  # in their order, as the places are
        places = find_places(self._job, folder, self._attempt, wanted, TRAINING_CONTAINER)
        logs = [
            (place.path, each.picker.offset)
            for place, each in zip(places, self._ranks, strict=True)
        ]
        with (
            self._owner._watch.over(number, self._is_over) as done,
            Follower(self._owner._hub, logs, done=done, watch=()) as follower,
        ):
            await self._read(follower)
        self._settle(self._ranks)
        await self.remember()
        record = service.board.find_number(number)
        if record is None or record.job.run != self._job.run or record.job.attempt <= self._attempt:
            return False
        self._attempt += 1
        for each in self._ranks:
            each.next_attempt(self._attempt)
        return True

    def _is_over(self, record: Record | None) -> bool:
        if record is None or record.job.run != self._job.run:
            return True
        return record.job.attempt > self._attempt or is_terminal(Phase(record.job.phase))

    async def _read(self, logs: Follower) -> None:
        """All that is written until the logs end."""
        loop = asyncio.get_running_loop()
        reading: asyncio.Task[tuple[int, Chunk] | None] | None = None
        try:
            while True:
                reading = reading or asyncio.ensure_future(logs.read_any())
                await asyncio.wait((reading,), timeout=self._patience(loop.time()))
                if reading.done():
                    found, reading = reading.result(), None
                    if found is None:
                        return
                    number, chunk = found
                    self._hear(self._ranks[number], chunk, loop.time())
                quiet = loop.time() - QUIET_SECONDS
                self._settle([each for each, heard in self._speaking.items() if heard <= quiet])
                if not self._is_noted and loop.time() - self._noted_at >= NOTE_SECONDS:
                    await self.remember()
        finally:
            if reading is not None:
                reading.cancel()

    def _patience(self, now: float) -> float | None:
        """Seconds until the one that was heard first has been quiet, or a note is due; None: nothing is to be done."""
        due = [heard + QUIET_SECONDS for heard in self._speaking.values()][:1]
        if not self._is_noted:
            due.append(self._noted_at + NOTE_SECONDS)
        return max(0.0, min(due) - now) if due else None

    def _hear(self, rank: _Rank, chunk: Chunk, now: float) -> None:
        self._speaking.pop(rank, None)
        self._speaking[rank] = now
        time = self._owner._service.clock.time()
        self._take(rank, rank.picker.feed(chunk.offset, chunk.data, time=time))

    def _settle(self, ranks: Iterable[_Rank]) -> None:
        for rank in ranks:
            self._speaking.pop(rank, None)
            self._take(rank, rank.picker.settle(time=self._owner._service.clock.time()))

    def _take(self, rank: _Rank, picked: Picked) -> None:
        self._is_noted = False
        points = rank.points(picked)
        if picked.progress is not None and rank.rank == 0:
            points += progress_points(picked.progress)
            self._owner.tell(self._job, picked.progress)
        if points:
            self._owner.record(self._job, rank.rank, points)

    async def remember(self) -> None:
        """After the points are durable, or they would be missing after a kill."""
        self._noted_at = asyncio.get_running_loop().time()
        path = self._owner._note_path(self._job)
        if not any(each.picker.offset for each in self._ranks) and not path.exists():
            return
        try:
            await self._owner._service.flush_metrics()
        except StoreError as error:
            _log.warning("numbers of jobs wait: %s", error)
            return
        await asyncio.to_thread(_write_note, path, self.note())
        self._is_noted = True


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
