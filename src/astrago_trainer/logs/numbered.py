"""Lines of all ranks by their number in the order of time, for who looks at a window of a million of them.

A line's time comes from the index of its log, as in `merged`: it depends on the log alone and never decreases. So "how
many lines of all logs are not later than T" is a sum of counts, and halving over T finds the line with a number without
reading what lies before it: one block per log and step. Lines with the same time come in the order of the logs.
"""

from __future__ import annotations

import heapq
import itertools
import os
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from astrago_trainer.logs.blocks import blocks
from astrago_trainer.logs.index import BURST, MAGIC, RECORD, count_marks
from astrago_trainer.logs.layout import index_path, open_log
from astrago_trainer.logs.line_index import LineIndex
from astrago_trainer.logs.lines import Line, LineCutter
from astrago_trainer.logs.reader import pass_newlines

MAX_SHOWN = 16 << 10
"""Bytes of one line in a window: a screen shows no more, and a thousand of them must fit into an answer."""
_BURST = int(BURST * 1e9)
_KEPT = 512
_TAIL = 256


class _Known(NamedTuple):
    counted: LineIndex
    end: int
    tail: bytes
    """What stood before `end`: a log that says something else there was cut off and written anew."""


class LineIndexes:
    """The line indexes of the logs that were asked for last: counting newlines is what costs."""

    def __init__(self) -> None:
        self._known: OrderedDict[Path, _Known] = OrderedDict()

    def of(self, path: Path, fd: int, stop: int) -> LineIndex:
        """Of an open log, counted up to `stop`."""
        index, end, tail = self._known.get(path) or _Known(LineIndex(), 0, b"")
        if os.pread(fd, len(tail), end - len(tail)) != tail:
            index, end, tail = LineIndex(), 0, b""
        index.extend(fd, stop)
        if stop > end:
            begin = max(0, stop - _TAIL)
            end, tail = stop, os.pread(fd, stop - begin, begin)
        self._known[path] = _Known(index, end, tail)
        self._known.move_to_end(path)
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return index


class NumberedLine(NamedTuple):
    log: int
    """Which of the logs."""
    line: Line
    time: float


class NumberedLog:
    """One log up to a byte, as it is now."""

    def __init__(
        self, path: Path, indexes: LineIndexes, stop: int | None, *, is_over: bool
    ) -> None:
        """Without `stop` it ends where nothing will change any more: `is_over` says that nobody writes to it."""
        fd = open_log(path)
        self._fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC) if fd is None else fd
        status = os.fstat(self._fd)
        self._times, self._offsets = _marks(path, status.st_size)
        self._late = max(status.st_mtime_ns, self._times[-1] if self._times else 0)
        self.stop = min(status.st_size, status.st_size if stop is None else stop)
        self._index = indexes.of(path, self._fd, self.stop)
        if stop is None and not is_over:
            known = min(self.stop, self._offsets[-1] if self._offsets else self.stop)
            self.stop = self.start_of(self._newlines(known))
        is_open = self.stop > 0 and os.pread(self._fd, 1, self.stop - 1) != b"\n"
        self.total = self._newlines(self.stop) + is_open

    def close(self) -> None:
        os.close(self._fd)

    def span(self) -> tuple[int, int]:
        """Nanoseconds: before every line, and not before any."""
        first = min(self._times[0] if self._times else self._late, self._late)
        return first - 1, self._late

    def time_at(self, end: int) -> int:
        """When the line that ends there was written, about, in nanoseconds."""
        at = bisect_left(self._offsets, end)
        if at == len(self._offsets):
            return self._late
        if at == 0 or not self._is_steady(at):
            return self._times[at]
        before, width = self._offsets[at - 1], self._offsets[at] - self._offsets[at - 1]
        gap = self._times[at] - self._times[at - 1]
        return self._times[at - 1] + gap * (end - before) // width

    def number_at(self, time: int) -> int:
        """How many lines are not later than this."""
        reach = self._reach(time)
        return self.total if reach >= self.stop else self._newlines(reach)

    def number_of(self, offset: int) -> int:
        """Of the line in which that byte lies."""
        return min(self._newlines(min(offset, self.stop)), max(0, self.total - 1))

    def start_of(self, number: int) -> int:
        return pass_newlines(self._fd, *self._index.line(number), self.stop)

    def lines(self, first: int) -> Iterator[Line]:
        start = self.start_of(first)
        cutter = LineCutter(start, max_line=MAX_SHOWN)
        for data in blocks(self._fd, start, self.stop):
            yield from cutter.feed(data)
        if (rest := cutter.rest()) is not None:
            yield rest

    def _is_steady(self, at: int) -> bool:
        is_short = self._times[at] - self._times[at - 1] <= _BURST
        return is_short and self._offsets[at] > self._offsets[at - 1]

    def _reach(self, time: int) -> int:
        """The last byte at which a line may end that is not later: the other direction of `time_at`."""
        at = bisect_right(self._times, time)
        if at == len(self._times):
            return self.stop if self._late <= time else self._offsets[at - 1] if at else 0
        if at == 0:
            return 0
        before = self._offsets[at - 1]
        if not self._is_steady(at):
            return before
        gap = self._times[at] - self._times[at - 1]
        width = self._offsets[at] - before
        return before + min(width, ((time - self._times[at - 1] + 1) * width - 1) // gap)

    def _newlines(self, offset: int) -> int:
        place, count = self._index.before(offset)
        return count + sum(data.count(b"\n") for data in blocks(self._fd, place, offset))


class NumberedLogs:
    """Several logs as one. Touches files: for a thread, and for one question at a time."""

    def __init__(
        self,
        paths: Sequence[Path],
        indexes: LineIndexes,
        stops: Sequence[int | None],
        *,
        is_over: bool,
    ) -> None:
        self._stack = ExitStack()
        self.logs: list[NumberedLog] = []
        for path, stop in zip(paths, stops, strict=True):
            log = NumberedLog(path, indexes, stop, is_over=is_over)
            self._stack.callback(log.close)
            self.logs.append(log)
        self.total = sum(log.total for log in self.logs)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def lines(self, first: int, count: int) -> list[NumberedLine]:
        """From a number on, counted from 0; fewer at the end."""
        if not 0 <= first < self.total or count <= 0:
            return []
        parts = [self._timed(log, begin) for log, begin in enumerate(self._begins(first))]
        found = itertools.islice(heapq.merge(*parts), count)
        return [NumberedLine(log, line, time / 1e9) for time, log, line in found]

    def number_of(self, log: int, offset: int) -> int:
        """The number of the line of that log in which a byte lies."""
        own = self.logs[log]
        number = own.number_of(offset)
        time = own.time_at(own.start_of(number + 1) if number + 1 < own.total else own.stop)
        others = (
            other.number_at(time if place < log else time - 1)
            for place, other in enumerate(self.logs)
            if place != log
        )
        return number + sum(others)

    def _timed(self, log: int, begin: int) -> Iterator[tuple[int, int, Line]]:
        source = self.logs[log]
        if begin < source.total:
            for line in source.lines(begin):
                yield source.time_at(line.end), log, line

    def _begins(self, first: int) -> list[int]:
        """How many lines of each log come before the one with this number."""
        if len(self.logs) == 1:
            return [first]
        spans = [log.span() for log in self.logs if log.total]
        times = range(min(begin for begin, _ in spans), max(end for _, end in spans) + 1)
        at = times[bisect_right(times, first, key=self._not_later)]
        begins = [log.number_at(at - 1) for log in self.logs]
        rest = first - sum(begins)
        for place, log in enumerate(self.logs):
            now = min(rest, log.number_at(at) - begins[place])
            begins[place] += now
            rest -= now
            if rest == 0:
                break
        return begins

    def _not_later(self, time: int) -> int:
        return sum(log.number_at(time) for log in self.logs)


def _marks(log: Path, log_size: int) -> tuple[array[int], array[int]]:
    """Times and offsets of the index, as far as it can be believed."""
    fd = open_log(index_path(log))
    if fd is None:
        return array("q"), array("q")
    try:
        data = os.pread(fd, count_marks(fd, log_size) * RECORD.size, len(MAGIC))
        both = array("q", data[: len(data) - len(data) % RECORD.size])
    finally:
        os.close(fd)
    return both[::2], both[1::2]
