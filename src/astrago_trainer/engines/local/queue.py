"""Jobs that wait for this machine: a small file each in one folder, and no process.

The engine adds a file; the process that starts the job, suspends it or deletes it removes the file. That process holds
the lock of the job's folder meanwhile, so that a job is never started and removed at the same time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from astrago_trainer.engines.local.folder import read_json, write_json
from astrago_trainer.engines.local.notices import Watch
from astrago_trainer.logs.inotify import DELETE, MOVED_TO

Json = dict[str, Any]

_SUFFIX = ".json"


class Queue:
    """The folder `queue` of a data folder."""

    def __init__(self, data: str) -> None:
        self._folder = data + "/queue"

    def add(self, uid: str, entry: Json) -> None:
        """`entry`: `folder` of the job, `namespace`, `needs`, and the `settings` of its supervisor."""
        os.makedirs(self._folder, exist_ok=True, mode=0o700)
        # It holds the job's inherited environment, and the umask is the caller's.
        write_json(self._path(uid), {**entry, "since": time.time()}, mode=0o600)

    def remove(self, uid: str) -> bool:
        """Whether the job was waiting."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(uid))
            return True
        return False

    def has(self, uid: str) -> bool:
        return os.path.exists(self._path(uid))

    def read(self, uid: str) -> Json | None:
        return read_json(self._path(uid))

    def is_empty(self) -> bool:
        return next(self.uids(), None) is None

    def uids(self) -> Iterator[str]:
        """In no order."""
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if uid := uid_of(entry.name):
                        yield uid
        except FileNotFoundError:
            return

    def watch(self) -> Watch:
        """News of jobs that come and go; `uid_of` the names."""
        return Watch(self._folder, MOVED_TO | DELETE)

    def _path(self, uid: str) -> str:
        return f"{self._folder}/{uid}{_SUFFIX}"


def uid_of(name: str) -> str:
    """The job that a file of the folder is about; empty for one that is being written."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else ""
