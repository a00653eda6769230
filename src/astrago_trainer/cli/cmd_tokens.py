"""`astrago tokens`: what opens a server for programs."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Json

_EPILOG = """\
  astrago tokens                             list
  astrago tokens create --label ci --days 30 make one, shown this once
  astrago tokens revoke ID                   it opens nothing any more
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=("list", "create", "revoke"), default="list")
    parser.add_argument("id", nargs="?", metavar="ID", help="revoke: which one")
    parser.add_argument("--label", default="", metavar="TEXT", help="create: what it is for")
    parser.add_argument(
        "--days", type=float, metavar="N", help="create: how long it works; default: for ever"
    )
    parser.add_argument("--user", metavar="NAME", help="create: for somebody else (administrators)")
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if (options.id is not None) != (options.action == "revoke"):
        options.usage_error("revoke wants the ID of a token, the others take none")
    if options.days is not None and not 0 < options.days < 36500:
        options.usage_error(f"--days must be more than 0 and less than 36500, not {options.days}")
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        if options.action == "revoke":
            door.revoke_token(options.id)
            print(f"{options.id} opens nothing any more.")
            return 0
        if options.action == "create":
            made = door.create_token(options.user, options.label, options.days)
            if is_for_programs(options.output):
                show_value(made, options.output)
            else:
                _show_secret(made)
            return 0
        tokens = door.tokens()
    if is_for_programs(options.output):
        show_value({"items": tokens}, options.output)
        return 0
    from astrago_trainer.cli.words import clock, columns

    rows = [
        [
            each["id"],
            each["user"],
            clock(each["created_at"])[:10],
            clock(each["expires_at"])[:10],
            "revoked" if each["revoked_at"] else each["label"],
        ]
        for each in tokens
    ]
    heading = ["ID", "USER", "MADE", "EXPIRES", "LABEL"]
    show_lines(columns([heading, *rows], terminal_for(options.output)) if rows else ["No tokens."])
    return 0


def _show_secret(made: Json) -> None:
    """Alone on standard output, for $(…); nobody can show it again."""
    import sys

    print(made["secret"])
    sys.stdout.flush()
    print(
        f"This is shown once. Take it back with: astrago tokens revoke {made['id']}",
        file=sys.stderr,
    )
