"""`astrago users`: who may come in."""

from __future__ import annotations

import argparse

from astrago_trainer.cli.doors import add_options, add_output, open_door

_DONE = {
    "create": "{user} can be given roles and tokens, or sign in through the issuer.",
    "disable": "{user} cannot come in until: astrago users enable {user}",
    "enable": "{user} can come in again.",
    "delete": "{user} is deleted; jobs and namespaces stay.",
    "revoke": "No token of {user} opens anything any more.",
}
_EPILOG = """\
  astrago users                 list
  astrago users create kim      make one; astrago tenants gives roles
  astrago users disable kim     cannot come in; jobs, roles and tokens stay
  astrago users enable kim      can come in again
  astrago users revoke kim      revoke all tokens of this user
  astrago users delete kim      with roles and tokens; jobs stay

For administrators of the installation.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("action", nargs="?", choices=("list", *_DONE), default="list")
    parser.add_argument("user", nargs="?", metavar="USER")
    add_output(parser)
    add_options(parser, namespace=False)
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if (options.user is None) != (options.action == "list"):
        options.usage_error(f"{options.action} wants {'no' if options.user else 'a'} USER")
    from contextlib import closing

    from astrago_trainer.cli.show import is_for_programs, show_lines, show_value, terminal_for

    with closing(open_door(options)) as door:
        if options.action == "list":
            users = door.users()
        elif options.action == "create":
            door.create_user(options.user)
        else:
            door.change_user(options.user, options.action)
    if options.action != "list":
        print(_DONE[options.action].format(user=options.user))
        return 0
    if is_for_programs(options.output):
        show_value({"items": users}, options.output)
        return 0
    from astrago_trainer.cli.words import columns

    rows = [
        [
            each["name"],
            "disabled"
            if each["is_disabled"]
            else "administrator"
            if each["is_administrator"]
            else "",
            {"": "tokens", "*": "anything"}.get(each["issuer"], each["issuer"]),
            ", ".join([*each["roles"], *each["backend"]]),
        ]
        for each in users
    ]
    heading = ["USER", "STATE", "SIGNS IN WITH", "NAMESPACES"]
    show_lines(columns([heading, *rows], terminal_for(options.output)) if rows else ["No users."])
    return 0
