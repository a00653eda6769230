"""Line number to place (see `view`), sparsely: how many newlines lie before every 64 KiB of a log.

Built once by counting, as far as somebody asked, and continued when the file grew: 128 KiB of memory for 1 GB of log.
"""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left

from astrago_trainer.logs.gap import Gap
from astrago_trainer.logs.view import View

STEP = 1 << 16
_READ = 16 * STEP


class LineIndex:
    """Of one file. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inode = 0
        self._gap: Gap | None = None
        self._counts = array("Q", [0])
        self._end = 0
        self._newlines = 0

    def newlines(self, log: View, size: int, *, enough: int | None = None) -> int:
        """Newlines in the first `size` bytes; counting may stop when `enough` were found."""
        with self._lock:
            self._extend(log, size, enough)
            if self._end > size:  # another thread counted further
                return self._newlines - _count(log, size, self._end)
            return self._newlines

    def extend(self, log: View, size: int) -> None:
        """Counts as far as `size`, where nobody has yet."""
        with self._lock:
            self._extend(log, size, None)

    def before(self, offset: int) -> tuple[int, int]:
        """A place at or before `offset`, and how many newlines lie before that place."""
        with self._lock:
            at = min(offset // STEP, len(self._counts) - 1)
            return at * STEP, self._counts[at]

    def line(self, number: int) -> tuple[int, int]:
        """A place before the start of that line, and how many newlines there are still to pass."""
        with self._lock:
            at = max(0, bisect_left(self._counts, number) - 1)
            return at * STEP, number - self._counts[at]

    def _extend(self, log: View, size: int, enough: int | None) -> None:
        inode = os.fstat(log.fd).st_ino
        # Another file, cut off, or with other places since more of it was dropped.
        if inode != self._inode or log.gap != self._gap or log.length < self._end:
            self._inode, self._gap = inode, log.gap
            self._counts = array("Q", [0])
            self._end = self._newlines = 0
        if self._end >= size:
            return
        while self._end < size and (enough is None or self._newlines < enough):
            room = min(_READ - self._end % STEP, size - self._end)
            data = log.pread(room, self._end)
            if not data:
                return
            self._count(data)

    def _count(self, data: bytes) -> None:
        at, length = 0, len(data)
        while at < length:
            stop = min(length, at + STEP - self._end % STEP)
            self._newlines += data.count(b"\n", at, stop)
            self._end += stop - at
            at = stop
            if self._end % STEP == 0:
                self._counts.append(self._newlines)


def _count(log: View, start: int, stop: int) -> int:
    found = 0
    while start < stop:
        data = log.pread(min(STEP, stop - start), start)
        if not data:
            break
        found += data.count(b"\n")
        start += len(data)
    return found
