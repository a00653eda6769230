"""Commands that wish something for one job and wait until it is so."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from astrago_trainer.cli.doors import Door

    Json = Mapping[str, Any]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is so")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(
    options: argparse.Namespace,
    wish: Callable[[Door], Json],
    reached: Callable[[Json], bool],
    then: Callable[[str], tuple[str, str]],
) -> int:
    """`then` is the next command and what it does, of the job's name and the flags."""
    from contextlib import closing

    from astrago_trainer.cli.following import wait_for
    from astrago_trainer.cli.show import is_for_programs, show_value
    from astrago_trainer.cli.terminal import Terminal, clean
    from astrago_trainer.cli.words import next_commands, why

    with closing(open_door(options)) as door:
        job = wish(door)
        if not options.no_wait:
            try:
                job = wait_for(door, options.name, reached) or job
            except KeyboardInterrupt:
                print("astrago: the wish is stored, and will be done.", file=sys.stderr)
        if is_for_programs(options.output):
            show_value(dict(job), options.output)
            return 0
        print(f"{clean(job['name'])}: {job['phase']}, {why(job)}")
        command, text = then(f"{clean(job['name'])}{door.flags}")
        terminal = Terminal(sys.stderr)
        sys.stderr.writelines(f"{line}\n" for line in next_commands([(command, text)], terminal))
    return 0
