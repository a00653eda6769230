"""`astrago whoami`: who you are, and where your jobs go."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door


def configure(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    add_options(parser)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        found = door.whoami()
        where, namespace = door.where, _namespace(door)
    if is_for_programs(options.output):
        show_value(found, options.output)
        return 0
    from astrago_trainer.cli.terminal import clean
    from astrago_trainer.cli.words import facts

    backend = ", ".join(found.get("backend") or ())
    roles = (
        f"backend for {backend}"
        if backend
        else ", ".join(f"{role} of {name}" for name, role in sorted(found["roles"].items()))
    )
    is_open = found["authentication"] == "off"
    show_lines(
        facts(
            [
                ("you are", clean(found["name"]) + (", not asked for a token" if is_open else "")),
                ("at", clean(where)),
                ("namespace", clean(namespace)),
                ("roles", clean(roles) or ("administrator" if found["is_administrator"] else "")),
                ("engine", clean(str(found["engine"]))),
                ("version", clean(str(found["version"]))),
            ],
            terminal_for(options.output),
        )
    )
    return 0


def _namespace(door: Door) -> str:
    """Where jobs go; of somebody without one, how to get it."""
    from astrago_trainer.core.errors import InvalidRequest

    try:
        return door.namespace
    except InvalidRequest as error:
        (problem,) = error.problems
        return f"{problem.message} {problem.remedy}"
