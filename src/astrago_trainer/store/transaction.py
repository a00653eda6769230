"""One write transaction: its connection, its stamp, and inserts that may meet a row that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, update

from astrago_trainer.store.tables import clock

if TYPE_CHECKING:
    from sqlalchemy import Table


class Transaction:
    """What a write function is given."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.dialect = connection.dialect.name
        # First of all: the row stays locked until the commit, so writers of several servers follow one another,
        # never wait for each other in a circle, and whoever reads stamps in order misses none.
        self.stamp: int = connection.execute(_TICK).scalar_one()

    def touch_access(self) -> None:
        """Tells other servers to read users, members and tokens again."""
        self.connection.execute(update(clock).values(access=self.stamp))


def insert_into(table: Table, dialect: str) -> Any:
    """An INSERT that knows ON CONFLICT; both databases spell it alike, SQLAlchemy has it twice."""
    if dialect == "sqlite":
        from sqlalchemy.dialects.sqlite import insert as sqlite_insert

        return sqlite_insert(table)
    from sqlalchemy.dialects.postgresql import insert as postgresql_insert

    return postgresql_insert(table)


_TICK = update(clock).values(value=clock.c.value + 1).returning(clock.c.value)
