"""`astrago resume NAME`: a suspended job starts again."""

from __future__ import annotations

import argparse

from astrago_trainer.cli import verbs
from astrago_trainer.cli.verbs import configure

__all__ = ["configure", "execute"]


def execute(options: argparse.Namespace) -> int:
    return verbs.execute(
        options,
        lambda door: door.resume(options.name),
        lambda job: job["phase"] != "Suspended",
        lambda name: (f"astrago logs -f {name}", "follow it"),
    )
