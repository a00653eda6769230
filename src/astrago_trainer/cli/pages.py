"""Commands that show one thing about one job: asked for, then printed for people or for programs."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from astrago_trainer.cli.doors import Door
    from astrago_trainer.cli.terminal import Terminal


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(
    options: argparse.Namespace,
    ask: Callable[[Door], Any],
    page: Callable[[Any, Terminal], list[str]],
) -> int:
    """`page` is only called for people; it imports what it needs."""
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        found = ask(door)
    if is_for_programs(options.output):
        show_value(found, options.output)
    else:
        show_lines(page(found, terminal_for(options.output)))
    return 0
