"""Line number to byte, sparsely: how many newlines lie before every 64 KiB of the file.

Built once by counting, as far as somebody asked, and continued when the file grew: 128 KiB of memory for 1 GB of log.
"""

from __future__ import annotations

import os
import threading
from array import array
from bisect import bisect_left

STEP = 1 << 16
_READ = 16 * STEP


class LineIndex:
    """Of one file. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inode = 0
        self._counts = array("Q", [0])
        self._end = 0
        self._newlines = 0

    def newlines(self, fd: int, size: int, *, enough: int | None = None) -> int:
        """Newlines in the first `size` bytes; counting may stop when `enough` were found."""
        with self._lock:
            self._extend(fd, size, enough)
            if self._end > size:  # another thread counted further
                return self._newlines - _count(fd, size, self._end)
            return self._newlines

    def extend(self, fd: int, size: int) -> None:
        """Counts as far as `size`, where nobody has yet."""
        with self._lock:
            self._extend(fd, size, None)

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

    def _extend(self, fd: int, size: int, enough: int | None) -> None:
        status = os.fstat(fd)
        if status.st_ino != self._inode or status.st_size < self._end:  # another file, or cut off
            self._inode = status.st_ino
            self._counts = array("Q", [0])
            self._end = self._newlines = 0
        if self._end >= size:
            return
        buffer = bytearray(_READ)
        view = memoryview(buffer)
        while self._end < size and (enough is None or self._newlines < enough):
            room = min(_READ - self._end % STEP, size - self._end)
            length = os.preadv(fd, [view[:room]], self._end)
            if not length:
                return
            self._count(buffer, length)

    def _count(self, buffer: bytearray, length: int) -> None:
        at = 0
        while at < length:
            stop = min(length, at + STEP - self._end % STEP)
            self._newlines += buffer.count(b"\n", at, stop)
            self._end += stop - at
            at = stop
            if self._end % STEP == 0:
                self._counts.append(self._newlines)


def _count(fd: int, start: int, stop: int) -> int:
    found = 0
    while start < stop:
        data = os.pread(fd, min(STEP, stop - start), start)
        if not data:
            break
        found += data.count(b"\n")
        start += len(data)
    return found
