"""`astrago nodes`: the machines that jobs run on, how full they are, and by whom."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "FREE is what a new job can have, of what there is; -o wide adds zone and jobs."
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        found = door.nodes()
    if is_for_programs(options.output):
        show_value({"items": found}, options.output)
        return 0
    from astrago_trainer.cli.node_table import node_table

    terminal = terminal_for(options.output)
    show_lines(node_table(found, terminal, is_wide=options.output == "wide"))
    return 0
