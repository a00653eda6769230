"""`astrago metrics NAME`: the loss and other numbers, as small plots."""

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
        metrics = door.metrics(options.name)
    if is_for_programs(options.output):
        show_value(metrics, options.output)
        return 0
    from astrago_trainer.cli.metric_page import metric_page

    show_lines(metric_page(metrics, terminal_for(options.output)))
    return 0
