"""`astrago status NAME`: how a job stands, and why."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door
from astrago_trainer.cli.exits import EPILOG


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("-w", "--wait", action="store_true", help="until it has ended")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli import exits
    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        job = door.get(options.name)
        if options.wait:
            from astrago_trainer.cli.following import wait_for

            seen = wait_for(door, options.name, lambda _: False)
            if seen is None:
                print(f"{options.name} was deleted.")
                return exits.CANCELLED
            job = dict(seen)
        if is_for_programs(options.output):
            show_value(job, options.output)
        else:
            from astrago_trainer.cli.job_page import job_page

            is_wide = options.output == "wide"
            show_lines(
                job_page(
                    job,
                    door.pods(options.name),
                    door.events(options.name),
                    terminal_for(options.output),
                    flags=door.flags,
                    is_wide=is_wide,
                )
            )
    return exits.of_phase(job["phase"])
