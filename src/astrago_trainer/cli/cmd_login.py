"""`astrago login URL`: from now on all commands speak to that server."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_EPILOG = """\
  astrago login https://astrago.example.org   asks for the token
  astrago login URL < token.txt               reads it
  astrago login --forget                      back to this machine alone

The token is kept in ~/.config/astrago/login.json, for you alone.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EPILOG
    parser.add_argument("server", nargs="?", metavar="URL", help="address of the server")
    parser.add_argument("-n", "--namespace", metavar="NAME", help="where your jobs go from now on")
    parser.add_argument("--forget", action="store_true", help="forget the server and the token")
    parser.set_defaults(usage_error=parser.error)


def execute(options: argparse.Namespace) -> int:
    if (options.server is None) != options.forget:
        options.usage_error("give the URL of a server, or --forget")
    from astrago_trainer.client.places import Place, forget_login, write_login

    if options.forget:
        print("Forgotten." if forget_login() else "There was nothing to forget.")
        return 0
    from astrago_trainer.client import calls
    from astrago_trainer.client.errors import Unauthenticated
    from astrago_trainer.client.session import Session

    # Nothing is written before the server has taken the token.
    token = os.environ.get("ASTRAGO_TOKEN", "")
    session = Session(options.server, token)
    try:
        found = session.call(calls.whoami())
    except Unauthenticated:
        token = _ask()
        session = Session(options.server, token)
        found = session.call(calls.whoami())
    path = write_login(Place(session.url, token, options.namespace))
    from astrago_trainer.cli.terminal import clean

    print(f"You are {clean(found['name'])} at {session.url}.")
    print(clean(_where(found, options.namespace)))
    print(f"Written to {path}; astrago login --forget takes it back.", file=sys.stderr)
    return 0


def _where(whoami: Mapping[str, Any], chosen: str | None) -> str:
    """Where jobs go from now on, or how to get a namespace."""
    from astrago_trainer.client.places import namespace_hint, namespace_of
    from astrago_trainer.core.errors import InvalidRequest

    names = whoami.get("namespaces") or []
    try:
        place = chosen or os.environ.get("ASTRAGO_NAMESPACE") or namespace_of(whoami)
    except InvalidRequest:
        found, remedy = namespace_hint(whoami)
        return f"Your namespace {found} {remedy}"
    others = [each for each in names if each != place]
    more = (
        f" You can also use {', '.join(others[:10])}{', …' * (len(others) > 10)}." if others else ""
    )
    return f"Jobs go to the namespace {place}.{more}"


def _ask() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    from getpass import getpass

    return getpass("Token: ").strip()
