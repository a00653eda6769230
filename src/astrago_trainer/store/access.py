"""Tenants, users, who may do what where, and tokens (as hashes: a copy of the database opens no door)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, delete, select, update

from astrago_trainer.store.audit import AuditRow, insert_audit
from astrago_trainer.store.tables import clock, invitations, members, tenants, tokens, users
from astrago_trainer.store.transaction import Transaction, insert_into

ANY_ISSUER = "*"
"""A user without a token whom an administrator made: the first person of that name at an issuer gets the account."""


class Tenant(NamedTuple):
    namespace: str
    title: str
    created_at: float
    is_adopted: bool = False


class User(NamedTuple):
    name: str
    is_administrator: bool
    created_at: float
    backend: str = ""
    """Names and patterns of namespaces, with commas between; empty for one that acts for itself alone."""
    issuer: str = ""
    """Who verifies this user: empty for our tokens, the URL of an issuer, or ANY_ISSUER."""
    subject: str = ""
    """The value of the issuer's claim."""
    is_disabled: bool = False


class Member(NamedTuple):
    namespace: str
    user: str
    role: str


class Invitation(NamedTuple):
    namespace: str
    user: str
    """Who may not be a user; then nobody can accept it."""
    role: str
    invited_by: str
    created_at: float
    expires_at: float


class Token(NamedTuple):
    id: str
    user: str
    label: str
    hash: str
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    parent: str = ""
    """Id of the token that it was made with."""


class Access(NamedTuple):
    """All of it; there are as many rows as there are people."""

    tenants: list[Tenant]
    users: list[User]
    members: list[Member]
    tokens: list[Token]
    invitations: list[Invitation]
    stamp: int


class AccessChange(NamedTuple):
    """Rows to put, rows to take away, and the audit row for it; all or nothing."""

    audit: AuditRow
    put: tuple[Tenant | User | Member | Token | Invitation, ...] = ()
    """A row that is there is replaced."""
    new: tuple[Tenant | User | Member | Token, ...] = ()
    """A row that is there makes the whole change fail."""
    replace: tuple[User, ...] = ()
    """A row that is not there makes the whole change fail."""
    remove: tuple[Tenant | User | Member | Invitation, ...] = ()
    take: tuple[Invitation, ...] = ()
    """Removed; one that has changed since it was read makes the whole change fail."""
    revoke: tuple[str, ...] = ()
    """Ids of tokens."""


_TABLES: dict[type, Any] = {
    Tenant: tenants,
    User: users,
    Member: members,
    Token: tokens,
    Invitation: invitations,
}


def change_access(tx: Transaction, changes: Sequence[AccessChange]) -> list[bool]:
    """Whether each was made; False when something new was there already, or nothing was there to take away."""
    return [_change(tx, change) for change in changes]


def _change(tx: Transaction, change: AccessChange) -> bool:
    point = tx.connection.begin_nested()
    is_done = all(
        [
            *(_put(tx, row, is_new=True) for row in change.new),
            *(_put(tx, row, is_new=False) for row in change.put),
            *(_replace(tx, row) for row in change.replace),
            *(_remove(tx, row) for row in change.remove),
            *(_take(tx, row) for row in change.take),
            *(_revoke(tx, token, change.audit.time) for token in change.revoke),
        ]
    )
    if not is_done:
        point.rollback()
        return False
    point.commit()
    insert_audit(tx, [change.audit])
    tx.touch_access()
    return True


def _put(tx: Transaction, row: Any, *, is_new: bool) -> bool:
    table = _TABLES[type(row)]
    statement = insert_into(table, tx.dialect).values(row._asdict())
    if is_new:
        statement = statement.on_conflict_do_nothing()
    else:
        names = [column.name for column in table.primary_key]
        others = {name: statement.excluded[name] for name in row._fields if name not in names}
        statement = statement.on_conflict_do_update(index_elements=names, set_=others)
    return bool(tx.connection.execute(statement).rowcount == 1)


def _replace(tx: Transaction, row: User) -> bool:
    statement = update(users).where(users.c.name == row.name).values(row._asdict())
    return tx.connection.execute(statement).rowcount == 1


def _remove(tx: Transaction, row: Any) -> bool:
    table = _TABLES[type(row)]
    places = [column == getattr(row, column.name) for column in table.primary_key]
    return tx.connection.execute(delete(table).where(*places)).rowcount == 1


def _take(tx: Transaction, row: Invitation) -> bool:
    places = [invitations.c[name] == value for name, value in row._asdict().items()]
    return tx.connection.execute(delete(invitations).where(*places)).rowcount == 1


def _revoke(tx: Transaction, token: str, now: float) -> bool:
    place = (tokens.c.id == token) & tokens.c.revoked_at.is_(None)
    return tx.connection.execute(update(tokens).where(place).values(revoked_at=now)).rowcount == 1


def load_access(connection: Connection) -> Access:
    def rows(kind: Any) -> list[Any]:
        table = _TABLES[kind]
        found = connection.execute(select(*(table.c[name] for name in kind._fields)))
        return [kind._make(row) for row in found]

    stamp = connection.execute(select(clock.c.access)).scalar_one()
    return Access(rows(Tenant), rows(User), rows(Member), rows(Token), rows(Invitation), stamp)


def forget_invitations(tx: Transaction, before: Sequence[float]) -> list[None]:
    """Those that expired before these times."""
    for time in before:
        tx.connection.execute(delete(invitations).where(invitations.c.expires_at < time))
    return [None] * len(before)
