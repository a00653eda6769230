"""The index of times beside a log: at this moment the file had this many bytes.

A header of 16 bytes, then records of 16: time (nanoseconds since 1970) and offset, both signed, little-endian, neither
ever less than in the record before. A record lies within one page, so it is there whole or not at all; a torn or zeroed
end (full disk, power loss) is left out. The bytes between two offsets were written between the two times.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from astrago_trainer.logs.layout import index_path, open_log

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"astrago-logidx1\n"
RECORD = struct.Struct("<qq")
EVERY_BYTES = 65536
EVERY_SECONDS = 1.0
BURST = EVERY_SECONDS + 0.25
"""A longer gap between two records means silence, and then all the bytes at its end; the rest is for a late look."""
_WINDOW = 4096  # records that a cursor holds: 64 KiB


class Mark(NamedTuple):
    """At `time` (seconds since 1970) the log had `offset` bytes."""

    time: float
    offset: int


def read_marks(fd: int, first: int, count: int) -> list[Mark]:
    """Whole records only, fewer at the end."""
    data = os.pread(fd, count * RECORD.size, len(MAGIC) + first * RECORD.size)
    whole = data[: len(data) - len(data) % RECORD.size]
    return [Mark(time / 1e9, offset) for time, offset in RECORD.iter_unpack(whole)]


def count_marks(fd: int, log_size: int) -> int:
    """How many records at the front can be believed for a log of that size; 0 for a foreign file."""
    if os.pread(fd, len(MAGIC), 0) != MAGIC:
        return 0
    count = max(0, os.fstat(fd).st_size - len(MAGIC)) // RECORD.size
    while count and _mark(fd, count - 1) in (None, Mark(0.0, 0)):
        count -= 1  # zeros where the disk lost what the file's size promised
    return _first(fd, count, lambda mark: mark.offset > log_size)


def _first(fd: int, count: int, holds: Callable[[Mark], bool]) -> int:
    """The first record for which it holds, by halving; `count` when it holds for none."""

    def holds_at(at: int) -> bool:
        mark = _mark(fd, at)
        return mark is None or holds(mark)

    return bisect_left(range(count), True, key=holds_at)


def _mark(fd: int, at: int) -> Mark | None:
    """None: the file became shorter while we read it."""
    marks = read_marks(fd, at, 1)
    return marks[0] if marks else None


class TimeIndex:
    """Reads the index of one log. There may be none, or it may end early: then the answers are coarser."""

    def __init__(self, log: Path) -> None:
        self._path = index_path(log)

    def last_before(self, time: float, log_size: int) -> tuple[Mark | None, bool]:
        """The last record not later than `time`, and whether it is the last of all."""
        fd = open_log(self._path)
        if fd is None:
            return None, True
        try:
            count = count_marks(fd, log_size)
            after = _first(fd, count, lambda mark: mark.time > time)
            return (_mark(fd, after - 1) if after else None), after == count
        finally:
            os.close(fd)

    def cursor(self, log_size: int) -> TimeCursor:
        """For many questions in the order of the offsets."""
        return TimeCursor(self._path, log_size)


class TimeCursor:
    """Times for offsets that only grow; holds a window of the index."""

    def __init__(self, path: Path, log_size: int) -> None:
        self._path = path
        self._size = log_size
        self._is_over = False
        self._marks: list[Mark] = []
        self._offsets: list[int] = []

    def time_at(self, end: int) -> float | None:
        """When the byte before `end` was written, about; None where the index does not reach.

        Within a second of steady output the bytes are spread evenly; after a silence they are as late as the record.
        """
        if not self._offsets or self._offsets[-1] < end:
            self._is_over = self._is_over or not self._advance(end)
            if self._is_over:
                return None
        at = bisect_left(self._offsets, end)
        mark = self._marks[at]
        if at == 0:
            return mark.time
        before = self._marks[at - 1]
        if mark.time - before.time > BURST or mark.offset <= before.offset:
            return mark.time
        share = (end - before.offset) / (mark.offset - before.offset)
        return before.time + share * (mark.time - before.time)

    def _advance(self, end: int) -> bool:
        """Moves the window so that it ends at or behind `end`, with one record before it."""
        fd = open_log(self._path)
        if fd is None:
            return False
        try:
            count = count_marks(fd, self._size)
            reaches = _first(fd, count, lambda mark: mark.offset >= end)
            if reaches == count:
                return False
            first = max(0, reaches - 1)
            self._marks = read_marks(fd, first, min(_WINDOW, count - first))
            self._offsets = [mark.offset for mark in self._marks]
            return bool(self._offsets) and self._offsets[-1] >= end
        finally:
            os.close(fd)
