"""The part of a log that was dropped to keep it below its limit.

A log keeps its beginning and its end. What lies between is freed by a hole in the file (`fallocate`), so every byte
that is left stays at its offset: readers, cursors and the index of times go on as they are. At the beginning of the
dropped part stands a line that says how much it was, and beside the log lies `<log>.gap`, which says where it is.

The order is: record, line, hole. Whoever reads the record after having read bytes knows which of them to believe.
Imported by the supervisor of a job: standard library only, and little of it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from astrago_trainer.logs.layout import GAP_SUFFIX
from astrago_trainer.logs.limits import LEAST_LOG_BYTES

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"astrago-loggap1\n"
LINE_BYTES = 128
"""Of the line about the dropped part, its newline included: it is rewritten when the part grows."""
_RECORD = struct.Struct("<16sqqqqI")
_BLOCK = 1 << 20
_SEEK_NEWLINE = 1 << 16
"""How far a newline is looked for, so that whole lines are dropped."""
_KEEP_SIZE, _PUNCH_HOLE = 1, 2
_HEAD_SHARE, _STEP_SHARE = 16, 16
_TORN_READS = 5


class Gap(NamedTuple):
    """The dropped part of one log, by offsets in its file."""

    marker: int
    """Where the line about it begins."""
    end: int
    """Where the log continues."""
    bytes: int
    """Dropped in all."""
    lines: int

    @property
    def start(self) -> int:
        """Behind the line about it; from here to `end` there is nothing."""
        return self.marker + LINE_BYTES

    @property
    def skipped(self) -> int:
        return self.end - self.start


class Cap:
    """Keeps one log below its limit while it grows."""

    def __init__(self, log: str | Path, most: int) -> None:
        self._log = os.fspath(log)
        self._most = max(most, LEAST_LOG_BYTES) if most else 0
        self._next: int | None = None

    def apply(self, size: int) -> Gap | None:
        """Call it when the log has grown to `size`; the dropped part, if it has changed.

        Raises OSError, of EOPNOTSUPP where the file system cannot free a part of a file.
        """
        if not self._most:
            return None
        if self._next is None:
            self._next = size + self._left(size, read_gap(self._log))
        if size < self._next:
            return None
        head, step = self._most // _HEAD_SHARE, self._most // _STEP_SHARE
        gap = trim(self._log, head, self._most - head - step)
        # In steps, so that the cost for each byte is constant.
        self._next = size + max(self._left(size, gap or read_gap(self._log)), step // 2)
        return gap

    def _left(self, size: int, gap: Gap | None) -> int:
        """Bytes to the limit."""
        return self._most - (size - (gap.skipped if gap else 0))


def read_gap(log: str | Path) -> Gap | None:
    """None: nothing was dropped."""
    try:
        record = os.open(os.fspath(log) + GAP_SUFFIX, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        return _read(record)
    finally:
        os.close(record)


def around(gap: Gap, offset: int, size: int) -> tuple[int, int, bool]:
    """Where a reader at this offset goes on, up to where, and whether that is the line about the dropped part.

    One that was overtaken by the dropped part gets the line, then what is behind it.
    """
    if offset < gap.marker:
        return offset, gap.marker, False
    if offset == gap.start:
        return gap.end, size, False
    if offset < gap.end:
        return gap.marker, gap.start, True
    return offset, size, False


def trim(log: str | Path, head: int, tail: int) -> Gap | None:
    """Drops all but the first and the last bytes, to whole lines; None when there is nothing to drop.

    Any process may do it, at any time. Raises OSError, of EOPNOTSUPP where the file system cannot free part of a file.
    """
    path = os.fspath(log)
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags)
    try:
        size = os.fstat(fd).st_size
        if size <= head + tail + LINE_BYTES:
            return None
        _punch(
            fd, size + _BLOCK, _BLOCK
        )  # behind the end: frees nothing, tells whether it can be done
        record = os.open(path + GAP_SUFFIX, flags | os.O_CREAT, 0o600)
        try:
            fcntl.flock(record, fcntl.LOCK_EX)
            gap = _next_gap(fd, size, _read(record), head, tail)
            if gap is not None:
                os.pwrite(record, _packed(gap), 0)
                os.pwrite(fd, _line(gap), gap.marker)
                _punch(fd, gap.start, gap.skipped)
            return gap
        finally:
            os.close(record)
    finally:
        os.close(fd)


def _next_gap(fd: int, size: int, before: Gap | None, head: int, tail: int) -> Gap | None:
    end = _after_newline(fd, size - tail, size)
    if before is None or before.end > size:  # a log that was cut off has no dropped part any more
        marker = _end_of_head(fd, head)
        if end <= marker + LINE_BYTES:
            return None
        return Gap(marker, end, end - marker, _newlines(fd, marker, end))
    end = max(end, before.end)
    marker = _end_of_head(fd, head) if before.marker > head else before.marker
    if (marker, end) == before[:2]:
        return None
    more = (before.marker - marker) + (end - before.end)
    lines = _newlines(fd, marker, before.marker) + _newlines(fd, before.end, end)
    return Gap(marker, end, before.bytes + more, before.lines + lines)


def _end_of_head(fd: int, head: int) -> int:
    """Behind the last line of the head; where that line is very long, it is ended there."""
    begin = max(0, head - _SEEK_NEWLINE)
    newline = os.pread(fd, head - begin, begin).rfind(b"\n")
    if newline >= 0:
        return begin + newline + 1
    if head == 0:
        return 0
    os.pwrite(fd, b"\n", head)
    return head + 1


def _after_newline(fd: int, place: int, size: int) -> int:
    data = os.pread(fd, min(_SEEK_NEWLINE, size - place), place)
    return place + data.find(b"\n") + 1


def _newlines(fd: int, start: int, stop: int) -> int:
    found = 0
    while start < stop:
        data = os.pread(fd, min(_BLOCK, stop - start), start)
        if not data:
            break
        found += data.count(b"\n")
        start += len(data)
    return found


def _line(gap: Gap) -> bytes:
    text = f"[astrago: {gap.bytes} bytes in {gap.lines} lines were dropped here, the log is over its limit]"
    return text.encode().ljust(LINE_BYTES - 1)[: LINE_BYTES - 1] + b"\n"


def _packed(gap: Gap) -> bytes:
    return _RECORD.pack(MAGIC, *gap, hash_of(gap))


def hash_of(gap: Gap) -> int:
    """A check of the record: a reader may see it half written."""
    import zlib  # not before something is dropped

    return zlib.crc32(repr(tuple(gap)).encode())


def _read(record: int) -> Gap | None:
    for _ in range(_TORN_READS):
        data = os.pread(record, _RECORD.size, 0)
        if len(data) < _RECORD.size:
            return None
        magic, *numbers, check = _RECORD.unpack(data)
        gap = Gap(*numbers)
        if magic == MAGIC and check == hash_of(gap) and gap.marker >= 0 and gap.start <= gap.end:
            return gap
    return None


def _punch(fd: int, start: int, length: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "fallocate"):  # not Linux
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    done = libc.fallocate(
        fd, _KEEP_SIZE | _PUNCH_HOLE, ctypes.c_longlong(start), ctypes.c_longlong(length)
    )
    if done != 0:
        number = ctypes.get_errno()
        number = errno.EOPNOTSUPP if number == errno.ENOSYS else number
        raise OSError(number, os.strerror(number))
