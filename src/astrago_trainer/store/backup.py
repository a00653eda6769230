"""Backups: every row as a line of JSON, compressed, with a last line that proves that nothing is missing.

One format for both databases, so that a backup of one can be brought back into the other. It is made on one state of
the database while others go on writing, and brought back in one transaction: all of it, or nothing.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from sqlalchemy import Connection, LargeBinary, MetaData, Table, insert, inspect, select, text

from astrago_trainer.store.drivers import Driver, SqliteDriver, make_driver
from astrago_trainer.store.errors import StoreError, StoreRefused, translated
from astrago_trainer.store.files import create_file
from astrago_trainer.store.schema import SHIPPED, find_version, prepare, upgrade
from astrago_trainer.store.servers import is_gone, load_servers, this_host

FORMAT = 1
_CHUNK = 500


class Summary(NamedTuple):
    """What a backup holds."""

    version: str
    rows: int
    jobs: int


async def back_up(url: str, target: Path) -> Summary:
    """Writes the backup beside `target` and then gives it its name: a file of that name is always whole."""
    driver = make_driver(url)
    if isinstance(driver, SqliteDriver) and not driver.path.is_file():
        raise StoreRefused(f"there is no database {driver.path} to back up. Check --data.")
    partial = target.with_name(f".{target.name}.partial")
    try:
        summary = await driver.read(lambda connection: _dump(connection, driver.where, partial))
        partial.replace(target)
        _sync(target.parent)
    except Exception as error:
        partial.unlink(missing_ok=True)
        raise _told(error, driver.where) from error
    finally:
        await driver.close()
    return summary


async def restore(url: str, source: Path, *, replace: bool = False) -> Summary:
    """Brings a backup back. Without `replace` only into an empty database; with it, what is there goes."""
    summary = check_backup(source)
    driver = make_driver(url)
    if isinstance(driver, SqliteDriver):
        if replace:
            await _set_aside(driver.path)
        create_file(driver.path)
    try:
        await driver.write(lambda connection: _load(connection, driver, source, summary, replace))
    except Exception as error:
        raise _told(error, driver.where) from error
    finally:
        await driver.close()
    return summary


async def upgrade_database(url: str) -> tuple[str, str]:
    """Brings the tables to this program's version; the version before and after."""
    driver = make_driver(url)
    if isinstance(driver, SqliteDriver) and not driver.path.is_file():
        raise StoreRefused(f"there is no database {driver.path} to upgrade. Check --data.")
    try:
        before = await driver.write(lambda connection: prepare(connection, driver.where))
    except Exception as error:
        raise _told(error, driver.where) from error
    finally:
        await driver.close()
    return before or SHIPPED.head, SHIPPED.head


def check_backup(source: Path) -> Summary:
    """Reads all of it; raises StoreRefused where it is cut short, changed, or of a newer program."""
    rows = jobs = 0
    try:
        with gzip.open(source, "rt", encoding="utf-8") as file:
            header = json.loads(file.readline())
            if header.get("astrago-backup") != FORMAT:
                raise ValueError("it does not begin as a backup of this format does")
            digest = hashlib.sha256()
            last: Mapping[str, Any] = {}
            for line in file:  # to the end, where gzip compares its checksum
                if last:
                    raise ValueError("it goes on after its end")
                if line.startswith('{"end"'):
                    last = json.loads(line)
                    continue
                digest.update(line.encode())
                rows += 1
                jobs += line.startswith('["jobs"')
    except (OSError, EOFError, ValueError, AttributeError, zlib.error) as error:
        raise StoreRefused(f"the backup {source} cannot be read: {error}.") from error
    if last.get("end") != rows or last.get("sha256") != digest.hexdigest():
        raise StoreRefused(f"the backup {source} is not whole. Use another one.")
    if header.get("version") not in SHIPPED.revisions:
        raise StoreRefused(
            f"the backup {source} has the schema {header.get('version')}; this program knows "
            f"{', '.join(SHIPPED.revisions)}. Install the newer astrago that made it."
        )
    return Summary(header["version"], rows, jobs)


def _dump(connection: Connection, where: str, target: Path) -> Summary:
    version = find_version(connection, where)
    if version is None:
        raise StoreRefused(f"the database {where} is empty; there is nothing to back up.")
    rows = jobs = 0
    digest = hashlib.sha256()
    # Environments and commands of users are in there: it is as private as the database.
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as raw, gzip.open(raw, "wt", 6, encoding="utf-8") as file:
        _line(file, {"astrago-backup": FORMAT, "version": version})
        for table in _tables(connection):
            for row in connection.execution_options(yield_per=_CHUNK).execute(select(table)):
                said = _line(file, [table.name, [_plain(value) for value in row]])
                digest.update(said.encode())
                rows += 1
                jobs += table.name == "jobs"
        _line(file, {"end": rows, "sha256": digest.hexdigest()})
        file.close()
        raw.flush()
        os.fsync(raw.fileno())
    return Summary(version, rows, jobs)


def _load(
    connection: Connection, driver: Driver, source: Path, summary: Summary, is_replacing: bool
) -> None:
    names = inspect(connection).get_table_names()
    if names and is_replacing and connection.dialect.name == "postgresql":
        _drop_all(connection)
    elif names and find_version(connection, driver.where) is not None:
        raise StoreRefused(
            f"the database {driver.where} is not empty. Name another one, or say --replace: what is "
            "in it is then set aside (SQLite) or gone (PostgreSQL)."
        )
    upgrade(connection, summary.version)
    tables = {table.name: table for table in _tables(connection)}
    connection.execute(tables["clock"].delete())
    for name, rows in _chunks(source):
        connection.execute(insert(tables[name]), [_row(tables[name], values) for values in rows])
    if connection.dialect.name == "postgresql":
        for name, column in (("jobs", "number"), ("audit", "id")):
            place = f"pg_get_serial_sequence('{name}', '{column}')"
            newest = f"SELECT max({column}) FROM {name}"  # noqa: S608 - names of our own
            connection.execute(text(f"SELECT setval({place}, coalesce(({newest}), 0) + 1, false)"))
    # Whoever looked after these jobs when the backup was made does so no longer.
    connection.execute(tables["servers"].delete())
    upgrade(connection)


def _drop_all(connection: Connection) -> None:
    """Takes every table away."""
    found = MetaData()
    found.reflect(connection)
    found.drop_all(connection)


async def _set_aside(path: Path) -> None:
    """The SQLite file that is there, whatever it is, gets another name: a broken one may still be looked at."""
    users = await _users(path)
    if users:
        raise StoreRefused(
            f"the database {path} is in use by process {', '.join(map(str, users))}. Stop it first."
        )
    for suffix in ("", "-wal", "-shm"):
        found = path.with_name(path.name + suffix)
        if found.exists():
            found.replace(path.with_name(f"{path.name}.before-restore{suffix}"))


async def _users(path: Path) -> list[int]:
    """Processes of this machine that look after its jobs; a file that cannot be read has none."""
    driver = SqliteDriver(path)
    try:
        servers = await driver.read(load_servers) if path.is_file() else []
    except Exception:
        return []
    finally:
        await driver.close()
    host = this_host()
    return [each.pid for each in servers if each.host == host and not is_gone(each, host)]


def _tables(connection: Connection) -> list[Table]:
    """As they are in this database, parents first; without alembic's own."""
    found = MetaData()
    found.reflect(connection)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def _chunks(source: Path) -> Iterator[tuple[str, list[list[Any]]]]:
    name, rows = "", list[list[Any]]()
    with gzip.open(source, "rt", encoding="utf-8") as file:
        file.readline()
        for line in file:
            if line.startswith('{"end"'):
                break
            table, values = json.loads(line)
            if rows and (table != name or len(rows) == _CHUNK):
                yield name, rows
                rows = []
            name = table
            rows.append(values)
    if rows:
        yield name, rows


def _row(table: Table, values: list[Any]) -> dict[str, Any]:
    return {
        column.name: base64.b64decode(value)
        if isinstance(column.type, LargeBinary) and value is not None
        else value
        for column, value in zip(table.columns, values, strict=True)
    }


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _line(file: IO[str], value: object) -> str:
    line = json.dumps(value, separators=(",", ":")) + "\n"
    file.write(line)
    return line


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _told(error: Exception, where: str) -> Exception:
    return error if isinstance(error, StoreError | OSError) else translated(error, where)
