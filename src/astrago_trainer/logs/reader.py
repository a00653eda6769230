"""What is in a log, by offset, line number and time; for the server, in threads, and for the command line.

Every call works on a file that is missing (as if empty), grows while it is read (it sees the size it had when called)
or is cut off (it ends early). No call holds more than a few blocks, whatever the size of the log or of a line in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from astrago_trainer.logs.blocks import BLOCK, blocks, lines_back
from astrago_trainer.logs.gap import around
from astrago_trainer.logs.index import TimeIndex
from astrago_trainer.logs.line_index import LineIndex
from astrago_trainer.logs.lines import (
    MAX_LINE,
    Chunk,
    Line,
    LineCutter,
    character_start,
    whole_characters,
)
from astrago_trainer.logs.view import View, opened

if TYPE_CHECKING:
    from astrago_trainer.logs.search import Found

TAIL_BYTES = 1 << 20
DOWNLOAD_BLOCK = 1 << 17
"""A client that does not read holds one of them: longer ones would be faster, and hundreds of such clients too dear."""
_COARSE = 0.01  # the kernel's clock for the times of files ticks every 1 to 10 ms


class LogFile:
    """One log. Cheap to make; keep it to keep its line index. Threads may share it."""

    def __init__(self, path: Path, *, max_line: int = MAX_LINE) -> None:
        self.path = path
        self._max_line = max_line
        self._line_index = LineIndex()
        self._time_index = TimeIndex(path)

    @property
    def size(self) -> int:
        """The offset at which it ends; of a log with a dropped part more than the bytes that are left."""
        with opened(self.path) as log:
            return log.size

    def read(self, offset: int, limit: int = BLOCK) -> Chunk:
        """Up to `limit` bytes from there; the last character is left for the next call when it is cut."""
        with opened(self.path) as log:
            stop = log.size
            if log.gap is not None:
                offset, stop, _ = around(log.gap, offset, stop)
            limit = min(limit, stop - offset)
            data = log.pread(limit, log.place(offset)) if 0 <= offset < stop else b""
            if offset + len(data) < stop:
                data = data[: whole_characters(data)] or data
            return Chunk(offset, data)

    def iter_bytes(
        self, start: int = 0, stop: int | None = None, *, block: int = DOWNLOAD_BLOCK
    ) -> Iterator[bytes]:
        """The bytes as they are, for a download."""
        return self.download(start, stop, block=block)[1]

    def download(
        self, start: int = 0, stop: int | None = None, *, block: int = DOWNLOAD_BLOCK
    ) -> tuple[int, Iterator[bytes]]:
        """How many bytes are left between two offsets, and just as many bytes.

        Those that are dropped while this reads come as zeros. To be read to its end, or closed.
        """
        stack = ExitStack()
        log = stack.enter_context(opened(self.path))
        first = log.place(start)
        last = max(first, log.length if stop is None else log.place(min(stop, log.size)))

        def content() -> Iterator[bytes]:
            with stack:
                yield from blocks(log.unchecked(), first, last, block)

        return last - first, content()

    def tail_offset(self, lines: int) -> int:
        """Where the last lines begin; reads no more than these."""
        with opened(self.path) as log:
            return log.offset(lines_back(log, log.length, lines))

    def tail(self, lines: int, *, limit: int = TAIL_BYTES) -> Chunk:
        """The bytes of the last lines. Of more than `limit` bytes the first lines are left out, and of a single
        line that is longer its first part."""
        with opened(self.path) as log:
            size = log.length
            begin = lines_back(log, size, lines, floor=max(0, size - limit))
            data = log.pread(size - begin, begin)
            if begin > 0 and log.pread(1, begin - 1) != b"\n":
                newline = data.find(b"\n", 0, -1)
                skip = newline + 1 if newline >= 0 else character_start(data)
                begin, data = begin + skip, data[skip:]
            return Chunk(log.offset(begin), data)

    def tail_lines(
        self, lines: int, *, raw: bool = False, limit: int | None = None
    ) -> Iterator[Line]:
        """The last lines, as people see them; with a limit, those in the last `limit` bytes.

        Then the first may be the end of a line: of a progress bar still its last state.
        """
        with opened(self.path) as log:
            floor = 0 if limit is None else max(0, log.length - limit)
            begin = lines_back(log, log.length, lines, floor=floor)
            yield from self._cut(log, begin, log.length, raw=raw)

    def lines(self, first: int, count: int, *, raw: bool = False) -> Iterator[Line]:
        """Lines by number, from 0."""
        with opened(self.path) as log:
            if first < 0 or count <= 0:
                return
            if self._line_index.newlines(log, log.length, enough=first) < first:
                return
            start = pass_newlines(log, *self._line_index.line(first), log.length)
            for number, line in enumerate(self._cut(log, start, log.length, raw=raw), 1):
                yield line
                if number == count:
                    return

    def lines_from(
        self, offset: int, stop: int | None = None, *, raw: bool = False
    ) -> Iterator[Line]:
        """Lines from a byte on, up to another or to the end."""
        with opened(self.path) as log:
            last = log.length if stop is None else log.place(min(stop, log.size))
            yield from self._cut(log, log.place(offset), last, raw=raw)

    def line_count(self) -> int:
        """A last line without a newline counts."""
        with opened(self.path) as log:
            if not log.length:
                return 0
            open_end = log.pread(1, log.length - 1) != b"\n"
            return self._line_index.newlines(log, log.length) + open_end

    def line_number(self, offset: int) -> int:
        """Of the line in which that byte lies, from 0."""
        with opened(self.path) as log:
            stop = log.place(min(offset, log.size))
            self._line_index.extend(log, stop)
            place, newlines = self._line_index.before(stop)
            return newlines + sum(data.count(b"\n") for data in blocks(log, place, stop))

    def offset_at(self, time: float) -> int:
        """The start of the line from which on everything written at `time` or later is found.

        With the index at most a second (or 64 KiB) of earlier output comes along. Where the index ends early, or is
        missing, the time of the last change decides between everything and nothing.
        """
        with opened(self.path) as log:
            if not log.size:
                return 0
            mark, is_last = self._time_index.last_before(time, log.size)
            if is_last and time > os.fstat(log.fd).st_mtime + _COARSE:
                return log.size
            return log.offset(self._line_start(log, log.place(mark.offset))) if mark else 0

    def time_at(self, offset: int) -> float | None:
        """When the byte before `offset` was written, to about a second; None: the index does not say."""
        return self._time_index.cursor(self.size).time_at(offset)

    def timed(self, lines: Iterable[Line]) -> Iterator[tuple[float, Line]]:
        """Lines in their order, each with when it was written, about; where the index ends, the last change."""
        with opened(self.path) as log:
            times, changed = self._time_index.cursor(log.size), os.fstat(log.fd).st_mtime
            latest = float("-inf")
            for line in lines:
                when = times.time_at(line.end)
                latest = max(latest, changed if when is None else when)
                yield latest, line

    def search(
        self,
        pattern: str,
        *,
        start: int = 0,
        stop: int | None = None,
        max_hits: int = 1000,
        before: int = 0,
        after: int = 0,
        plain: bool = False,
        ignore_case: bool = False,
        raw: bool = False,
        budget: float = 10.0,
    ) -> Found:
        """Lines in which a regular expression (or, `plain`, a text) is found, with the lines around them.

        It looks at lines as they are shown. Raises InvalidRequest for a pattern that is none. See `search`.
        """
        from astrago_trainer.logs.search import search  # brings subprocess, which few calls need

        with opened(self.path) as log:
            last = log.length if stop is None else log.place(min(stop, log.size))
            return search(
                log,
                pattern,
                span=(log.place(max(0, start)), last),
                max_hits=max_hits,
                around=(before, after),
                plain=plain,
                ignore_case=ignore_case,
                raw=raw,
                budget=budget,
                max_line=self._max_line,
            )

    def _cut(self, log: View, start: int, stop: int, *, raw: bool) -> Iterator[Line]:
        cutter = LineCutter(start, raw=raw, max_line=self._max_line)
        for data in blocks(log, start, stop):
            yield from log.all_shown(cutter.feed(data))
        if (rest := cutter.rest()) is not None:
            yield log.shown(rest)

    def _line_start(self, log: View, place: int) -> int:
        floor = max(0, place - self._max_line)
        if place == 0 or log.pread(1, place - 1) == b"\n":
            return place
        return lines_back(log, place, 1, floor=floor)


def pass_newlines(log: View, start: int, newlines: int, stop: int) -> int:
    """The place behind so many newlines."""
    for data in blocks(log, start, stop):
        found = data.count(b"\n") if newlines else 0
        if found >= newlines:
            at = 0
            for _ in range(newlines):
                at = data.find(b"\n", at) + 1
            return start + at
        newlines -= found
        start += len(data)
    return stop
