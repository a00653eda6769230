"""`astrago events NAME`: what happened to a job, by whom and why."""

from __future__ import annotations

import argparse

from astrago_trainer.cli import pages

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import Any

    from astrago_trainer.cli.terminal import Terminal

configure = pages.configure


def execute(options: argparse.Namespace) -> int:
    def page(found: Any, terminal: Terminal) -> list[str]:
        from astrago_trainer.cli.job_page import event_list

        return event_list(found["items"], terminal)

    return pages.execute(options, lambda door: {"items": door.events(options.name)}, page)
