"""`astrago events NAME`: what happened to a job, by whom and why."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        events = door.events(options.name)
    if is_for_programs(options.output):
        show_value({"items": events}, options.output)
        return 0
    from astrago_trainer.cli.job_page import event_list

    show_lines(event_list(events, terminal_for(options.output)))
    return 0
