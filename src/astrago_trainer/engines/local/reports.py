"""What the supervisor tells: how the job stands, what has happened, and the last words of a container."""

from __future__ import annotations

import errno
import json
import os
import time
from typing import Any

from astrago_trainer.engines.local.folder import JobFolder, read_json, write_json
from astrago_trainer.engines.local.notices import Notice
from astrago_trainer.engines.local.runs import Container, GroupRun

Json = dict[str, Any]

_READ_BYTES = 64 * 1024
"""Of the end of a log that are searched for an error."""


class Reports:
    """Writes the status and the journal of one job, and says that there is something new.

    A disk without room must not end the job: what could not be written is kept, and written later.
    """

    def __init__(self, folder: JobFolder, notice: Notice) -> None:
        self._folder = folder
        self._notice = notice
        self._unsaid: list[Json] = []
        self._unwritten: Json | None = None
        self._told: set[tuple[str, str]] = set()
        self.known: Json = read_json(folder.status) or {}
        """How the job stood when this process took over."""
        self._events = 0
        if os.path.exists(folder.journal):
            with open(folder.journal, encoding="utf-8") as file:
                self._events = sum(1 for _ in file)

    def tell(self, reason: str, message: str) -> None:
        """Adds to the journal."""
        event = {"number": self._events, "time": time.time(), "reason": reason, "message": message}
        self._events += 1
        self._unsaid.append(event)
        self.save()

    def tell_once(self, reason: str, message: str) -> None:
        """For what would come again and again."""
        if (reason, message) not in self._told:
            self._told.add((reason, message))
            self.tell(reason, message)

    def write(self, status: Json, groups: list[GroupRun]) -> None:
        pods = [
            {
                "name": pod.plan["name"],
                "group": pod.plan["group"],
                "index": pod.plan["index"],
                "phase": pod.phase,
                "restarts": pod.restarts,
                "exit_code": pod.code,
                "reason": pod.reason,
                "node": pod.plan["node"],
                "address": pod.plan["address"],
            }
            for group in groups
            for pod in group.pods
        ]
        self._unwritten = {**status, "pods": pods}
        self.save()

    @property
    def is_behind(self) -> bool:
        """Whether something is not on the disk yet."""
        return bool(self._unsaid) or self._unwritten is not None

    def save(self) -> None:
        try:
            if self._unsaid:
                append(self._folder.journal, "".join(f"{json.dumps(e)}\n" for e in self._unsaid))
                self._unsaid = []
            if self._unwritten is not None:
                write_json(self._folder.status, self._unwritten)
                self._unwritten = None
        except OSError:
            return
        self._notice.tell()

    def last_words(self, attempt: int, container: Container) -> str:
        """What it says of its end: its termination message, else the end of its log."""
        # Its expressions take milliseconds to compile: only after a failure.
        from astrago_trainer.core.diagnosis.last_words import last_words

        message, log = self.ends(attempt, container)
        return last_words(message) or last_words(log)

    def ends(self, attempt: int, container: Container) -> tuple[str, str]:
        """Where the error that ended it may stand: its termination message, and the end of its log."""
        message = f"{container.pod.folder}/{container.plan['name']}/termination-log"
        return _tail(message, 4096), _tail(self._log(attempt, container), _READ_BYTES)

    def _log(self, attempt: int, container: Container) -> str:
        return self._folder.log(attempt, container.pod.plan["name"], container.plan["name"])


def append(path: str, text: str) -> None:
    """Whole or not at all: what a full disk left of it is taken back."""
    with open(path, "ab", buffering=0) as file:
        size, data = os.fstat(file.fileno()).st_size, text.encode()
        try:
            if file.write(data) == len(data):
                return
        except OSError:
            os.ftruncate(file.fileno(), size)
            raise
        os.ftruncate(file.fileno(), size)
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def _tail(path: str, most: int) -> str:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - most))
            text = file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
    # Whole lines, unless one alone is longer than all that is read.
    return text.partition("\n")[2] or text if size > most else text
