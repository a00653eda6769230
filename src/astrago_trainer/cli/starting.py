"""What follows a new job: its name for those who leave, its output for those who stay."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from astrago_trainer.cli.following import accepted, follow_job
from astrago_trainer.cli.show import is_for_programs, show_value
from astrago_trainer.cli.terminal import Terminal, clean
from astrago_trainer.cli.words import next_commands

if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door


def start(
    door: Door, submit: Callable[[], Mapping[str, Any]], *, is_detached: bool, output: str
) -> int:
    """Submits and follows, or says how to come back; the exit code."""
    job = submit()
    if is_detached and is_for_programs(output):
        show_value(job, output)
        return 0
    terminal = Terminal(sys.stderr)
    if not is_for_programs(output):
        sys.stderr.writelines(f"{line}\n" for line in accepted(door, job, terminal))
        sys.stderr.flush()
    if not is_detached:
        return follow_job(door, job, output=output)
    # The name alone goes to standard output: for $(astrago run --detach …).
    name = clean(job["name"])
    print(name)
    lines = next_commands(
        [
            (f"astrago logs -f {name}{door.flags}", "follow it"),
            (f"astrago status {name}{door.flags}", "how it stands"),
            (f"astrago delete {name}{door.flags}", "end it"),
        ],
        terminal,
    )
    sys.stdout.flush()
    sys.stderr.writelines(f"{line}\n" for line in lines)
    return 0
