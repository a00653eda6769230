"""The logs of all ranks as one: by time where they are history, by arrival while they come.

The time of a line comes from the index, so it is right to about a second, and lines of one rank never change places.
It holds one block per log, smaller blocks for many logs, whatever their sizes. The `follow_merged` for asyncio is in a
module of its own: the command line does not wait for asyncio to be imported.
"""

from __future__ import annotations

import heapq
import itertools
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from astrago_trainer.logs import follow_sync
from astrago_trainer.logs.blocks import BLOCK, blocks
from astrago_trainer.logs.gap import read_gap
from astrago_trainer.logs.index import TimeIndex
from astrago_trainer.logs.layout import open_log
from astrago_trainer.logs.lines import Chunk, Line, LineCutter
from astrago_trainer.logs.live import LiveLines
from astrago_trainer.logs.view import View

_BLOCKS_TOGETHER = 1 << 20
_BATCH = 500  # lines of history at a time: some milliseconds of a thread


class Source(NamedTuple):
    """One log to be merged, from an offset on."""

    pod: str
    container: str
    path: Path
    offset: int = 0


class MergedLine(NamedTuple):
    """A line and whose it is. To go on later, keep `line.resume` for each pod and container."""

    pod: str
    container: str
    line: Line
    time: float
    """When it was written, about; for a line that came while we followed, when it came."""


def merged(sources: Sequence[Source], *, raw: bool = False) -> Iterator[MergedLine]:
    """What is there now, in the order of time."""
    return iter(Past(sources, raw=raw, open_ends=True))


def follow_merged(
    sources: Sequence[Source],
    *,
    done: follow_sync.Done = follow_sync.never,
    watch: Iterable[Path] = (),
) -> Iterator[list[MergedLine]]:
    """What is there, then what comes, in batches; for the command line."""
    past = Past(sources)
    while batch := past.batch():
        yield batch
    live = Live(sources, past.offsets)
    for number, chunk, is_behind in follow_sync.follow_any(live.logs, done=done, watch=watch):
        if lines := live.accept(number, chunk, is_behind=is_behind):
            yield lines
    if lines := live.finish():
        yield lines


class Past:
    """The history of all, up to the sizes they have now, and where each of them stopped."""

    def __init__(
        self, sources: Sequence[Source], *, raw: bool = False, open_ends: bool = False
    ) -> None:
        """`open_ends` gives a last line without a newline too; who goes on following gets it then."""
        self.offsets = [max(0, source.offset) for source in sources]
        self._sources = sources
        self._raw = raw
        self._open_ends = open_ends
        self._block = min(BLOCK, max(4096, _BLOCKS_TOGETHER // max(1, len(sources))))
        self._lines = iter(self)

    def batch(self) -> list[MergedLine]:
        return list(itertools.islice(self._lines, _BATCH))

    def __iter__(self) -> Iterator[MergedLine]:
        # Times first, then the order of the sources: two lines are never compared.
        for when, number, line in heapq.merge(*map(self._timed, range(len(self._sources)))):
            self.offsets[number] = line.resume
            source = self._sources[number]
            yield MergedLine(source.pod, source.container, line, when)

    def _timed(self, number: int) -> Iterator[tuple[float, int, Line]]:
        source = self._sources[number]
        fd = open_log(source.path)
        if fd is None:
            return
        try:
            log, changed = View(fd, read_gap(source.path), source.path), os.fstat(fd).st_mtime
            times = TimeIndex(source.path).cursor(log.size)
            latest = float("-inf")
            for line in self._cut(log, log.place(self.offsets[number])):
                when = times.time_at(line.end)
                latest = max(latest, changed if when is None else when)
                yield latest, number, line
        finally:
            os.close(fd)

    def _cut(self, log: View, start: int) -> Iterator[Line]:
        cutter = LineCutter(start, raw=self._raw)
        for data in blocks(log, start, log.length, self._block):
            yield from log.all_shown(cutter.feed(data))
        if self._open_ends and (rest := cutter.rest()) is not None:
            yield log.shown(rest)


class Live:
    """The lines of all while they come."""

    def __init__(self, sources: Sequence[Source], offsets: Sequence[int]) -> None:
        self._sources = sources
        self._live = [LiveLines(offset) for offset in offsets]
        self.logs = [(source.path, offset) for source, offset in zip(sources, offsets, strict=True)]

    def accept(self, number: int, chunk: Chunk, *, is_behind: bool) -> list[MergedLine]:
        return self._of(number, self._live[number].accept(chunk, is_behind=is_behind))

    def finish(self) -> list[MergedLine]:
        return [
            line
            for number, live in enumerate(self._live)
            for line in self._of(number, live.finish())
        ]

    def _of(self, number: int, lines: list[Line]) -> list[MergedLine]:
        pod, container, *_ = self._sources[number]
        now = time.time()
        return [MergedLine(pod, container, line, now) for line in lines]
