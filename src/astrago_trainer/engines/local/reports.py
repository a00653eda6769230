"""What the supervisor tells: how the job stands, what has happened, and the last words of a container."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from astrago_trainer.engines.local.folder import JobFolder, read_json, write_json
from astrago_trainer.engines.local.runs import Container, GroupRun

Json = dict[str, Any]


class Reports:
    """Writes the status and the journal of one job."""

    def __init__(self, folder: JobFolder) -> None:
        self._folder = folder
        self.known: Json = read_json(folder.status) or {}
        """How the job stood when this process took over."""
        self._events = 0
        if os.path.exists(folder.journal):
            with open(folder.journal, encoding="utf-8") as file:
                self._events = sum(1 for _ in file)

    def tell(self, reason: str, message: str) -> None:
        """Adds to the journal."""
        event = {"number": self._events, "time": time.time(), "reason": reason, "message": message}
        with open(self._folder.journal, "a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        self._events += 1

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
            }
            for group in groups
            for pod in group.pods
        ]
        write_json(self._folder.status, {**status, "pods": pods})

    def append_to_log(self, attempt: int, container: Container, text: str) -> None:
        """For what went wrong before the container's own program began."""
        with open(self._log(attempt, container), "a", encoding="utf-8") as file:
            file.write(text)

    def last_words(self, attempt: int, container: Container) -> str:
        """What it says of its end: its termination message, else the end of its log."""
        message = f"{container.pod.folder}/{container.plan['name']}/termination-log"
        return _tail(message, 4096) or _tail(self._log(attempt, container), 400)

    def _log(self, attempt: int, container: Container) -> str:
        return self._folder.log(attempt, container.pod.plan["name"], container.plan["name"])


def _tail(path: str, most: int) -> str:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - most))
            return file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
