"""`astrago restart NAME`: a new run of the same request, from the beginning."""

from __future__ import annotations

import argparse

from astrago_trainer.cli import verbs
from astrago_trainer.cli.verbs import configure

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door, Json

__all__ = ["configure", "execute"]


def execute(options: argparse.Namespace) -> int:
    before: list[int] = []

    def wish(door: Door) -> Json:
        before.append(door.get(options.name)["run"])
        return door.restart(options.name)

    return verbs.execute(
        options,
        wish,
        lambda job: job["run"] > before[0],
        lambda name: (f"astrago logs -f {name}", "follow it"),
    )
