"""`astrago metrics NAME`: the loss and other numbers, as small plots."""

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
        from astrago_trainer.cli.metric_page import metric_page

        return metric_page(found, terminal)

    return pages.execute(options, lambda door: door.metrics(options.name), page)
