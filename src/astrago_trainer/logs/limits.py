"""How much disk logs may take: of one log, of all logs of a namespace, and what stays free for everything else.

Imported by the supervisor of a job: standard library only, and little of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

LOG_BYTES = 256 << 20
TENANT_BYTES = 16 << 30
RESERVE_BYTES = 256 << 20
LEAST_LOG_BYTES = 64 << 10
_SHARE_OF_DISK = 20
"""The reserve is at most one part in so many of a file system: a small disk still takes logs."""


class LogLimits(NamedTuple):
    """All in bytes; 0 is no limit."""

    log: int = LOG_BYTES
    """Of one log: a container of a pod in one attempt."""
    tenant: int = TENANT_BYTES
    """Of all logs of a namespace."""
    reserve: int = RESERVE_BYTES
    """Free space below which no log is written, so that the database, status and deletion keep working."""

    @classmethod
    def read(cls, values: Mapping[str, Any] | None) -> LogLimits:
        """From plain data, as the settings of a supervisor carry it; what is missing has its default."""
        known = {name: int(value) for name, value in (values or {}).items() if name in cls._fields}
        return cls(**known)


class Disk(NamedTuple):
    """The file system of a folder, in bytes."""

    total: int
    free: int

    def reserve(self, wanted: int) -> int:
        """What is kept free of logs."""
        return min(wanted, self.total // _SHARE_OF_DISK)


def disk_of(place: int | str | os.PathLike[str]) -> Disk:
    """Of an open file or a path; raises OSError."""
    found = os.statvfs(place)
    return Disk(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)


def has_space(log: int, length: int, reserve: int) -> bool:
    """Whether so many bytes may be appended to an open log."""
    if not reserve:
        return True
    disk = disk_of(log)
    return disk.free - length >= disk.reserve(reserve)
