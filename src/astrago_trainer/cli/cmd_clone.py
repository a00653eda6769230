"""`astrago clone NAME`: a new job of the same request."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.cmd_run import count
from astrago_trainer.cli.doors import add_options, add_output, open_door
from astrago_trainer.cli.exits import EPILOG


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("name", metavar="NAME", help="the job to begin again")
    parser.add_argument("--as", dest="new_name", metavar="NAME", help="name of the new one")
    parser.add_argument("--nodes", type=count, metavar="N", help="another number of nodes")
    parser.add_argument("--max-restarts", type=count, metavar="N")
    parser.add_argument("-d", "--detach", action="store_true", help="do not follow it")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.starting import start

    given = {
        "name": options.new_name,
        "nodes": options.nodes,
        "max_restarts": options.max_restarts,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    with closing(open_door(options)) as door:
        return start(
            door,
            lambda: door.clone(options.name, changes),
            is_detached=options.detach,
            output=options.output,
        )
