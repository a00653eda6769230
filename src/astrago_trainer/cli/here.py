"""The embedded door, opened no further than a command needs.

To import and open the service takes a third of a second. A list of jobs that all rest, or that a running server looks
after, is in the database as it is, and is read from there; everything else opens the service.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from astrago_trainer.client.places import own_namespace
from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.lifecycle import MEANINGS, TERMINAL, Phase, seed_state

if TYPE_CHECKING:
    from pathlib import Path

    from astrago_trainer.cli.embedded import Embedded

Json = dict[str, Any]

SCHEMA = "0006"
"""The version of the tables that is read here; another one is left to the service."""
_COLUMNS = (
    "name, namespace, uid, owner, framework, runtime, nodes, gpus, engine, phase, outcome, reason, message, run, "
    "attempt, restarts, max_restarts, is_suspended, is_deleting, is_reaped, ttl_seconds, created_at, started_at, "
    "finished_at, cloned_from, cloned_from_uid, version, number, wanted_run, server"
)


class Here:
    """See `doors.Door`: what is not defined here is the service's."""

    def __init__(
        self, data: Path, database: str | None, *, namespace: str | None, flags: str
    ) -> None:
        _refuse_cluster()
        self.flags = flags
        self.where = str(data)
        self.namespace = namespace or own_namespace()
        self._data = data
        self._database = database
        self._opened: Embedded | None = None

    def jobs(
        self, *, limit: int, token: str | None, phases: Sequence[str], text: str, everywhere: bool
    ) -> Json:
        file = self._data / "astrago.db"
        if not self._database and not file.exists():
            return {"items": [], "next_page_token": None}  # a look makes no database
        is_plain = not (token or phases or text or self._database or self._opened)
        if is_plain:
            page = glance(file, None if everywhere else self.namespace, limit)
            if page is not None:
                return page
        return self._embedded.jobs(
            limit=limit, token=token, phases=phases, text=text, everywhere=everywhere
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedded, name)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    @property
    def _embedded(self) -> Embedded:
        if self._opened is None:
            from astrago_trainer.cli.embedded import Embedded

            self._opened = Embedded(
                self._data, self._database, namespace=self.namespace, flags=self.flags
            )
        return self._opened


def glance(file: Path, namespace: str | None, limit: int) -> Json | None:
    """The newest jobs as the API would list them; None when the database alone does not know how they stand."""
    if not file.is_file():
        return None
    try:
        connection = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
    except sqlite3.Error:
        return None
    try:
        connection.row_factory = sqlite3.Row
        version = connection.execute("select version_num from alembic_version").fetchone()
        if version is None or version[0] != SCHEMA:
            return None
        where, values = ("where namespace = ?", [namespace]) if namespace else ("", [])
        rows = connection.execute(
            f"select {_COLUMNS} from jobs {where} order by number desc limit ?",  # noqa: S608 - our own words
            [*values, limit + 1],
        ).fetchall()
        alive = _servers_alive(connection)
    except sqlite3.Error:
        return None  # the service says better what is wrong
    finally:
        connection.close()
    if not all(_is_known(row, alive) for row in rows):
        return None
    token = None
    if len(rows) > limit:
        from astrago_trainer.service.installation_key import KEY_FILE, InstallationKey
        from astrago_trainer.service.page_tokens import PageTokens, scope_of

        tokens = PageTokens(InstallationKey(file.with_name(KEY_FILE)))
        token = tokens.token(scope_of(namespace or ""), rows[limit - 1]["number"])
    return {"items": [_view(row) for row in rows[:limit]], "next_page_token": token}


def _is_known(row: Mapping[str, Any], alive: set[str]) -> bool:
    """Whether the row is how the job stands: it rests, or somebody looks after it."""
    rests = row["phase"] in TERMINAL and row["wanted_run"] == row["run"]
    return rests or row["server"] in alive


def _servers_alive(connection: sqlite3.Connection) -> set[str]:
    """Those of this machine whose process is there: pid and start time, since a pid comes again."""
    found = connection.execute("select id, pid, started from servers").fetchall()
    return {row["id"] for row in found if _start_of(row["pid"]) == row["started"]}


def _start_of(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def _view(row: Mapping[str, Any]) -> Json:
    """As `service.view`, which would import the store; a test holds the two against each other."""
    phase = Phase(row["phase"])
    outcome = None if row["outcome"] is None else Phase(row["outcome"])
    return {
        "name": row["name"],
        "namespace": row["namespace"],
        "uid": row["uid"],
        "owner": row["owner"],
        "framework": row["framework"],
        "runtime": row["runtime"],
        "nodes": row["nodes"],
        "gpus_per_node": row["gpus"],
        "engine": row["engine"],
        "phase": row["phase"],
        "meaning": MEANINGS[phase],
        "state": seed_state(phase, outcome=outcome),
        "reason": row["reason"],
        "message": row["message"],
        "run": row["run"],
        "attempt": row["attempt"],
        "restarts": row["restarts"],
        "max_restarts": row["max_restarts"],
        "is_suspended": bool(row["is_suspended"]),
        "is_deleting": bool(row["is_deleting"]),
        "is_expired": bool(row["is_reaped"]),
        "ttl_seconds": row["ttl_seconds"],
        "created_at": _time(row["created_at"]),
        "started_at": _time(row["started_at"]),
        "finished_at": _time(row["finished_at"]),
        "cloned_from": None
        if row["cloned_from_uid"] is None
        else {"name": row["cloned_from"], "uid": row["cloned_from_uid"]},
        "version": row["version"],
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(seconds, UTC).isoformat(timespec='milliseconds')[:-6]}Z"


def _refuse_cluster() -> None:
    engine = os.environ.get("ASTRAGO_ENGINE", "local")
    if engine != "local":
        problem = Problem(
            "ASTRAGO_ENGINE",
            "FieldValueNotSupported",
            f"must be local when no server is configured; found {engine!r}.",
            "Unset it, or name a server with --server or ASTRAGO_SERVER.",
        )
        raise InvalidRequest([problem])
