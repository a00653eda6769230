"""How the process of a job tells others that something happened: a file in a folder that anyone may watch.

The file is held open for writing as long as the process lives. A touch of it is news, and so is its closing, which the
kernel does for a process that was killed. Watching one folder is enough for all jobs, across namespaces.
"""

from __future__ import annotations

import os
from contextlib import suppress

from astrago_trainer.logs.inotify import ATTRIB, CLOSE_WRITE, DELETE, Inotify

_NEWS = ATTRIB | CLOSE_WRITE | DELETE


class Notice:
    """One process's own file; its name says of what the news are."""

    def __init__(self, folder: str, name: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._path = f"{folder}/{name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self._path, flags, 0o600)

    def tell(self) -> None:
        os.utime(self._file)  # takes no room on the disk

    def close(self) -> None:
        """Somebody else holds it open from now on."""
        os.close(self._file)

    def withdraw(self) -> None:
        """There will be no more."""
        self.close()
        remove_notice(self._path)


def remove_notice(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


class Watch:
    """News of a folder, for any loop that can wait for a descriptor. Raises OSError where there are no watches left."""

    def __init__(self, folder: str, events: int = _NEWS) -> None:
        os.makedirs(folder, exist_ok=True)
        self._source = Inotify()
        self._source.add_watch(folder, events)

    def fileno(self) -> int:
        return self._source.fileno()

    def read(self) -> set[str]:
        """Of whom there are news; an empty name when some were lost, so that all may have some."""
        return {event.name for event in self._source.read()}

    def close(self) -> None:
        self._source.close()
