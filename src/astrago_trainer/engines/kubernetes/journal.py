"""What happened to a job, kept in its folder: the cluster forgets events after an hour, and exit codes with the pods.

One line per event, numbered for good, so that a reader who comes back after a restart of ours goes on where it was.
Failures are among them, because the first cause of an end is asked for long after its pod is gone.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from astrago_trainer.engines.base import Event
from astrago_trainer.engines.kubernetes.failures import Failure

MOST = 1_000
"""Events of one job. A job that fails every few seconds for days keeps its beginning, which is what explains it."""

_log = logging.getLogger(__name__)


class _Line(msgspec.Struct, omit_defaults=True):
    key: str
    time: float
    reason: str
    message: str
    failure: Failure | None = None


class Journal:
    """The events of one job."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "events.jsonl"
        self._keys: set[str] = set()
        self.events: tuple[Event, ...] = ()
        self.failures: list[Failure] = []
        for line in self._read():
            self._take(line)

    def note(self, key: str, time: float, reason: str, message: str) -> bool:
        """Whether it is new."""
        return self._add(_Line(key, time, reason, message))

    def note_failure(self, failure: Failure) -> bool:
        return self._add(_Line(failure.key, failure.time, failure.reason, failure.told(), failure))

    def _add(self, line: _Line) -> bool:
        if line.key in self._keys or len(self._keys) >= MOST:
            return False
        self._take(line)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # One write of one line; a torn last line is left out when it is read.
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
        except OSError as error:  # a full disk costs history, never the watch
            _log.warning("%s cannot be written: %s", self._path, error)
        return True

    def _take(self, line: _Line) -> None:
        self._keys.add(line.key)
        event = Event(len(self.events), line.time, line.reason, line.message)
        self.events = (*self.events, event)
        if line.failure is not None:
            self.failures.append(line.failure)

    def _read(self) -> list[_Line]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        whole, _, torn = data.rpartition(b"\n")
        if torn:
            with self._path.open("r+b") as file:
                file.truncate(len(whole) + 1 if whole else 0)
        return [msgspec.json.decode(line, type=_Line) for line in whole.splitlines()]
