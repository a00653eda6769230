"""What is in a log, by offset, line number and time; for the server, in threads, and for the command line.

Every call works on a file that is missing (as if empty), grows while it is read (it sees the size it had when called)
or is cut off (it ends early). No call holds more than a few blocks, whatever the size of the log or of a line in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from astrago_trainer.logs.blocks import BLOCK, blocks, lines_back
from astrago_trainer.logs.index import TimeIndex
from astrago_trainer.logs.layout import open_log
from astrago_trainer.logs.line_index import LineIndex
from astrago_trainer.logs.lines import (
    MAX_LINE,
    Chunk,
    Line,
    LineCutter,
    character_start,
    whole_characters,
)

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
        with self._opened() as (_, size):
            return size

    def read(self, offset: int, limit: int = BLOCK) -> Chunk:
        """Up to `limit` bytes from there; the last character is left for the next call when it is cut."""
        with self._opened() as (fd, size):
            data = os.pread(fd, limit, offset) if 0 <= offset < size else b""
            if offset + len(data) < size:
                data = data[: whole_characters(data)] or data
            return Chunk(offset, data)

    def iter_bytes(
        self, start: int = 0, stop: int | None = None, *, block: int = DOWNLOAD_BLOCK
    ) -> Iterator[bytes]:
        """The bytes as they are, for a download."""
        with self._opened() as (fd, size):
            yield from blocks(fd, start, size if stop is None else min(stop, size), block)

    def tail_offset(self, lines: int) -> int:
        """Where the last lines begin; reads no more than these."""
        with self._opened() as (fd, size):
            return lines_back(fd, size, lines)

    def tail(self, lines: int, *, limit: int = TAIL_BYTES) -> Chunk:
        """The bytes of the last lines. Of more than `limit` bytes the first lines are left out, and of a single
        line that is longer its first part."""
        with self._opened() as (fd, size):
            begin = lines_back(fd, size, lines, floor=max(0, size - limit))
            data = os.pread(fd, size - begin, begin)
            if begin > 0 and os.pread(fd, 1, begin - 1) != b"\n":
                newline = data.find(b"\n", 0, -1)
                skip = newline + 1 if newline >= 0 else character_start(data)
                begin, data = begin + skip, data[skip:]
            return Chunk(begin, data)

    def tail_lines(
        self, lines: int, *, raw: bool = False, limit: int | None = None
    ) -> Iterator[Line]:
        """The last lines, as people see them; with a limit, those in the last `limit` bytes.

        Then the first may be the end of a line: of a progress bar still its last state.
        """
        with self._opened() as (fd, size):
            floor = 0 if limit is None else max(0, size - limit)
            begin = lines_back(fd, size, lines, floor=floor)
            yield from self._cut(fd, begin, size, raw=raw)

    def lines(self, first: int, count: int, *, raw: bool = False) -> Iterator[Line]:
        """Lines by number, from 0."""
        with self._opened() as (fd, size):
            if first < 0 or count <= 0:
                return
            if self._line_index.newlines(fd, size, enough=first) < first:
                return
            start = pass_newlines(fd, *self._line_index.line(first), size)
            for number, line in enumerate(self._cut(fd, start, size, raw=raw), 1):
                yield line
                if number == count:
                    return

    def lines_from(
        self, offset: int, stop: int | None = None, *, raw: bool = False
    ) -> Iterator[Line]:
        """Lines from a byte on, up to another or to the end."""
        with self._opened() as (fd, size):
            yield from self._cut(fd, offset, size if stop is None else min(stop, size), raw=raw)

    def line_count(self) -> int:
        """A last line without a newline counts."""
        with self._opened() as (fd, size):
            if not size:
                return 0
            open_end = os.pread(fd, 1, size - 1) != b"\n"
            return self._line_index.newlines(fd, size) + open_end

    def line_number(self, offset: int) -> int:
        """Of the line in which that byte lies, from 0."""
        with self._opened() as (fd, size):
            offset = min(offset, size)
            self._line_index.extend(fd, offset)
            place, newlines = self._line_index.before(offset)
            return newlines + sum(data.count(b"\n") for data in blocks(fd, place, offset))

    def offset_at(self, time: float) -> int:
        """The start of the line from which on everything written at `time` or later is found.

        With the index at most a second (or 64 KiB) of earlier output comes along. Where the index ends early, or is
        missing, the time of the last change decides between everything and nothing.
        """
        with self._opened() as (fd, size):
            if not size:
                return 0
            mark, is_last = self._time_index.last_before(time, size)
            if is_last and time > os.fstat(fd).st_mtime + _COARSE:
                return size
            return self._line_start(fd, mark.offset) if mark else 0

    def time_at(self, offset: int) -> float | None:
        """When the byte before `offset` was written, to about a second; None: the index does not say."""
        return self._time_index.cursor(self.size).time_at(offset)

    def timed(self, lines: Iterable[Line]) -> Iterator[tuple[float, Line]]:
        """Lines in their order, each with when it was written, about; where the index ends, the last change."""
        with self._opened() as (fd, size):
            times, changed = self._time_index.cursor(size), os.fstat(fd).st_mtime
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

        with self._opened() as (fd, size):
            return search(
                fd,
                pattern,
                span=(start, size if stop is None else min(stop, size)),
                max_hits=max_hits,
                around=(before, after),
                plain=plain,
                ignore_case=ignore_case,
                raw=raw,
                budget=budget,
                max_line=self._max_line,
            )

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, int]]:
        fd = open_log(self.path)
        if fd is None:
            fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)  # as empty as a missing log
        try:
            yield fd, os.fstat(fd).st_size
        finally:
            os.close(fd)

    def _cut(self, fd: int, start: int, stop: int, *, raw: bool) -> Iterator[Line]:
        cutter = LineCutter(start, raw=raw, max_line=self._max_line)
        for data in blocks(fd, start, stop):
            yield from cutter.feed(data)
        if (rest := cutter.rest()) is not None:
            yield rest

    def _line_start(self, fd: int, offset: int) -> int:
        floor = max(0, offset - self._max_line)
        if offset == 0 or os.pread(fd, 1, offset - 1) == b"\n":
            return offset
        return lines_back(fd, offset, 1, floor=floor)


def pass_newlines(fd: int, start: int, newlines: int, stop: int) -> int:
    """The byte behind so many newlines."""
    for data in blocks(fd, start, stop):
        found = data.count(b"\n") if newlines else 0
        if found >= newlines:
            at = 0
            for _ in range(newlines):
                at = data.find(b"\n", at) + 1
            return start + at
        newlines -= found
        start += len(data)
    return stop
