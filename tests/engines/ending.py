"""Ends what a campaign has left running on this machine: the queue first, then each job by its own process."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

from astrago_trainer.engines.local.folder import is_alive, read_json
from astrago_trainer.engines.local.processes import kill_marked


def end_jobs(data: Path) -> int:
    """How many processes of the data folder had to be ended; no server of it may run."""
    paths = [data / "scheduler.json", *data.glob("jobs/*/*/supervisor.json")]
    ended = 0
    for path in paths:
        who = read_json(str(path))
        if is_alive(who):
            assert who is not None
            with suppress(ProcessLookupError):
                os.kill(who["pid"], signal.SIGKILL)
                ended += 1
    for path in paths[1:]:
        plan = read_json(str(path.parent / "plan.json"))
        if plan is not None and "uid" in plan:
            kill_marked(f"{plan['uid']}/")
    return ended
