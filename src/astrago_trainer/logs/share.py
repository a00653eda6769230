"""The limit for all logs of a namespace: logs that were not written for the longest time shrink first.

A namespace's folder has a folder for each job, and these have logs as `layout` says. Whoever writes logs looks at the
sum now and then; there is no process for it, and no count that could go wrong.
Imported by the supervisor of a job: standard library only, and little of it.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from astrago_trainer.logs.gap import trim
from astrago_trainer.logs.layout import LOG_SUFFIX

SMALL = 1 << 20
"""What is left of a log that shrinks: half of it from its beginning, half from its end."""
SMALLEST = 64 << 10
CHECK_BYTES = 64 << 20
"""How many bytes are written by one process before it looks at the sum again."""
LITTLE = 64 << 10
"""Who wrote less than this in all does not look at its end: most jobs print little."""
_BLOCK = 512


class _Log(NamedTuple):
    changed: int
    path: str
    used: int


class TenantShare:
    """The sum of the logs of a namespace, as one of their writers keeps it below its limit."""

    def __init__(self, folder: str, most: int) -> None:
        self._folder = folder
        self._most = most
        self._written = 0

    def wrote(self, length: int) -> None:
        self._written += length
        if self._written >= min(CHECK_BYTES, max(self._most // 16, LITTLE)):
            self.apply()

    def finish(self) -> None:
        """At the end of a writer."""
        if self._written >= LITTLE:
            self.apply()

    def apply(self) -> None:
        self._written = 0
        if self._most:
            shrink(self._folder, self._most)


def shrink(folder: str, most: int) -> int:
    """Brings the logs of a namespace below its limit, to seven eighths of it; returns what they take then."""
    logs = list(_logs(folder))
    used = sum(each.used for each in logs)
    if used <= most:
        return used
    keep = max(SMALLEST, min(SMALL, most // (2 * len(logs))))
    for each in sorted(logs):
        if used <= most - most // 8:
            break
        try:
            if each.used > keep and trim(each.path, keep // 2, keep // 2) is not None:
                used -= each.used - _used(os.lstat(each.path))
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                break  # nor will the next one: they lie on the same file system
            # Deleted meanwhile, or not ours to change: the others count.
    return used


def _logs(folder: str) -> list[_Log]:
    found = []
    for job in _folders(folder):
        for attempt in _folders(f"{job}/logs"):
            for pod in _folders(attempt):
                found += _logs_of_pod(pod)
    return found


def _logs_of_pod(pod: str) -> list[_Log]:
    found = []
    try:
        for entry in os.scandir(pod):
            if entry.name.endswith(LOG_SUFFIX) and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append(_Log(status.st_mtime_ns, entry.path, _used(status)))
    except OSError:
        return found
    return found


def _folders(path: str) -> list[str]:
    try:
        return [each.path for each in os.scandir(path) if each.is_dir(follow_symlinks=False)]
    except OSError:  # deleted meanwhile
        return []


def _used(status: os.stat_result) -> int:
    return status.st_blocks * _BLOCK
