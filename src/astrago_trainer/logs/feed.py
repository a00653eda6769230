"""A log that is being followed: opened once for all its readers, each of which has only a place in it.

There is no queue. Who reads slowly reads later, from the file; who reads at the same place as another gets the same
bytes object, so a thousand followers cost one read.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from astrago_trainer.logs.gap import Gap, around, read_gap
from astrago_trainer.logs.layout import open_log
from astrago_trainer.logs.lines import Chunk, Dropped, DroppedChunk, whole_characters
from astrago_trainer.logs.watch import TICK

CHUNK = 1 << 16
"""Bytes that a reader gets at once at most."""
_PER_LISTENER = 50e-6
"""Seconds that waking one reader and sending to it may take: with many of them ticks are longer, not later."""
_NOTHING = Chunk(-1, b"")


class Feed:
    """One file. It need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listeners: set[Callable[[], None]] = set()
        self.is_gone = False
        """It was deleted: there is a rest to read, but no more to wait for."""
        self.size = 0
        self._fd: int | None = None
        self._last = _NOTHING

    def probe(self) -> float | None:
        """Wakes the listeners when there is something new."""
        try:
            if not self._open():
                return None
        except OSError:  # not for us to read: its readers are told when they try
            self._wake()
            return None
        assert self._fd is not None
        status = os.fstat(self._fd)
        is_gone = status.st_nlink == 0
        if (status.st_size, is_gone) == (self.size, self.is_gone):
            return None
        if status.st_size < self.size:
            self._last = _NOTHING
        self.size, self.is_gone = status.st_size, is_gone
        self._wake()
        return max(TICK, len(self.listeners) * _PER_LISTENER)

    def read(self, offset: int, *, ends: bool, waits: bool) -> Chunk | None:
        """Whole characters from there on; None: there are none yet. `ends`: no more will come, so take what is there.

        Unless it `waits`, raises BlockingIOError where the disk would have to be asked.
        """
        if self._last.offset == offset:
            return self._last
        if not self._open():
            return None
        assert self._fd is not None
        size = os.fstat(self._fd).st_size
        if size < offset:  # cut off by its own process: what comes now is a new beginning
            offset = 0
        chunk, stop = self._read_chunk(offset, size, waits=waits)
        if not (ends or self.is_gone or stop < size):
            chunk = Chunk(chunk.offset, chunk.data[: whole_characters(chunk.data)])
        if not chunk.data:
            return None
        self._last = chunk
        return chunk

    def _read_chunk(self, offset: int, size: int, *, waits: bool) -> tuple[Chunk, int]:
        """The next bytes, and where what they are of ends: the line about a dropped part is a chunk of its own."""
        assert self._fd is not None
        gap = self._gap(size)
        while True:
            begin, stop, is_line = (
                (offset, size, False) if gap is None else around(gap, offset, size)
            )
            data = _read(self._fd, min(CHUNK, stop - begin), begin, waits=waits)
            before, gap = gap, self._gap(size)
            if gap == before or gap is None:
                if gap is None or not is_line:
                    return Chunk(begin, data), stop
                return DroppedChunk.about(begin, data, Dropped(gap.bytes, gap.lines)), stop
            # More was dropped while this was read: the bytes may be zeros.

    def _gap(self, size: int) -> Gap | None:
        gap = read_gap(self.path)
        return gap if gap is not None and gap.end <= size else None

    def fetch(self, offset: int) -> None:
        """Waits for the disk, for a thread; the bytes are in memory then."""
        if self._fd is not None:
            os.pread(self._fd, CHUNK, offset)

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _wake(self) -> None:
        for wake in self.listeners:
            wake()

    def _open(self) -> bool:
        if self._fd is None:
            self._fd = open_log(self.path)
        return self._fd is not None


class Place:
    """Where one reader is."""

    __slots__ = ("feed", "is_behind", "offset")

    def __init__(self, feed: Feed, offset: int) -> None:
        self.feed = feed
        self.offset = offset
        self.is_behind = False
        """There was more than it got."""

    def take(self, *, ends: bool, waits: bool = True) -> Chunk | None:
        chunk = self.feed.read(self.offset, ends=ends, waits=waits)
        self.is_behind = False
        if chunk is not None:
            self.offset = chunk.end
            self.is_behind = len(chunk.data) > CHUNK - 4  # short of at most a cut character
        return chunk


def _read(fd: int, length: int, offset: int, *, waits: bool) -> bytes:
    if waits or length == 0:
        return os.pread(fd, length, offset)
    buffer = bytearray(length)
    try:
        got = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
        return os.pread(fd, length, offset)  # a file system in memory
    return bytes(buffer[:got])
