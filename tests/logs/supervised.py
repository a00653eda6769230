"""A supervisor in a time of our own: it looks at a log when that grew, and when its indexer asks for it."""

from __future__ import annotations

import os
from pathlib import Path

from astrago_trainer.logs.indexer import Indexer


class Supervised:
    """Logs that are written and indexed while the clock is moved by hand."""

    def __init__(self, logs: list[Path], now: float = 1000.0) -> None:
        self.now = now
        self._indexers = {log: Indexer(log) for log in logs}
        self._due: dict[Path, float] = {}

    def write(self, log: Path, data: bytes) -> None:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, data)
        os.close(fd)
        if log not in self._due:
            self._note(log)

    def wait(self, seconds: float) -> None:
        until = self.now + seconds
        while self._due and min(self._due.values()) <= until:
            log = min(self._due, key=self._due.__getitem__)
            self.now = self._due.pop(log)
            self._note(log)
        self.now = until

    def finish(self) -> None:
        for log, indexer in self._indexers.items():
            indexer.finish(self.now)
            if log.exists():
                os.utime(log, (self.now, self.now))

    def _note(self, log: Path) -> None:
        pause = self._indexers[log].note(self.now)
        if pause is not None:
            self._due[log] = self.now + pause
