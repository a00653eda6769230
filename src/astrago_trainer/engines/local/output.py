"""What a container says on its way into its log: a pipe, as under Kubernetes, read here and appended to a file.

Not the file itself: `echo … > /dev/stderr` opens what is behind descriptor 2 anew and would cut the log off, and a full
disk would fail the training instead of the log. Whoever reads the log needs nobody of us: it is a file all the same.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress

from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.logs.indexer import Indexer
from astrago_trainer.logs.layout import create_log

PAUSE = 0.005
"""Seconds between two looks at a pipe: what comes meanwhile is written in one piece."""
_PIPE_BYTES = 1024 * 1024
_CHUNK = 256 * 1024
_SET_PIPE_SIZE = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class Output:
    """The pipe and the log of one start of a container."""

    def __init__(self, log: str, loop: Loop, on_trouble: Callable[[str, str], None]) -> None:
        self._log = create_log(log)
        self._indexer = Indexer(log)
        self._loop = loop
        self._on_trouble = on_trouble
        self._lost = 0
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
        while self._take_some():
            pass
        self._loop.forget(self._read)
        os.close(self._read)
        self._note_loss()
        self._is_open = False
        self._indexer.finish(time.time())
        os.close(self._log)

    def add(self, text: str) -> None:
        """A word of ours; for what went wrong before the program began."""
        self._append(text.encode())

    def _take(self) -> None:
        while self._take_some() == _CHUNK:
            pass
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
        """Loses what the disk has no room for, and says so: the training is worth more than its log."""
        if self._lost:
            self._note_loss()
        view = memoryview(data)
        try:
            while view and not self._lost:
                view = view[os.write(self._log, view) :]
        except OSError as error:
            self._on_trouble("LogLost", f"its log cannot be written: {error.strerror}")
        self._lost += len(view)

    def _note_loss(self) -> None:
        if not self._lost:
            return
        try:
            os.write(self._log, f"[astrago: {self._lost} bytes could not be written]\n".encode())
        except OSError:
            return
        self._lost = 0

    def _index(self) -> None:
        if self._is_open and not self._is_index_due:
            seconds = self._indexer.note(time.time())
            if seconds is not None:
                self._is_index_due = True
                self._loop.later(seconds, self._index_again)

    def _index_again(self) -> None:
        self._is_index_due = False
        self._index()
