"""Whether a database is ours, empty, older or newer, and how it becomes the one this program wants.

An empty database gets the tables of `tables` at once, which saves the import of alembic (200 ms) at the first start; an
older one goes through the migrations. Both happen in one transaction: there is no half of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, inspect, text

from astrago_trainer.store.errors import StoreRefused
from astrago_trainer.store.tables import metadata


@dataclass(frozen=True, slots=True)
class History:
    """All versions of a schema."""

    revisions: tuple[str, ...]
    """Oldest first; the migrations are named by them."""
    location: str
    """Of the migrations, as alembic names it."""

    @property
    def head(self) -> str:
        return self.revisions[-1]


SHIPPED = History(
    ("0001", "0002", "0003", "0004", "0005", "0006"), "astrago_trainer.store:migrations"
)

_LOCK = (
    0x61737472  # of PostgreSQL: two servers that start at once make the tables one after the other
)


def prepare(connection: Connection, where: str, history: History = SHIPPED) -> str | None:
    """Makes the schema right, inside the caller's transaction; the version it was upgraded from, if it was."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
    version = find_version(connection, where, history)
    if version is None:
        create(connection)
    elif version != history.head:
        upgrade(connection, history=history)
        return version
    return None


def find_version(connection: Connection, where: str, history: History = SHIPPED) -> str | None:
    """The version of its schema, None for an empty database; raises StoreRefused for one that is not ours."""
    names = inspect(connection).get_table_names()
    if "alembic_version" not in names:
        if names:
            raise StoreRefused(
                f"the database {where} holds other tables ({', '.join(sorted(names)[:3])}) and none "
                "of astrago's. Name an empty one with ASTRAGO_DATABASE or --data."
            )
        return None
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if version in history.revisions:
        return str(version)
    raise StoreRefused(
        f"the database {where} has the schema {version}; this program knows "
        f"{', '.join(history.revisions)}. "
        "It was written by a newer astrago: install that one, or bring back a backup made before "
        "the upgrade with 'astrago db restore FILE'."
    )


def create(connection: Connection) -> None:
    """All tables of the newest version, in an empty database."""
    metadata.create_all(connection)
    connection.execute(
        text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    )
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": SHIPPED.head})
    connection.execute(text("INSERT INTO clock VALUES (1, 0, 0)"))


def upgrade(
    connection: Connection, revision: str | None = None, history: History = SHIPPED
) -> None:
    """Runs the migrations up to a version, else to the newest, on this connection."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", history.location)
    config.attributes["connection"] = connection
    command.upgrade(config, revision or history.head)
