"""`astrago up` with an engine of files, which servers share and which outlives them: for tests that kill servers.

python -m tests.service.process_server up --data FOLDER …
"""

from __future__ import annotations

import sys
from pathlib import Path

from astrago_trainer.cli.main import main
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines import fake
from astrago_trainer.engines.base import Effective, Handle, Observation
from tests.service.file_engine import FileEngine


class SharedEngine(FileEngine):
    """Jobs are suspended by a file in their folder."""

    async def apply(self, handle: Handle, effective: Effective) -> None:
        await super().apply(handle, effective)
        mark = self._folder(handle) / "suspended"
        if effective.suspend:
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    async def observe(self, handle: Handle) -> Observation:
        seen = await super().observe(handle)
        is_suspended = (self._folder(handle) / "suspended").exists()
        return Observation(Phase.SUSPENDED) if is_suspended and not seen.is_gone else seen


def make_engine(*, data: Path) -> SharedEngine:
    return SharedEngine(data)


if __name__ == "__main__":
    fake.FakeEngine = make_engine  # type: ignore[assignment,misc]
    sys.exit(main(sys.argv[1:]))
