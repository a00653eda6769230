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
  astrago tokens create --backend portal --namespaces 'user-*'
                                             for a backend that acts for any
                                             user in these namespaces
  astrago tokens revoke ID                   it opens nothing any more
  astrago tokens revoke --backend portal     the backend and all its tokens

A backend submits, reads and deletes jobs of any user_id in the namespaces that
its administrator has named, and nothing else. --namespaces again changes them.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=("list", "create", "revoke"), default="list")
    parser.add_argument("id", nargs="?", metavar="ID", help="revoke: which one")
    parser.add_argument("--label", default="", metavar="TEXT", help="create: what it is for")
    parser.add_argument(
        "--days", type=float, metavar="N", help="create: how long it works; default: for ever"
    )
    whose = parser.add_mutually_exclusive_group()
    whose.add_argument("--user", metavar="NAME", help="create: for somebody else (administrators)")
    whose.add_argument(
        "--backend",
        metavar="NAME",
        help="create, revoke: for a backend of this name (administrators)",
    )
    parser.add_argument(
        "--namespaces",
        metavar="PATTERNS",
        help="create: where the backend acts for others, as 'user-*,team-a'",
    )
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    _check_usage(options)
    if options.days is not None and not 0 < options.days < 36500:
        options.usage_error(f"--days must be more than 0 and less than 36500, not {options.days}")
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        if options.action == "revoke" and options.backend is not None:
            door.remove_backend(options.backend)
            print(f"{options.backend} and its tokens open nothing any more.")
            return 0
        if options.action == "revoke":
            door.revoke_token(options.id)
            print(f"{options.id} opens nothing any more.")
            return 0
        if options.action == "create":
            if options.backend is not None:
                from astrago_trainer.core.namespace_rules import split_patterns

                door.set_backend(options.backend, split_patterns(options.namespaces))
            user = options.backend or options.user
            made = door.create_token(user, options.label, options.days)
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


def _check_usage(options: argparse.Namespace) -> None:
    """Ends with exit code 2 for options that do not fit together."""
    is_revoke, is_create = options.action == "revoke", options.action == "create"
    has_backend = options.backend is not None
    if (options.id is not None) != (is_revoke and not has_backend):
        options.usage_error("revoke wants the ID of a token or --backend, the others take no ID")
    if has_backend and not (is_create or is_revoke):
        options.usage_error("--backend is for create and revoke")
    if (options.namespaces is not None) != (is_create and has_backend):
        options.usage_error("create --backend NAME goes together with --namespaces")


def _show_secret(made: Json) -> None:
    """Alone on standard output, for $(…); nobody can show it again."""
    import sys

    print(made["secret"])
    sys.stdout.flush()
    print(
        f"This is shown once. Take it back with: astrago tokens revoke {made['id']}",
        file=sys.stderr,
    )
