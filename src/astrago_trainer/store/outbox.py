"""Notifications that are to be sent: written with the change that they tell of, claimed by one sender at a time.

A row is waiting, sent or given up, and never leaves the last two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, select, update

from astrago_trainer.store.tables import outbox
from astrago_trainer.store.transaction import Transaction, insert_into

WAITING, SENT, GIVEN_UP = "waiting", "sent", "given-up"


class DeliveryRow(NamedTuple):
    id: str
    """Follows from what it tells and to whom: the same one is never there twice."""
    namespace: str
    body: str
    """JSON."""
    created_at: float
    tries: int = 0


class Claim(NamedTuple):
    """Asks for what is due for longest, of a namespace that is not busy."""

    now: float
    lease: float
    busy: tuple[str, ...]


class Result(NamedTuple):
    """What became of a try."""

    id: str
    tries: int | None
    """Of the claim that it belongs to; None for one that counts whoever made it."""
    state: str
    reason: str = ""
    due_at: float = 0.0


def insert_deliveries(tx: Transaction, rows: Sequence[DeliveryRow]) -> list[None]:
    """Those whose id is there stay as they are."""
    if rows:
        statement = insert_into(outbox, tx.dialect).on_conflict_do_nothing()
        values = [
            {**row._asdict(), "state": WAITING, "due_at": row.created_at, "reason": ""}
            for row in rows
        ]
        tx.connection.execute(statement, values)
    return [None] * len(rows)


def find_due(connection: Connection, claim: Claim) -> DeliveryRow | None:
    columns = [outbox.c[name] for name in DeliveryRow._fields]
    place = (outbox.c.state == WAITING) & (outbox.c.due_at <= claim.now)
    if claim.busy:
        place &= outbox.c.namespace.not_in(claim.busy)
    row = connection.execute(
        select(*columns).where(place).order_by(outbox.c.due_at).limit(1)
    ).first()
    return None if row is None else DeliveryRow._make(row)


def claim_deliveries(tx: Transaction, claims: Sequence[Claim]) -> list[DeliveryRow | None]:
    """Each as it is now: counted, and due again only after the lease. Write transactions follow one another."""
    return [_claim(tx, claim) for claim in claims]


def _claim(tx: Transaction, claim: Claim) -> DeliveryRow | None:
    row = find_due(tx.connection, claim)
    if row is None:
        return None
    row = row._replace(tries=row.tries + 1)
    values = {"tries": row.tries, "due_at": claim.now + claim.lease}
    tx.connection.execute(update(outbox).where(outbox.c.id == row.id).values(values))
    return row


def settle_deliveries(tx: Transaction, results: Sequence[Result]) -> list[bool]:
    """Whether each changed a row that still waits, and that nobody has claimed again."""
    settled = []
    for result in results:
        place = (outbox.c.id == result.id) & (outbox.c.state == WAITING)
        if result.tries is not None:
            place &= outbox.c.tries == result.tries
        values = {"state": result.state, "reason": result.reason}
        if result.state == WAITING:
            values["due_at"] = result.due_at  # type: ignore[assignment]
        statement = update(outbox).where(place).values(values)
        settled.append(tx.connection.execute(statement).rowcount == 1)
    return settled


def forget_deliveries(tx: Transaction, before: Sequence[float]) -> list[None]:
    """Those that were sent or given up, and are old."""
    for time in before:
        place = (outbox.c.state != WAITING) & (outbox.c.created_at < time)
        tx.connection.execute(delete(outbox).where(place))
    return [None] * len(before)
