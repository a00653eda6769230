"""`astrago tenants`: who may do what where; for administrators."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door, Json

_EPILOG = """\
  astrago tenants                                 list
  astrago tenants create team-a --title "Team A"  a namespace for several people
  astrago tenants members team-a                  who may do what there
  astrago tenants add team-a ann --role viewer    let somebody in, or change it
  astrago tenants remove team-a ann               not any more

A viewer reads, a member also runs jobs, an administrator also says who else
may. --new makes the user first.
"""
_TAKES = {"list": 0, "create": 1, "members": 1, "add": 2, "remove": 2}
"""Names that follow each action: a namespace, then a user."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=tuple(_TAKES), default="list")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a namespace, then a user")
    parser.add_argument("--title", default="", metavar="TEXT", help="create: what it is for")
    parser.add_argument(
        "--role",
        choices=("viewer", "member", "administrator"),
        default="member",
        help="add: default member",
    )
    parser.add_argument("--new", action="store_true", help="add: the user is new, too")
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    wanted = _TAKES[options.action]
    if len(options.names) != wanted:
        what = ("no name", "a namespace", "a namespace and a user")[wanted]
        options.usage_error(f"{options.action} takes {what}, found {len(options.names)} names")
    from contextlib import closing

    with closing(open_door(options)) as door:
        if options.action in ("list", "members"):
            return _list(door, options)
        found = _change(door, options)
    from astrago_trainer.cli.show import is_for_programs, show_value

    if is_for_programs(options.output):
        show_value(found, options.output)
    else:
        print(found["said"])
    return 0


def _change(door: Door, options: argparse.Namespace) -> Json:
    from astrago_trainer.cli.terminal import clean

    if options.action == "create":
        made = door.create_tenant(options.names[0], options.title)
        return {**made, "said": f"The tenant {clean(made['namespace'])} is there."}
    namespace, user = options.names
    if options.action == "remove":
        door.remove_member(namespace, user)
        return {
            "namespace": namespace,
            "user": user,
            "said": f"{clean(user)} is no member of {clean(namespace)} any more.",
        }
    if options.new:
        door.create_user(user)
    made = door.set_member(namespace, user, options.role)
    return {**made, "said": f"{clean(user)} is {made['role']} of {clean(namespace)}."}


def _list(door: Door, options: argparse.Namespace) -> int:
    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for
    from astrago_trainer.cli.words import clock, columns

    is_all = options.action == "list"
    found = door.tenants() if is_all else door.members(options.names[0])
    if is_for_programs(options.output):
        show_value({"items": found}, options.output)
        return 0
    if is_all:
        rows = [
            [each["namespace"], clock(each["created_at"])[:10], each["title"]] for each in found
        ]
        heading = ["NAMESPACE", "MADE", "TITLE"]
    else:
        rows = [[each["user"], each["role"]] for each in found]
        heading = ["USER", "ROLE"]
    none = "No tenants." if is_all else "No members."
    show_lines(columns([heading, *rows], terminal_for(options.output)) if rows else [none])
    return 0
