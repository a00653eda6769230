"""`astrago metrics NAME`: the loss and other numbers, as small plots."""

from __future__ import annotations

import argparse

from astrago_trainer.cli import pages

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from typing import Any

    from astrago_trainer.cli.terminal import Terminal


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rank",
        type=_rank,
        default="mean",
        metavar="N",
        help="of one rank, or of all, each by itself; default: mean, by step over the ranks that have it",
    )
    pages.configure(parser)


def execute(options: argparse.Namespace) -> int:
    def page(found: Any, terminal: Terminal) -> list[str]:
        from astrago_trainer.cli.metric_page import metric_page

        return metric_page(found, terminal, rank=options.rank)

    return pages.execute(options, lambda door: door.metrics(options.name, options.rank), page)


def _rank(text: str) -> str:
    if text in ("mean", "all") or (text.isascii() and text.isdecimal() and len(text) < 10):
        return text
    raise argparse.ArgumentTypeError(f"must be the number of a rank, mean or all; found {text!r}")
