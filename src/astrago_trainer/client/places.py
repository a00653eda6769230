"""Which server, as whom and in which namespace: what was said, else the environment, else what `astrago login` wrote.

The file holds a token, so nobody else may read it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from astrago_trainer.core.errors import InvalidRequest, Problem, Unreadable

_MOST_SHOWN = 10


class Place(NamedTuple):
    """A server, and what is meant there when nothing is said."""

    url: str
    token: str = ""
    namespace: str | None = None


def find_place(
    url: str | None = None, token: str | None = None, namespace: str | None = None
) -> Place:
    """Raises InvalidRequest when no server is configured anywhere."""
    place = configured_place(url, token, namespace)
    if place is None:
        problem = Problem(
            "server",
            "FieldValueRequired",
            "no server is configured.",
            "Give its address, set ASTRAGO_SERVER, or run astrago login URL.",
        )
        raise InvalidRequest([problem])
    return place


def configured_place(
    url: str | None = None, token: str | None = None, namespace: str | None = None
) -> Place | None:
    """None: no server is configured."""
    url = (url or os.environ.get("ASTRAGO_SERVER") or "").rstrip("/")
    token = token or os.environ.get("ASTRAGO_TOKEN") or ""
    namespace = namespace or os.environ.get("ASTRAGO_NAMESPACE")
    known = read_login()
    if known is not None and url in ("", known.url):
        return Place(known.url, token or known.token, namespace or known.namespace)
    return Place(url, token, namespace) if url else None


def namespace_of(whoami: Mapping[str, Any]) -> str:
    """The namespace of somebody who names none; raises InvalidRequest, with what to do, where that is not clear."""
    if named := whoami.get("default_namespace"):
        return str(named)
    roles = sorted(whoami["roles"])
    if len(roles) == 1:
        return str(roles[0])
    is_open = whoami["authentication"] == "off"
    own = own_namespace(None if is_open else str(whoami["name"]))
    if own in roles or (is_open and whoami.get("engine") != "kubernetes"):
        return own
    found, remedy = namespace_hint(whoami)
    raise InvalidRequest([Problem("namespace", "FieldValueRequired", found, remedy)])


def namespace_hint(whoami: Mapping[str, Any]) -> tuple[str, str]:
    """Which namespaces somebody can choose from, and how that is done or how to get one."""
    names = [str(each) for each in whoami.get("namespaces") or sorted(whoami["roles"])]
    user = whoami["name"]
    if names:
        shown = ", ".join(names[:_MOST_SHOWN]) + (", …" if len(names) > _MOST_SHOWN else "")
        return (
            f"must be named: {user} can use {shown}.",
            "Name one with --namespace, or set ASTRAGO_NAMESPACE.",
        )
    if patterns := whoami.get("backend"):
        return (
            f"must be named: {user} is a backend for {', '.join(patterns)}.",
            "Name one with --namespace, or set ASTRAGO_NAMESPACE.",
        )
    if whoami.get("is_administrator"):
        on_cluster = whoami.get("engine") == "kubernetes"
        existing = ", or use one that the cluster has: --namespace NAME" if on_cluster else ""
        return (
            f"must be named: {user} has none yet.",
            f"Make one: astrago tenants create NAME{existing}.",
        )
    return (
        f"must be named: {user} has none yet.",
        f"Ask an administrator for one: astrago tenants add NAMESPACE {user}.",
    )


def user_name() -> str:
    """ASTRAGO_USER, else the name on this machine, as names of objects may begin with it."""
    if named := os.environ.get("ASTRAGO_USER"):
        return named  # as it is: what is wrong with it is said by whoever checks it
    found = os.environ.get("USER") or os.environ.get("LOGNAME") or _name_of_uid()
    made = re.sub(r"[^a-z0-9]+", "-", found.lower()).strip("-")[:20].rstrip("-")
    return made if made[:1].isalpha() else f"user-{made}".rstrip("-")


def own_namespace(user: str | None = None) -> str:
    """Where the jobs of a user are, of this machine's one unless told."""
    from astrago_trainer.core.names import tenant_namespace

    user = user or user_name()
    try:
        return tenant_namespace(user)
    except InvalidRequest:  # a name that clusters reserve, such as `default`
        return f"user-{user}"


def login_path() -> str:
    # By hand: most users have no such file, and pathlib takes 4 ms to import.
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111
    return f"{home}/astrago/login.json"


def read_login() -> Place | None:
    """Raises Unreadable for a file that is none of ours."""
    path = login_path()
    try:
        with open(path, encoding="utf-8") as stream:  # noqa: PTH123
            from json import load

            found = load(stream)
        return Place(str(found["url"]), str(found.get("token") or ""), found.get("namespace"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = Problem(
            path,
            "bad-login",
            f"is no login of astrago: {type(error).__name__}.",
            "Run astrago login URL again, or astrago login --forget.",
        )
        raise Unreadable([problem]) from error


def write_login(place: Place) -> str:
    """Where it was written: whole or not at all, and for the user alone."""
    from json import dump

    path = login_path()
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)  # noqa: PTH103, PTH120
    unfinished = f"{path}.{os.getpid()}"
    handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        dump(place._asdict(), stream)
    os.replace(unfinished, path)  # noqa: PTH105
    return path


def forget_login() -> bool:
    """Whether there was one."""
    try:
        os.unlink(login_path())  # noqa: PTH108
    except FileNotFoundError:
        return False
    return True


def _name_of_uid() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container with a made-up uid
        return f"user-{os.getuid()}"
