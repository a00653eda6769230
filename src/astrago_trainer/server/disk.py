"""Whether the disk of the data folder is nearly full: for /readyz, /metrics, administrators and `astrago doctor`."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from astrago_trainer.logs.limits import disk_of

if TYPE_CHECKING:
    from astrago_trainer.server.context import Context


class DiskAlarm(StrEnum):
    NEARLY_FULL = "DiskNearlyFull"
    """Less than twice the reserve is free."""
    NO_LOGS = "LogsNotWritten"
    """Less than the reserve is free: output of jobs is dropped and counted."""
    FULL = "DiskFull"
    """No jobs are accepted; deletion works."""


class DiskState(NamedTuple):
    """In bytes."""

    total: int
    free: int
    reserve: int
    """Free space below which no log is written."""
    alarm: DiskAlarm | None

    def view(self) -> dict[str, Any]:
        """A code and numbers; text for people is made of them at the edge."""
        return {
            "total_bytes": self.total,
            "free_bytes": self.free,
            "reserve_bytes": self.reserve,
            "alarm": self.alarm,
        }


def disk_state(data: Path, reserve: int, *, is_full: bool = False) -> DiskState | None:
    """None where the file system does not say."""
    try:
        disk = disk_of(data)
    except OSError:
        return None
    kept = disk.reserve(reserve)
    alarm = None
    if is_full or disk.free == 0:
        alarm = DiskAlarm.FULL
    elif disk.free < kept:
        alarm = DiskAlarm.NO_LOGS
    elif disk.free < 2 * kept:
        alarm = DiskAlarm.NEARLY_FULL
    return DiskState(disk.total, disk.free, kept, alarm)


async def disk_of_server(shared: Context) -> DiskState | None:
    """In a thread: a disk may be slow to answer."""
    settings = shared.settings
    return await asyncio.to_thread(
        disk_state,
        settings.data,
        settings.disk_reserve_bytes,
        is_full=shared.service.is_disk_full,
    )
