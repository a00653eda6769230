"""`astrago logs NAME`: the output of all ranks, with the rank before each line."""

from __future__ import annotations

import argparse
import sys

from astrago_trainer.cli.doors import add_options, open_door
from astrago_trainer.cli.exits import EPILOG

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door, Json
    from astrago_trainer.client.models import LogQuery

_EPILOG = """\
  astrago logs NAME                    all ranks, in the order of time
  astrago logs NAME -f                 and what comes, to the end of the job
  astrago logs NAME --rank 1 --tail 50
  astrago logs NAME --grep 'loss|nan'  lines that match
  astrago logs NAME -o json            one JSON object a line

"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("-f", "--follow", action="store_true", help="also what comes")
    parser.add_argument("--rank", type=_number, metavar="N", help="of one rank; default: all")
    parser.add_argument(
        "--attempt", type=_number, metavar="N", help="counted from 0; default: the newest"
    )
    parser.add_argument("--tail", type=_number, metavar="N", help="the last lines of each rank")
    parser.add_argument("--grep", metavar="RE", help="lines that match the regular expression")
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="default: table; wide has times, json and yaml have one object a line",
    )
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.client.models import LogQuery

    _check_pattern(options)
    query = LogQuery(options.rank, options.attempt, options.tail, options.grep)
    with closing(open_door(options)) as door:
        job = door.get(options.name)
        if options.attempt is not None and options.attempt > job["attempt"]:
            from astrago_trainer.client.errors import NotFound

            known = f"0 to {job['attempt']}" if job["attempt"] else "0 alone"
            raise NotFound(
                f"the job {options.name!r} has no attempt {options.attempt}; it has {known}."
            )
        if options.follow:
            from astrago_trainer.cli.following import follow_job

            if options.output == "table":
                return follow_job(door, job, query=query)
            return _follow_objects(options, door, query)
        if options.output == "table":
            return _show(door, job, query)
        from astrago_trainer.cli.log_text import line_text

        for lines in door.logs(options.name, query):
            sys.stdout.writelines(line_text(line, options.output) for line in lines)
        return 0


def _show(door: Door, job: Json, query: LogQuery) -> int:
    from astrago_trainer.cli.screen import Screen
    from astrago_trainer.cli.words import folded, why
    from astrago_trainer.client.models import ENDED

    screen = Screen(ranks=job["nodes"] if query.rank is None else 1)
    is_empty = True
    for lines in door.logs(job["name"], query):
        screen.lines(lines)
        is_empty = False
    screen.finish()
    if is_empty and query.grep:
        screen.say("No line matches.")
    elif is_empty:
        is_over = job["phase"] in ENDED
        none = "has no output" if is_over else "has no output yet"
        text = f"{job['name']} {none}; it is {job['phase']}: {why(job)}"
        screen.say(*folded(text, screen.err))
    return 0


def _follow_objects(options: argparse.Namespace, door: Door, query: LogQuery) -> int:
    from astrago_trainer.cli import exits
    from astrago_trainer.cli.log_text import line_text
    from astrago_trainer.client.errors import NotFound

    phase = ""
    try:
        for news in door.follow(options.name, query):
            if isinstance(news, dict):
                phase = news["phase"]
            elif news is not None:
                sys.stdout.writelines(line_text(line, options.output) for line in news)
                sys.stdout.flush()
    except NotFound:
        return exits.CANCELLED
    except KeyboardInterrupt:
        return exits.NOT_FINISHED
    return exits.of_phase(phase)


def _check_pattern(options: argparse.Namespace) -> None:
    if options.grep is None:
        return
    import re

    try:
        re.compile(options.grep)
    except (re.error, RecursionError, OverflowError) as error:
        options.usage_error(f"--grep: no regular expression: {error}")


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 9:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}")
    return int(text)
