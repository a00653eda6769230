"""An engine whose jobs are folders: they outlive every process, and each start is on record.

For crash tests: it is as fast as the disk, so that hundreds of kills fit where the local engine has time for dozens.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import GONE, Ability, Effective, Handle, Observation


class FileEngine:
    """A job runs as long as its folder is there."""

    name: ClassVar[str] = "files"
    abilities = frozenset({Ability.SUSPEND})

    def __init__(self, data: Path) -> None:
        self._data = data
        self._told: asyncio.Queue[Handle] = asyncio.Queue()
        (data / "running").mkdir(parents=True, exist_ok=True)

    async def apply(self, handle: Handle, effective: Effective) -> None:
        try:
            self._folder(handle).mkdir()
        except FileExistsError:
            return
        with (self._data / "starts").open("a") as file:
            file.write(f"{handle.name} {handle.uid}\n")
        self.logs(handle).mkdir(parents=True, exist_ok=True)
        self._told.put_nowait(handle)

    async def observe(self, handle: Handle) -> Observation:
        return Observation(Phase.RUNNING) if self._folder(handle).exists() else GONE

    async def stop(self, handle: Handle) -> None:
        shutil.rmtree(self._folder(handle), ignore_errors=True)

    async def changes(self) -> AsyncIterator[Handle]:
        while True:
            yield await self._told.get()

    def logs(self, handle: Handle) -> Path:
        return self._data / "logs" / f"{handle.name}-{handle.uid}"

    def running(self) -> list[str]:
        return sorted(path.name for path in (self._data / "running").iterdir())

    def starts(self) -> list[str]:
        path = self._data / "starts"
        return path.read_text().splitlines() if path.exists() else []

    def left(self) -> list[str]:
        """Whatever of a job can be seen from outside."""
        return [*self.running(), *(path.name for path in (self._data / "logs").glob("*"))]

    def _folder(self, handle: Handle) -> Path:
        return self._data / "running" / f"{handle.name}-{handle.uid}"
