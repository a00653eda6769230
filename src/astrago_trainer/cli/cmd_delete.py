"""`astrago delete NAME …`: ends jobs and removes them with their logs."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door, Json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "What runs gets SIGTERM and its time to end; suspend stops a job and keeps it."
    parser.add_argument("names", nargs="+", metavar="NAME")
    parser.add_argument("--no-wait", action="store_true", help="do not wait until it is gone")
    parser.add_argument("--keep-code", action="store_true", help="keep the name of its code taken")
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_value

    with closing(open_door(options)) as door:
        for name in options.names:  # first all of them: a name that is none deletes nothing
            door.get(name)
        jobs = [door.delete(name, keep_code=options.keep_code) for name in options.names]
        if is_for_programs(options.output):
            if not options.no_wait:
                _wait(door, jobs, is_quiet=True)
            show_value({"items": jobs}, options.output)
        elif options.no_wait:
            for job in jobs:
                print(f"{job['name']} is being deleted.")
        else:
            _wait(door, jobs, is_quiet=False)
    return 0


def _wait(door: Door, jobs: list[Json], *, is_quiet: bool) -> None:
    from astrago_trainer.cli.following import wait_for

    for job in jobs:
        try:
            wait_for(door, job["name"], lambda now, uid=job["uid"]: now["uid"] != uid)  # type: ignore[misc]
        except KeyboardInterrupt:
            print("astrago: the wish is stored, and will be done.", file=sys.stderr)
            return
        if not is_quiet:
            print(f"{job['name']} is deleted.")
