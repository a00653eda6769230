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
from astrago_trainer.logs.view import View, opened

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

    def of(self, path: Path, log: View, stop: int) -> LineIndex:
        """Of an open log, counted up to a place."""
        index, end, tail = self._known.get(path) or _Known(LineIndex(), 0, b"")
        if log.pread(len(tail), end - len(tail)) != tail:
            index, end, tail = LineIndex(), 0, b""
        index.extend(log, stop)
        if stop > end:
            begin = max(0, stop - _TAIL)
            end, tail = stop, log.pread(stop - begin, begin)
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
        self._stack = ExitStack()
        log = self._log = self._stack.enter_context(opened(path))
        self._times, self._ends = _marks(path, log)
        changed = os.fstat(log.fd).st_mtime_ns
        self._late = max(changed, self._times[-1] if self._times else 0)
        self._stop = log.length if stop is None else log.place(min(stop, log.size))
        self._index = indexes.of(path, log, self._stop)
        if stop is None and not is_over:
            known = min(self._stop, self._ends[-1] if self._ends else self._stop)
            self._stop = self._start_of(self._newlines(known))
        is_open = self._stop > 0 and log.pread(1, self._stop - 1) != b"\n"
        self.total = self._newlines(self._stop) + is_open

    @property
    def stop(self) -> int:
        """The offset up to which it was counted."""
        return self._log.offset(self._stop)

    def close(self) -> None:
        self._stack.close()

    def span(self) -> tuple[int, int]:
        """Nanoseconds: before every line, and not before any."""
        first = min(self._times[0] if self._times else self._late, self._late)
        return first - 1, self._late

    def time_at(self, offset: int) -> int:
        """When the line that ends there was written, about, in nanoseconds."""
        end = self._log.place(offset)
        at = bisect_left(self._ends, end)
        if at == len(self._ends):
            return self._late
        if at == 0 or not self._is_steady(at):
            return self._times[at]
        before, width = self._ends[at - 1], self._ends[at] - self._ends[at - 1]
        gap = self._times[at] - self._times[at - 1]
        return self._times[at - 1] + gap * (end - before) // width

    def number_at(self, time: int) -> int:
        """How many lines are not later than this."""
        reach = self._reach(time)
        return self.total if reach >= self._stop else self._newlines(reach)

    def number_of(self, offset: int) -> int:
        """Of the line in which that byte lies."""
        place = min(self._log.place(offset), self._stop)
        return min(self._newlines(place), max(0, self.total - 1))

    def start_of(self, number: int) -> int:
        return self._log.offset(self._start_of(number))

    def lines(self, first: int) -> Iterator[Line]:
        start = self._start_of(first)
        cutter = LineCutter(start, max_line=MAX_SHOWN)
        for data in blocks(self._log, start, self._stop):
            yield from self._log.all_shown(cutter.feed(data))
        if (rest := cutter.rest()) is not None:
            yield self._log.shown(rest)

    def _start_of(self, number: int) -> int:
        return pass_newlines(self._log, *self._index.line(number), self._stop)

    def _is_steady(self, at: int) -> bool:
        is_short = self._times[at] - self._times[at - 1] <= _BURST
        return is_short and self._ends[at] > self._ends[at - 1]

    def _reach(self, time: int) -> int:
        """The last place at which a line may end that is not later: the other direction of `time_at`."""
        at = bisect_right(self._times, time)
        if at == len(self._times):
            return self._stop if self._late <= time else self._ends[at - 1] if at else 0
        if at == 0:
            return 0
        before = self._ends[at - 1]
        if not self._is_steady(at):
            return before
        gap = self._times[at] - self._times[at - 1]
        width = self._ends[at] - before
        return before + min(width, ((time - self._times[at - 1] + 1) * width - 1) // gap)

    def _newlines(self, stop: int) -> int:
        place, count = self._index.before(stop)
        return count + sum(data.count(b"\n") for data in blocks(self._log, place, stop))


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


def _marks(path: Path, log: View) -> tuple[array[int], array[int]]:
    """Times and places of the index, as far as it can be believed."""
    fd = open_log(index_path(path))
    if fd is None:
        return array("q"), array("q")
    try:
        data = os.pread(fd, count_marks(fd, log.size) * RECORD.size, len(MAGIC))
        both = array("q", data[: len(data) - len(data) % RECORD.size])
    finally:
        os.close(fd)
    times, ends = both[::2], both[1::2]
    if log.gap is not None:
        start = log.gap.start  # what was said of the dropped part is said of the line about it
        ends = array(
            "q", (log.place(end) if end >= log.gap.end else min(end, start) for end in ends)
        )
    return times, ends
