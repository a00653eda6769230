"""How a database becomes the one this program wants, and which ones are refused."""

from __future__ import annotations

import asyncio
import shutil
import struct
from pathlib import Path

import pytest
from sqlalchemy import MetaData, insert, inspect, text

from astrago_trainer.store import Store, StoreRefused, migrations
from astrago_trainer.store.access import load_access
from astrago_trainer.store.drivers import make_driver
from astrago_trainer.store.jobs import load_documents, load_jobs, load_pods
from astrago_trainer.store.metrics import Point, load_points
from astrago_trainer.store.schema import SHIPPED, History, create, prepare, upgrade
from tests.store.databases import accept, on_database, with_store


def on_empty(url, work):
    async def run():
        driver = make_driver(url)
        try:
            return await driver.write(work)
        finally:
            await driver.close()

    return asyncio.run(run())


def shape(connection):
    """All that can be asked of a schema."""
    found = inspect(connection)
    columns = {
        name: [
            (each["name"], str(each["type"]), each["nullable"], each.get("autoincrement"))
            for each in found.get_columns(name)
        ]
        for name in found.get_table_names()
    }
    keys = {
        name: (
            found.get_pk_constraint(name)["constrained_columns"],
            sorted(map(str, found.get_foreign_keys(name))),
            sorted(map(str, found.get_unique_constraints(name))),
            sorted(str((each["name"], each["column_names"])) for each in found.get_indexes(name)),
        )
        for name in found.get_table_names()
        if name != "alembic_version"
    }
    return columns, keys


def test_the_migrations_make_the_tables_that_the_program_uses(tmp_path, url):
    def migrated(connection):
        upgrade(connection)
        made = shape(connection)
        connection.execute(text("UPDATE clock SET value = value + 1"))
        return made

    def made(connection):
        create(connection)
        return shape(connection)

    if url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'migrated.db'}"
    by_migrations = on_empty(url, migrated)
    if url.startswith("postgresql"):
        on_database(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
    at_once = on_empty(
        url if url.startswith("postgresql") else f"sqlite:///{tmp_path / 'other.db'}", made
    )

    assert by_migrations == at_once


def test_sqlite_tables_are_the_same_to_the_letter(tmp_path):
    def statements(name, make):
        path = f"sqlite:///{tmp_path / name}"
        on_empty(path, make)
        rows = on_database(
            path, "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%' ORDER BY name"
        )
        return [(name, "".join((sql or "").split())) for name, sql in rows]

    assert statements("a.db", upgrade) == statements("b.db", create)


def test_every_version_has_its_migration():
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", SHIPPED.location)
    revisions = [each.revision for each in ScriptDirectory.from_config(config).walk_revisions()]

    assert tuple(reversed(revisions)) == SHIPPED.revisions


def test_opening_twice_at_once_makes_the_tables_once(url):
    async def scenario():
        stores = await asyncio.gather(*(Store.open(url) for _ in range(4)))
        jobs = [await accept(store) for store in stores]
        found, _ = await stores[0].read(load_jobs)
        for store in stores:
            await store.close()
        return jobs, found

    jobs, found = asyncio.run(scenario())

    assert found == jobs


ADDS_A_COLUMN = f"""
import sqlalchemy as sa
from alembic import op

revision = "next"
down_revision = "{SHIPPED.head}"

def upgrade() -> None:
    op.add_column("jobs", sa.Column("colour", sa.String(20), server_default="green"))
    with op.batch_alter_table("pods") as pods:
        pods.drop_column("exit_code")
"""


@pytest.fixture
def next_version(tmp_path) -> History:
    """What the next release might bring, on top of what is shipped."""
    folder = tmp_path / "migrations"
    shutil.copytree(Path(migrations.__file__).parent, folder)
    (folder / "versions" / "next.py").write_text(ADDS_A_COLUMN)
    return History((*SHIPPED.revisions, "next"), str(folder))


def test_an_older_database_is_upgraded_and_loses_nothing(url, next_version):
    job = with_store(url, accept)

    before = on_empty(url, lambda connection: prepare(connection, "it", next_version))
    again = on_empty(url, lambda connection: prepare(connection, "it", next_version))

    assert (before, again) == (SHIPPED.head, None)
    assert on_database(url, "SELECT name, colour FROM jobs") == [(job.name, "green")]


FIRST_JOB = {
    "number": 1, "uid": "u1", "namespace": "team", "name": "old", "owner": "ann", "framework": "pytorch",
    "runtime": "pytorch-simple", "nodes": 1, "gpus": 0, "engine": "local", "max_restarts": 0, "created_at": 1.0,
    "is_suspended": False, "is_deleting": False, "keeps_code": False, "wanted_run": 1, "phase": "Complete",
    "reason": "", "message": "", "run": 1, "attempt": 0, "lost": 0, "restarts": 0, "is_handed": True,
    "is_reaped": False, "events": 1, "engine_events": 0, "version": 3, "stamp": 1,
}  # fmt: skip
FIRST_POD = {
    "job": 1, "run": 1, "name": "old-node-0-0", "attempt": 0, "replicated_job": "node", "pod_index": 0,
    "phase": "Succeeded", "restarts": 0, "exit_code": 0, "reason": "",
}  # fmt: skip
FIRST_DOCUMENTS = {
    "job": 1, "digest": "d", "spec": "{}", "runtime": "r", "objects": "[]", "effective": "[]",
}  # fmt: skip


def test_a_database_of_the_first_release_keeps_its_jobs(url):
    def fill(connection):
        upgrade(connection, "0001")
        for table, row in (
            ("jobs", FIRST_JOB),
            ("pods", FIRST_POD),
            ("documents", FIRST_DOCUMENTS),
            ("texts", {"digest": "r", "text": "{}"}),
        ):
            names = ", ".join(row)
            values = ", ".join(f":{name}" for name in row)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), row)

    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
    on_empty(url, fill)

    async def scenario(store):
        return (
            (await store.read(load_jobs))[0],
            await store.read(lambda c: load_pods(c, 1, 1)),
            await store.read(lambda c: load_documents(c, 1)),
        )

    (job,), (pod,), documents = with_store(url, scenario)

    assert (job.name, job.phase, job.cloned_from, job.cloned_from_uid) == (
        "old", "Complete", None, None,
    )  # fmt: skip
    assert (pod.name, pod.exit_code, pod.node, pod.address) == ("old-node-0-0", 0, None, None)
    assert documents.original is None


def test_series_that_had_no_rank_are_of_rank_0(url):
    packed = struct.pack("<qdd", 7, 1.5, 0.25)

    def older(connection):
        upgrade(connection, "0001")
        found = MetaData()
        found.reflect(connection)
        connection.execute(insert(found.tables["jobs"]), FIRST_JOB)
        row = {"job": 1, "run": 2, "series": "loss", "first": 0, "count": 1, "points": packed}
        connection.execute(insert(found.tables["metrics"]), row)

    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(exist_ok=True)
    on_empty(url, older)

    found = with_store(url, lambda store: store.read(lambda c: load_points(c, 1, 2)))

    assert found == {0: {"loss": [Point(7, 1.5, 0.25)]}}


def test_users_of_an_older_database_stay_who_they_were(url):
    """Only a name that an administrator or the issuer's own person made is open to that person."""
    names = {"made": "", "signed-up": "(sign-up)", "of-issuer": "of-issuer", "portal": ""}

    def older(connection):
        upgrade(connection, "0004")
        found = MetaData()
        found.reflect(connection)
        tables = found.tables
        user = {"is_administrator": False, "created_at": 1.0}
        event = {
            "time": 1.0,
            "namespace": "",
            "uid": "",
            "result": "",
            "detail": "",
            "request_id": "",
        }
        token = {"label": "", "created_at": 1.0}
        for name, actor in names.items():
            backend = "user-*" if name == "portal" else ""
            connection.execute(insert(tables["users"]), {**user, "name": name, "backend": backend})
            if actor:
                signed_up = {**event, "actor": actor, "action": "user.signup", "object": name}
                connection.execute(insert(tables["audit"]), signed_up)
                row = {**token, "id": name, "user": name, "hash": name}
                connection.execute(insert(tables["tokens"]), row)

    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir(exist_ok=True)
    on_empty(url, older)

    found = with_store(url, lambda store: store.read(load_access))

    issuers = {each.name: each.issuer for each in found.users}
    assert issuers == {"made": "*", "signed-up": "", "of-issuer": "*", "portal": ""}


def test_an_upgrade_that_fails_changes_nothing(url, next_version):
    with_store(url, accept)
    path = Path(next_version.location, "versions", "next.py")
    path.write_text(ADDS_A_COLUMN + "    raise RuntimeError('power')\n")

    with pytest.raises(RuntimeError):
        on_empty(url, lambda connection: prepare(connection, "it", next_version))

    assert "colour" not in str(on_empty(url, shape))
    assert len(with_store(url, lambda store: store.read(load_jobs))[0]) == 1


def test_a_newer_database_is_refused_with_the_way_out(url, next_version):
    with_store(url, accept)
    on_empty(url, lambda connection: prepare(connection, "it", next_version))

    with pytest.raises(StoreRefused) as caught:
        with_store(url, accept)

    where = make_driver(url).where
    assert str(caught.value) == (
        f"the database {where} has the schema next; this program knows {', '.join(SHIPPED.revisions)}. It was "
        "written by a newer astrago: install that one, or bring back a backup made before the upgrade "
        "with 'astrago db restore FILE'."
    )


def test_a_database_of_somebody_else_is_refused(url):
    if url.startswith("sqlite"):
        Path(url.removeprefix("sqlite:///")).parent.mkdir()
    on_database(url, "CREATE TABLE customers (id INTEGER)")

    with pytest.raises(
        StoreRefused, match=r"holds other tables \(customers\) and none of astrago's"
    ):
        with_store(url, accept)


def test_a_password_is_in_no_message():
    with pytest.raises(Exception, match="not available") as caught:
        with_store("postgresql://ann:hunter2@localhost:1/none", accept)

    assert "hunter2" not in str(caught.value)
    assert "postgresql://ann:***@localhost:1/none" in str(caught.value)


def test_another_kind_of_database_is_refused():
    with pytest.raises(StoreRefused, match="a database is sqlite:///PATH or postgresql://"):
        with_store("mysql://root@localhost/x", accept)
