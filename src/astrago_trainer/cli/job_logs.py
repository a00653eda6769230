"""The logs of one job on this machine, for the embedded door: which there are, what they hold, what comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from astrago_trainer.client.models import LogLine, LogQuery
from astrago_trainer.logs.follow import Follower, LogHub
from astrago_trainer.logs.merged import Live, MergedLine, Past, Source
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.server.log_places import TRAINING_CONTAINER, LogPlace, find_places
from astrago_trainer.store.jobs import Job

Ranks = Mapping[str, int]
"""By pod."""


def select(job: Job, folder: Path, query: LogQuery, *, attempts: Iterable[int]) -> list[LogPlace]:
    """The logs that are meant, also of nodes that have not begun; raises NotFound for a rank that is none."""
    ranks = () if query.rank is None else (query.rank,)
    wanted = attempts if query.attempt is None else (query.attempt,)
    return [
        place
        for attempt in wanted
        for place in find_places(job, folder, attempt, ranks, TRAINING_CONTAINER)
    ]


def lines_now(places: Sequence[LogPlace], query: LogQuery) -> Iterator[list[LogLine]]:
    """What is there, in the order of time; of each rank its last lines when `tail` says so."""

    def lines() -> Iterator[LogLine]:
        for attempt in sorted({each.attempt for each in places}):
            chosen = [each for each in places if each.attempt == attempt]
            ranks = {each.pod: each.rank for each in chosen}
            for each in Past([_source(place, query.tail) for place in chosen], open_ends=True):
                yield _log_line(attempt, ranks, each)

    return query.batches(lines())


class Following:
    """Lines of all logs of a run, also of those that come later, into one queue."""

    def __init__(self, query: LogQuery, queue: asyncio.Queue[object]) -> None:
        self._query = query
        self._queue = queue
        self._matches = query.matcher()
        self._hub = LogHub()
        self._done = asyncio.Event()
        self._is_closed = False
        self._known: set[Path] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def look(self, places: Sequence[LogPlace]) -> None:
        """Begins to follow what is new: history first, in the order of time."""
        new = [each for each in places if each.path not in self._known]
        self._known.update(each.path for each in new)
        for attempt in sorted({each.attempt for each in new}):
            chosen = [each for each in new if each.attempt == attempt]
            ranks = {each.pod: each.rank for each in chosen}
            sources = [_source(each, self._query.tail) for each in chosen]
            past = Past(sources)
            while batch := await asyncio.to_thread(past.batch):
                await self._put(attempt, ranks, batch)
            follow = self._follow(attempt, ranks, Live(sources, past.offsets))
            self._tasks.add(asyncio.create_task(follow))

    async def finish(self) -> None:
        """No more is written: returns when everything was read."""
        self._done.set()
        await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        """May be called again."""
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if not self._is_closed:
            self._is_closed = True
            self._hub.close()

    async def _follow(self, attempt: int, ranks: Ranks, live: Live) -> None:
        with Follower(self._hub, live.logs, done=self._done, watch=()) as follower:
            while (found := await follower.read_any()) is not None:
                number, chunk = found
                is_behind = follower.places[number].is_behind
                await self._put(attempt, ranks, live.accept(number, chunk, is_behind=is_behind))
        await self._put(attempt, ranks, live.finish())

    async def _put(self, attempt: int, ranks: Ranks, lines: Sequence[MergedLine]) -> None:
        made = [_log_line(attempt, ranks, each) for each in lines]
        if shown := [each for each in made if self._matches(each.text)]:
            await self._queue.put(shown)


def _source(place: LogPlace, tail: int | None) -> Source:
    offset = 0 if tail is None else LogFile(place.path).tail_offset(tail)
    return Source(place.pod, place.container, place.path, offset)


def _log_line(attempt: int, ranks: Ranks, each: MergedLine) -> LogLine:
    line = each.line
    dropped = line.dropped or (0, 0)
    return LogLine(
        attempt,
        ranks[each.pod],
        each.pod,
        each.container,
        line.offset,
        line.text,
        line.ended,
        each.time,
        *dropped,
    )
