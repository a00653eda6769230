"""What a container says on its way into its log: a pipe, as under Kubernetes, read here and appended to a file.

Not the file itself: `echo … > /dev/stderr` opens what is behind descriptor 2 anew and would cut the log off, and a full
disk would fail the training instead of the log. Whoever reads the log needs nobody of us: it is a file all the same.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress

from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.logs.gap import Cap
from astrago_trainer.logs.indexer import Indexer
from astrago_trainer.logs.layout import create_log
from astrago_trainer.logs.limits import LogLimits, has_space
from astrago_trainer.logs.share import TenantShare

PAUSE = 0.005
"""Seconds between two looks at a pipe: what comes meanwhile is written in one piece."""
_PIPE_BYTES = 1024 * 1024
_CHUNK = 256 * 1024
_TURN_CHUNKS = 16
"""Of one pipe before the others have their turn: one that is never empty must not stop the job's supervisor."""
_LAST_BYTES = 256 * 1024
"""Kept in memory for the end of a log that cannot drop its middle."""
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", 1031)
_FULL = "the disk is nearly full"
_OVER_LIMIT = "the log is over its limit"


class Output:
    """The pipe and the log of one start of a container."""

    def __init__(
        self,
        log: str,
        loop: Loop,
        on_trouble: Callable[[str, str], None],
        limits: LogLimits,
        share: TenantShare,
    ) -> None:
        self._log = create_log(log)
        self._indexer = Indexer(log)
        self._cap = Cap(log, limits.log)
        self._reserve = limits.reserve
        self._share = share
        self._loop = loop
        self._on_trouble = on_trouble
        self._lost = self._lost_lines = 0
        self._why = ""
        self._last: bytes | None = None
        """The newest bytes, once the log is at its limit and its file system cannot free a part of a file."""
        self._read, self.write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read, False)
        with suppress(OSError):  # the user's pipes hold too much already: the usual size will do
            fcntl.fcntl(self._read, _SET_PIPE_SIZE, _PIPE_BYTES)
        self._is_open = True
        self._is_index_due = False
        loop.on_readable(self._read, self._take)

    def started(self) -> None:
        """The process has its own copy now."""
        os.close(self.write)

    def finish(self) -> None:
        """What is left, once everything that wrote is gone."""
        for _ in range(
            _TURN_CHUNKS
        ):  # more than a pipe holds: a process that got away may still write
            if not self._take_some():
                break
        self._loop.forget(self._read)
        os.close(self._read)
        self._end_log()
        self._is_open = False
        self._indexer.finish(time.time())
        os.close(self._log)

    def add(self, text: str) -> None:
        """A word of ours; for what went wrong before the program began."""
        self._append(text.encode())

    def _take(self) -> None:
        for _ in range(_TURN_CHUNKS):
            if self._take_some() < _CHUNK:
                break
        self._index()
        # Not at once again: ten thousand lines a second are worth two hundred looks, not ten thousand.
        self._loop.pause(self._read, PAUSE)

    def _take_some(self) -> int:
        try:
            data = os.read(self._read, _CHUNK)
        except BlockingIOError:
            return 0
        if data:
            self._append(data)
        else:  # all writers are gone; the end of the process follows
            self._loop.forget(self._read)
        return len(data)

    def _append(self, data: bytes) -> None:
        """Loses what the disk has no space for, and says so: the training is worth more than its log."""
        if self._last is not None:
            self._keep_last(data)
            return
        try:
            has_room = has_space(self._log, len(data), self._reserve)
        except OSError:
            has_room = True  # then the write decides
        if not has_room:
            text = (
                "its log is not written: less space is free than ASTRAGO_DISK_RESERVE_BYTES keeps"
            )
            self._on_trouble("LogLost", text)
            self._lose(data, _FULL)
            return
        self._note_loss()
        view = memoryview(data)
        try:
            while view and not self._lost:
                view = view[os.write(self._log, view) :]
        except OSError as error:
            self._on_trouble("LogLost", f"its log cannot be written: {error.strerror}")
            self._why = error.strerror or str(error)
        if view:
            self._lose(bytes(view), self._why)
        else:
            self._share.wrote(len(data))
            self._hold_limit()

    def _hold_limit(self) -> None:
        try:
            gap = self._cap.apply(os.fstat(self._log).st_size)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._last = b""
            else:  # no space for the record of it: tried again with the next bytes
                self._on_trouble("LogLost", f"its log cannot be shortened: {error.strerror}")
            return
        if gap is not None:
            self._indexer.drop(gap.marker, gap.end)
            self._on_trouble("LogShortened", "its log is over its limit: the middle is dropped")

    def _keep_last(self, data: bytes) -> None:
        assert self._last is not None
        kept = self._last + data
        cut = max(0, len(kept) - _LAST_BYTES)
        self._last = kept[cut:]
        if cut:
            self._lose(kept[:cut], _OVER_LIMIT)

    def _end_log(self) -> None:
        if self._last is not None:
            last, self._last = self._last, None
            self._note_loss()
            with suppress(OSError):
                os.write(self._log, last)
        self._note_loss()

    def _lose(self, data: bytes, why: str) -> None:
        self._lost += len(data)
        self._lost_lines += data.count(b"\n")
        self._why = why

    def _note_loss(self) -> None:
        if not self._lost:
            return
        text = f"[astrago: {self._lost} bytes in {self._lost_lines} lines could not be written: {self._why}]\n"
        try:
            os.write(self._log, text.encode())
        except OSError:
            return
        self._lost = self._lost_lines = 0

    def _index(self) -> None:
        if self._is_open and not self._is_index_due:
            seconds = self._indexer.note(time.time())
            if seconds is not None:
                self._is_index_due = True
                self._loop.later(seconds, self._index_again)

    def _index_again(self) -> None:
        self._is_index_due = False
        self._index()
