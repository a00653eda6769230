"""Lines that match a pattern, found by the server: it sends these alone, however long the log is.

It looks through one rank at a time and for a limited time, and says how far it came; from there the next page goes on.
The lines of all ranks are put together in the order of time, as they are when all of them are read.
"""

from __future__ import annotations

import heapq
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from json import loads

from astrago_trainer.client import calls
from astrago_trainer.client.answers import line_of
from astrago_trainer.client.errors import Unavailable
from astrago_trainer.client.models import LogLine, LogQuery

HITS = 1000
"""Of one page."""


class Search:
    """One rank of a job: its pages one after the other, and what they hold. Without I/O."""

    def __init__(self, namespace: str, name: str, query: LogQuery, rank: int) -> None:
        self._place = (namespace, name)
        self._query = query._replace(rank=rank)
        self._cursor = ""
        self._reached = -1
        self.is_over = False

    def call(self) -> calls.Call:
        return calls.search(*self._place, self._query, cursor=self._cursor, hits=HITS)

    def read(self, texts: Iterable[bytes]) -> list[LogLine]:
        """The lines of a page; `call` is then the one for the next, unless it `is_over`."""
        found = [loads(text) for text in texts]
        *lines, told = found
        self.is_over = told["why"] == "end"
        if not self.is_over and told["next"] <= self._reached:
            raise Unavailable(
                f"the pattern {self._query.grep!r} takes too long at byte {told['next']} of rank {told['rank']}; "
                "try a simpler one."
            )
        self._reached = told["next"]
        self._cursor = f"{told['attempt']}:{told['rank']}:{told['next']}"
        return [line_of(each) for each in lines]


def searches(
    namespace: str, name: str, query: LogQuery, *, nodes: int, framework: str
) -> list[Search]:
    """Of every rank that is wanted; the launcher of an MPI job comes after its nodes."""
    ranks = range(nodes + (framework == "horovod")) if query.rank is None else (query.rank,)
    return [Search(namespace, name, query, rank) for rank in ranks]


def search(
    every: Iterable[Search], ask: Callable[[calls.Call], Iterable[bytes]]
) -> Iterator[LogLine]:
    """`ask` gives the lines of an answer."""

    def pages(each: Search) -> Iterator[LogLine]:
        while not each.is_over:
            yield from each.read(ask(each.call()))

    return heapq.merge(*map(pages, every), key=_time)


async def search_async(
    every: Iterable[Search], ask: Callable[[calls.Call], AsyncIterator[bytes]]
) -> AsyncIterator[LogLine]:
    """The same; each rank has a page ahead of what was given."""
    waiting: list[tuple[Search, list[LogLine]]] = [(each, []) for each in every]
    while True:
        for each, lines in waiting:
            while not lines and not each.is_over:
                lines += each.read([text async for text in ask(each.call())])
        waiting = [(each, lines) for each, lines in waiting if lines]
        if not waiting:
            return
        _, first = min(waiting, key=lambda pair: _time(pair[1][0]))
        yield first.pop(0)


def _time(line: LogLine) -> float:
    return line.time or 0.0
