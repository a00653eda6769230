"""The two ways to the service, behind one interface: commands do not know which one they have.

*Remote*: a server, named by --server, ASTRAGO_SERVER or `astrago login`. *Embedded*: the service itself, opened in
this process on the data folder; jobs have supervisors of their own and go on when the command ends. Both give the
API's JSON and raise the client's errors.
"""

from __future__ import annotations

import os

from astrago_trainer.cli.data_folder import add_options as add_data_options
from astrago_trainer.cli.data_folder import data_folder, database

TYPE_CHECKING = False  # as in main.py
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from astrago_trainer.client.models import LogLine, LogQuery

    Json = dict[str, Any]

    News = Json | Sequence[LogLine] | None
    """A job that changed, lines, or None when a second has passed without any."""

    class Door(Protocol):
        """What commands ask for. Every answer is the API's JSON."""

        where: str
        """The server, or the data folder."""

        @property
        def namespace(self) -> str: ...

        flags: str
        """What to type again to come back to the same place, with a space before it."""

        def whoami(self) -> Json: ...
        def submit(self, spec: Mapping[str, Any]) -> Json: ...
        def get(self, name: str) -> Json: ...
        def jobs(
            self,
            *,
            limit: int,
            token: str | None,
            phases: Sequence[str],
            text: str,
            everywhere: bool,
        ) -> Json: ...
        def pods(self, name: str) -> list[Json]: ...
        def events(self, name: str) -> list[Json]: ...
        def metrics(self, name: str, rank: str) -> Json:
            """Of a rank by its number, their `mean`, or `all`."""
            ...

        def explain(self, name: str) -> Json: ...
        def suspend(self, name: str) -> Json: ...
        def resume(self, name: str) -> Json: ...
        def restart(self, name: str) -> Json: ...
        def clone(self, name: str, changes: Mapping[str, Any]) -> Json: ...
        def delete(self, name: str, *, keep_code: bool) -> Json: ...
        def logs(self, name: str, query: LogQuery) -> Iterator[Sequence[LogLine]]:
            """What is there."""
            ...

        def follow(self, name: str, query: LogQuery) -> Iterator[News]:
            """The job as it is, its lines, and both as they change; ends when the job has ended and all was read.

            Raises NotFound when it is deleted meanwhile.
            """
            ...

        def watch(self, name: str) -> Iterator[Json | None]:
            """The same without lines."""
            ...

        def nodes(self) -> list[Json]: ...
        def tokens(self) -> list[Json]: ...
        def create_token(self, user: str | None, label: str, days: float | None) -> Json: ...
        def revoke_token(self, token: str) -> None: ...
        def tenants(self) -> list[Json]: ...
        def create_tenant(self, namespace: str, title: str) -> Json: ...
        def create_user(self, name: str) -> Json: ...
        def users(self) -> list[Json]: ...
        def change_user(self, name: str, action: str) -> None:
            """`action`: disable, enable, revoke (all tokens), delete."""
            ...

        def set_backend(self, name: str, namespaces: Sequence[str]) -> Json: ...
        def remove_backend(self, name: str) -> None: ...
        def members(self, namespace: str) -> list[Json]: ...
        def set_member(self, namespace: str, user: str, role: str) -> Json: ...
        def remove_member(self, namespace: str, user: str) -> None: ...
        def leave(self, namespace: str) -> None: ...
        def invitations(self, namespace: str | None) -> list[Json]:
            """Of a namespace; without one, one's own."""
            ...

        def invite(self, namespace: str, user: str, role: str) -> Json: ...
        def withdraw(self, namespace: str, user: str) -> None: ...
        def accept(self, namespace: str) -> Json: ...
        def decline(self, namespace: str) -> None: ...
        def close(self) -> None: ...


def add_options(parser: argparse.ArgumentParser, *, namespace: bool = True) -> None:
    """Where the service is; the same for all commands."""
    where = parser.add_argument_group("where")
    where.add_argument(
        "--server",
        metavar="URL",
        help="a server; default: ASTRAGO_SERVER, else that of astrago login, else none: this machine alone",
    )
    if namespace:
        where.add_argument(
            "-n",
            "--namespace",
            metavar="NAME",
            help="default: ASTRAGO_NAMESPACE, else your own",
        )
    add_data_options(where)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        choices=("table", "wide", "json", "yaml"),
        default="table",
        help="default: table",
    )


def open_door(options: argparse.Namespace) -> Door:
    """Remote where a server is configured, else embedded; close it when done."""
    from astrago_trainer.client.places import configured_place

    if options.server and (options.data or options.database):
        options.usage_error("--server is somewhere else: it takes neither --data nor --database")
    named = getattr(options, "namespace", None) or os.environ.get("ASTRAGO_NAMESPACE")
    # A folder that was named is meant, whoever is logged in where.
    is_here = bool(options.data or options.database)
    place = None if is_here else configured_place(options.server, namespace=named)
    if place is not None:
        from astrago_trainer.cli.remote import Remote

        return Remote(place, flags=_flags(options, "server", "namespace"))
    from astrago_trainer.cli.here import Here

    return Here(
        data_folder(options),
        database(options),
        namespace=named,
        flags=_flags(options, "data", "database", "namespace"),
    )


def _flags(options: argparse.Namespace, *names: str) -> str:
    from shlex import quote

    given = [(name, getattr(options, name, None)) for name in names]
    return "".join(f" --{name} {quote(value)}" for name, value in given if value)
