"""`astrago tenants`: namespaces, their members, and invitations to them."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Callable

    from astrago_trainer.cli.doors import Door, Json

_EPILOG = """\
  astrago tenants                                 list
  astrago tenants invitations                     your invitations
  astrago tenants accept team-a                   become a member
  astrago tenants decline team-a                  do not
  astrago tenants leave team-a                    be a member no longer

For administrators of the namespace:
  astrago tenants members team-a                  who may do what there
  astrago tenants invite team-a ann --role viewer ask a user to become a member
  astrago tenants invitations team-a              the open ones
  astrago tenants withdraw team-a ann             take an invitation back
  astrago tenants add team-a ann --role viewer    change the role of a member
  astrago tenants remove team-a ann               remove a member

For administrators of the installation:
  astrago tenants create team-a --title "Team A"  a namespace for several people
  astrago tenants add team-a ann                  add a member directly

A viewer reads, a member also runs jobs, an administrator also manages the
members. An invitation is open for 14 days. --new makes the user first.
"""
_TAKES = {
    "list": (0,),
    "create": (1,),
    "members": (1,),
    "add": (2,),
    "remove": (2,),
    "invite": (2,),
    "invitations": (0, 1),
    "withdraw": (2,),
    "accept": (1,),
    "decline": (1,),
    "leave": (1,),
}
"""How many names follow each action: a namespace, then a user."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    # With all actions in it, the usage would be wider than a terminal.
    parser.add_argument(
        "action",
        nargs="?",
        choices=tuple(_TAKES),
        default="list",
        metavar="ACTION",
        help=f"{', '.join(_TAKES)}; default list",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a namespace, then a user")
    parser.add_argument("--title", default="", metavar="TEXT", help="create: what it is for")
    parser.add_argument(
        "--role",
        choices=("viewer", "member", "administrator"),
        default="member",
        help="add, invite: default member",
    )
    parser.add_argument("--new", action="store_true", help="add: the user is new, too")
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    wanted = _TAKES[options.action]
    if len(options.names) not in wanted:
        words = ("no name", "a namespace", "a namespace and a user")
        what = " or ".join(words[each] for each in wanted)
        options.usage_error(f"{options.action} takes {what}, found {len(options.names)} names")
    from contextlib import closing

    with closing(open_door(options)) as door:
        if options.action in _LISTS:
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

    namespace, place = options.names[0], clean(options.names[0])
    if options.action == "create":
        made = door.create_tenant(namespace, options.title)
        return {**made, "said": f"The tenant {clean(made['namespace'])} is there."}
    if options.action == "accept":
        made = door.accept(namespace)
        return {**made, "said": f"You are {made['role']} of {place}."}
    if options.action == "decline":
        door.decline(namespace)
        return {"namespace": namespace, "said": f"The invitation to {place} is declined."}
    if options.action == "leave":
        door.leave(namespace)
        return {"namespace": namespace, "said": f"You are no member of {place} any more."}
    return _change_user(door, options, namespace, options.names[1])


def _change_user(door: Door, options: argparse.Namespace, namespace: str, user: str) -> Json:
    from astrago_trainer.cli.terminal import clean

    place, person = clean(namespace), clean(user)
    both = {"namespace": namespace, "user": user}
    if options.action == "remove":
        door.remove_member(namespace, user)
        return {**both, "said": f"{person} is no member of {place} any more."}
    if options.action == "withdraw":
        door.withdraw(namespace, user)
        return {**both, "said": f"The invitation of {person} to {place} is withdrawn."}
    if options.action == "invite":
        made = door.invite(namespace, user, options.role)
        text = f"If there is a user {person}, they can accept until {made['expires_at'][:10]}."
        return {**made, "said": text}
    if options.new:
        door.create_user(user)
    made = door.set_member(namespace, user, options.role)
    return {**made, "said": f"{person} is {made['role']} of {place}."}


def _list(door: Door, options: argparse.Namespace) -> int:
    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for
    from astrago_trainer.cli.words import columns

    read, heading, row, none = _LISTS[options.action]
    found = read(door, options.names)
    if is_for_programs(options.output):
        show_value({"items": found}, options.output)
        return 0
    rows = [row(each) for each in found]
    show_lines(columns([heading, *rows], terminal_for(options.output)) if rows else [none])
    return 0


def _tenant_row(each: Json) -> list[str]:
    return [each["namespace"], _day(each["created_at"]), each["title"]]


def _invitation_row(each: Json) -> list[str]:
    day = _day(each["expires_at"])
    return [each["namespace"], each["user"], each["role"], each["invited_by"], day]


def _day(time: str) -> str:
    from astrago_trainer.cli.words import clock

    return clock(time)[:10]


_LISTS: dict[
    str,
    tuple[Callable[[Door, list[str]], list[Json]], list[str], Callable[[Json], list[str]], str],
] = {
    "list": (
        lambda door, names: door.tenants(),
        ["NAMESPACE", "MADE", "TITLE"],
        _tenant_row,
        "No tenants.",
    ),
    "members": (
        lambda door, names: door.members(names[0]),
        ["USER", "ROLE"],
        lambda each: [each["user"], each["role"]],
        "No members.",
    ),
    "invitations": (
        lambda door, names: door.invitations(names[0] if names else None),
        ["NAMESPACE", "USER", "ROLE", "INVITED BY", "OPEN UNTIL"],
        _invitation_row,
        "No invitations.",
    ),
}
"""What is read, and how it is shown."""
