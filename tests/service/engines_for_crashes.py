"""Engines that a crash leaves standing, each with a way to see what really runs."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol

from astrago_trainer.engines.base import Engine, Handle
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.processes import MARK
from tests.service.file_engine import FileEngine


class Witness(Protocol):
    """An engine, looked at from outside."""

    engine: Engine
    command: str

    async def until_started(self) -> None:
        """Returns when what should run can be seen."""
        ...

    def running(self) -> list[str]:
        """`{name}-{uid}` of each job that runs, once for each time."""
        ...

    def starts(self) -> list[str]:
        """One entry for each start of training there ever was."""
        ...

    def left(self) -> list[str]:
        """Whatever there is of any job."""
        ...

    def clean_up(self) -> None: ...


class Files:
    command = "true"

    def __init__(self, data: Path) -> None:
        self.engine = FileEngine(data)
        self.running, self.starts, self.left = (
            self.engine.running, self.engine.starts, self.engine.left,
        )  # fmt: skip

    async def until_started(self) -> None:
        pass

    def clean_up(self) -> None:
        pass


class Local:
    """The real one: what runs is read from the kernel's list of processes."""

    def __init__(self, data: Path) -> None:
        self.engine = LocalEngine(data, isolation="plain")
        self._data = data
        self._starts = data / "starts"
        # The training is a sleep that goes by the name of the data folder.
        self.command = f"echo started >> {self._starts}; exec -a {data} sleep 1000"

    async def until_started(self) -> None:
        while not self.running():
            await asyncio.sleep(0.01)

    def running(self) -> list[str]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "cmdline").read_text().startswith(f"{self._data}\0"):
                    mark = (process / "environ").read_text().split(f"{MARK}=")[1]
                    found.append(f"job-{mark.split('/')[0]}")
            except (OSError, IndexError):
                continue
        return sorted(found)

    def starts(self) -> list[str]:
        return self._starts.read_text().splitlines() if self._starts.exists() else []

    def left(self) -> list[str]:
        folders = [str(path) for path in (self._data / "jobs").glob("*/*")]
        return [*folders, *self.running()]

    def clean_up(self) -> None:
        for path in (self._data / "jobs").glob("*/*"):
            name, _, uid = path.name.partition("-")
            asyncio.run(self.engine.stop(Handle(path.parent.name, name, uid)))


ENGINES = {"files": Files, "local": Local}
