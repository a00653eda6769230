"""Who changed what, when, and how it went: rows are added and never changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from astrago_trainer.store.tables import audit
from astrago_trainer.store.transaction import Transaction


class AuditRow(NamedTuple):
    time: float
    actor: str
    namespace: str
    action: str
    """A verb and what it was done to: `job.submit`, `token.revoke`."""
    object: str
    uid: str = ""
    result: str = "done"
    detail: str = ""
    request_id: str = ""


def insert_audit(tx: Transaction, rows: Sequence[AuditRow]) -> list[None]:
    if rows:
        tx.connection.execute(insert(audit), [row._asdict() for row in rows])
    return [None] * len(rows)


def load_audit(
    connection: Connection,
    namespace: str | None = None,
    *,
    actor: str = "",
    action: str = "",
    before: int | None = None,
    limit: int = 100,
) -> list[tuple[int, AuditRow]]:
    """Newest first, each with its number; `before` is the number that the last page ended with.

    `action` is the beginning of one: `job` finds `job.delete`."""
    columns = [audit.c[name] for name in AuditRow._fields]
    statement = select(audit.c.id, *columns).order_by(audit.c.id.desc()).limit(limit)
    if namespace is not None:
        statement = statement.where(audit.c.namespace == namespace)
    if actor:
        statement = statement.where(audit.c.actor == actor)
    if action:
        statement = statement.where(audit.c.action.startswith(action, autoescape=True))
    if before is not None:
        statement = statement.where(audit.c.id < before)
    return [(row[0], AuditRow._make(row[1:])) for row in connection.execute(statement)]
