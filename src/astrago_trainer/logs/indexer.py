"""Writes the index of times while the log grows; for the supervisor of a job.

It never reads the log, only its size. The log is the truth and the index an aid: trouble with writing the index (a full
disk) is kept in `trouble` and tried again with the next record, and never reaches the training.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from astrago_trainer.logs.index import EVERY_BYTES, EVERY_SECONDS, MAGIC, RECORD, count_marks
from astrago_trainer.logs.layout import INDEX_SUFFIX
from astrago_trainer.logs.watch import TICK

if TYPE_CHECKING:
    from pathlib import Path


class Indexer:
    """The index of one log, continued where it ended."""

    def __init__(self, log: str | Path) -> None:
        self._log = os.fspath(log)
        self._fd: int | None = None
        self._count = 0
        self._time = 0
        self._offset = 0
        self._noted = float("-inf")
        self._recorded = float("-inf")
        self._size = 0
        self.trouble: OSError | None = None
        self._open()

    def note(self, now: float) -> float | None:
        """Looks at the log's size and records it when it is time, `now` being seconds since 1970.

        Returns the seconds after which to call again though nothing happens, None: not before the log grows.
        """
        size = self._log_size()
        if size < self._offset:
            self._forget()
        if size == self._offset:
            self._noted = float("-inf")
            return None
        # A clock that was set back must not stop the records.
        elapsed = now - self._recorded if now >= self._recorded else EVERY_SECONDS
        grown = size - self._offset
        if elapsed >= EVERY_SECONDS or grown >= EVERY_BYTES:
            self._record(now, size)
            elapsed, grown = 0.0, 0
        pause = self._pause(now, size, grown)
        self._noted, self._size = now, size
        return max(TICK, min(pause, EVERY_SECONDS - elapsed))

    def drop(self, start: int, end: int) -> None:
        """Leaves out the records of a part of the log that was dropped: the index stays as small as its log."""
        if self._fd is None or not self._count:
            return
        data = os.pread(self._fd, self._count * RECORD.size, len(MAGIC))
        kept = [each for each in RECORD.iter_unpack(data) if not start < each[1] < end]
        if len(kept) == self._count:
            return
        new = self._log + INDEX_SUFFIX + ".new"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(new, flags, 0o600)
            try:
                os.write(fd, MAGIC + b"".join(RECORD.pack(*each) for each in kept))
                os.replace(new, self._log + INDEX_SUFFIX)
            except OSError:
                os.close(fd)
                os.unlink(new)
                raise
        except OSError as error:
            self.trouble = error
            return
        os.close(self._fd)
        self._fd, self._count = fd, len(kept)

    def finish(self, now: float) -> None:
        """The last record, once nobody writes the log any more."""
        size = self._log_size()
        if size > self._offset:
            self._record(now, size)
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _pause(self, now: float, size: int, grown: int) -> float:
        """How long the log takes to the next record's worth of bytes, as fast as it grew lately."""
        seconds = now - self._noted
        if not 0 < seconds <= EVERY_SECONDS:
            return TICK  # it was silent until now: how fast it is shows soon
        fresh = size - self._size
        return (EVERY_BYTES - grown) * seconds / fresh if fresh > 0 else EVERY_SECONDS

    def _record(self, now: float, size: int) -> None:
        time = max(int(now * 1e9), self._time)
        data = RECORD.pack(time, size)
        at = len(MAGIC) + self._count * RECORD.size
        if self._count == 0:
            data, at = MAGIC + data, 0
        try:
            fd = self._open()
            # At its place, not appended: what a failed write left behind is written over.
            if fd is None or os.pwrite(fd, data, at) != len(data):
                return
        except OSError as error:
            self.trouble = error
            return
        self.trouble = None
        self._count += 1
        self._time, self._offset, self._recorded = time, size, now

    def _open(self) -> int | None:
        """None, with the trouble, where there is no place for an index."""
        if self._fd is None:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            try:
                self._fd = os.open(self._log + INDEX_SUFFIX, flags, 0o600)
            except OSError as error:
                self.trouble = error
                return None
            self._continue(self._fd)
        return self._fd

    def _continue(self, fd: int) -> None:
        self._count = count_marks(fd, self._log_size())
        at = len(MAGIC) + (self._count - 1) * RECORD.size
        if self._count:
            self._time, self._offset = RECORD.unpack(os.pread(fd, RECORD.size, at))
            self._recorded = self._time / 1e9
        os.ftruncate(fd, at + RECORD.size if self._count else 0)

    def _forget(self) -> None:
        """The log was cut off by its own process: an index of what it is now."""
        self._count = self._time = self._offset = 0
        self._recorded = float("-inf")
        if self._fd is not None:
            os.ftruncate(self._fd, 0)

    def _log_size(self) -> int:
        try:
            return os.stat(self._log).st_size
        except FileNotFoundError:
            return 0
