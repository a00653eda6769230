"""`astrago explain NAME`: why a job is as it is, and what to do."""

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
        from astrago_trainer.cli.explain_page import explain_page

        return explain_page(options.name, found, terminal)

    return pages.execute(options, lambda door: door.explain(options.name), page)
