"""Writes a log that arrives over the network, so that it can be gone on with after a crash.

The source (the kubelet) can repeat what it said from some point on, which it knows by a token of its own: a time and a
count, say. Now and then the writer makes the log durable and then notes "so many bytes, this token". After a crash the
log may be longer than that note. The source is asked to repeat from the token, and the writer leaves out what it has:
nothing is lost, nothing comes twice, and no byte that a reader has seen is taken back.
"""

from __future__ import annotations

import errno
import os
import struct
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from astrago_trainer.logs.gap import Cap
from astrago_trainer.logs.indexer import Indexer
from astrago_trainer.logs.layout import create_log, position_path
from astrago_trainer.logs.limits import LogLimits, has_space
from astrago_trainer.logs.share import TenantShare

MAX_TOKEN = 200
_NOTE = struct.Struct("<qqB")  # number of the note, bytes of the log, length of the token
_SLOT = 256


class _Note(NamedTuple):
    number: int
    offset: int
    token: bytes


class LogWriter:
    """The only writer of one log."""

    def __init__(
        self,
        path: Path,
        *,
        sync_every: float | None = 1.0,
        limits: LogLimits = LogLimits(),  # noqa: B008 - a constant
        tenant: Path | None = None,
    ) -> None:
        """Notes its place at most once in `sync_every` seconds (0: with each append, None: when closed).

        `tenant` is the folder of a namespace, whose logs together have a limit as well.
        """
        self._limits = limits
        self._cap = Cap(path, limits.log)
        self._share = TenantShare(str(tenant or ""), limits.tenant if tenant else 0)
        self._left_out = 0
        """Bytes beyond the limit, where the file system cannot free a part of a file."""
        self._fd = create_log(path)
        self._reading = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._notes = os.open(position_path(path), flags, 0o600)
        self._indexer = Indexer(path)
        self._sync_every = float("inf") if sync_every is None else sync_every
        self._synced = time.monotonic()
        self._time = 0.0
        self.end = os.fstat(self._fd).st_size
        """Bytes in the log."""
        last = _last_note(self._notes, self.end)
        self.token = last.token
        """The source's place. From here it must repeat when the writer is opened; empty: from its beginning."""
        self._number = last.number
        self._repeated = self.end - last.offset

    def append(self, data: bytes, when: float, token: bytes = b"") -> None:
        """What the source said next, or repeats first; `token` stands for the place behind it.

        After an OSError (a full disk) part of it may be in the log: close the writer and open a new one. A disk with
        less free space than the reserve counts as full: the source has the log meanwhile.
        """
        if len(token) > MAX_TOKEN:
            raise ValueError(f"a token has at most {MAX_TOKEN} bytes, not {len(token)}")
        self._time = when
        self._write(self._without_repetition(data))
        self._indexer.note(when)
        self.token = token
        if time.monotonic() - self._synced >= self._sync_every:
            self.commit()

    def commit(self) -> None:
        """Makes the log durable, then the note of its place."""
        os.fdatasync(self._fd)
        self._number += 1
        place = self.end - self._repeated  # of the source, which the token stands for
        note = _NOTE.pack(self._number, place, len(self.token)) + self.token
        # Two slots by turns: a note that is torn by a power loss leaves the one before.
        slot = (note + zlib.crc32(note).to_bytes(4, "little")).ljust(_SLOT, b"\0")
        os.pwrite(self._notes, slot, self._number % 2 * _SLOT)
        os.fdatasync(self._notes)
        self._synced = time.monotonic()

    def close(self) -> None:
        if self._left_out:
            self._say_left_out()
        self._share.finish()
        self.commit()
        self._indexer.finish(self._time or time.time())
        for fd in (self._fd, self._reading, self._notes):
            os.close(fd)

    def _write(self, data: bytes) -> None:
        if self._left_out:
            self._left_out += len(data)
            return
        if data and not has_space(self._fd, len(data), self._limits.reserve):
            raise OSError(errno.ENOSPC, "less space is free than ASTRAGO_DISK_RESERVE_BYTES")
        self._share.wrote(len(data))
        while data:
            written = os.write(self._fd, data)
            self.end += written
            data = data[written:]
        try:
            gap = self._cap.apply(self.end)
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                raise
            self._left_out = 1  # from here on
            return
        if gap is not None:
            self._indexer.drop(gap.marker, gap.end)

    def _say_left_out(self) -> None:
        """Of a log at its limit that cannot drop its middle."""
        text = (
            f"[astrago: {self._left_out - 1} bytes were dropped here, the log is over its limit]\n"
        )
        self.end += os.write(self._fd, text.encode())
        self._left_out = 0

    def _without_repetition(self, data: bytes) -> bytes:
        length = min(len(data), self._repeated)
        if not length:
            return data
        if os.pread(self._reading, length, self.end - self._repeated) != data[:length]:
            # The source does not say the same again (it lost its own log): rather twice than not at all.
            self._repeated = 0
            return data
        self._repeated -= length
        return data[length:]


def _last_note(fd: int, size: int) -> _Note:
    """The newest that is whole and does not speak of bytes that the log does not have."""
    notes = [note for at in (0, _SLOT) if (note := _read_note(fd, at)) and note.offset <= size]
    return max(notes, default=_Note(0, 0, b""))


def _read_note(fd: int, at: int) -> _Note | None:
    data = os.pread(fd, _SLOT, at)
    if len(data) < _SLOT:
        return None
    number, offset, length = _NOTE.unpack_from(data)
    end = _NOTE.size + length
    if data[end : end + 4] != zlib.crc32(data[:end]).to_bytes(4, "little"):
        return None
    return _Note(number, offset, data[_NOTE.size : end])
