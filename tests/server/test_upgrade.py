"""A server on a database of an earlier release goes on with the jobs that run, wait and are suspended."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from astrago_trainer.store.drivers import make_driver
from astrago_trainer.store.schema import SHIPPED, upgrade
from tests.engines.ending import end_jobs
from tests.server.serving import JOBS, PATIENCE, a_process, a_request


def make_older(path: Path, revision: str) -> None:
    """Gives the database the schema of an earlier release, with all rows and columns that this one knows."""
    older = path.with_name("older.db")

    async def make() -> None:
        driver = make_driver(f"sqlite:///{older}")
        try:
            await driver.write(lambda connection: upgrade(connection, revision))
        finally:
            await driver.close()

    asyncio.run(make())
    with closing(sqlite3.connect(path, isolation_level=None)) as rows:
        rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows.execute("ATTACH ? AS older", (str(older),))
        rows.execute("PRAGMA foreign_keys = OFF")
        rows.execute("BEGIN")
        for (table,) in rows.execute("SELECT name FROM older.sqlite_master WHERE type = 'table'"):
            if table != "alembic_version" and not table.startswith("sqlite_"):
                names = ", ".join(f'"{name}"' for name in _columns(rows, "older", table))
                rows.execute(f'DELETE FROM older."{table}"')
                rows.execute(
                    f'INSERT INTO older."{table}" ({names}) SELECT {names} FROM main."{table}"'
                )
        rows.execute("COMMIT")
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
        Path(f"{older}{suffix}").unlink(missing_ok=True)
    older.replace(path)
    path.chmod(0o600)


def _columns(rows: sqlite3.Connection, schema: str, table: str) -> list[str]:
    return [row[1] for row in rows.execute(f'PRAGMA {schema}.table_info("{table}")')]


def _version(path: Path) -> str:
    with closing(sqlite3.connect(path)) as rows:
        return str(rows.execute("SELECT version_num FROM alembic_version").fetchone()[0])


def until(client: httpx.Client, name: str, *phases: str) -> dict:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        job = client.get(f"{JOBS}/{name}").raise_for_status().json()
        if job["phase"] in phases:
            return job
        time.sleep(0.05)
    pytest.fail(f"{name} is {job['phase']} ({job['reason']} {job['message']}), not {phases}")


@pytest.mark.parametrize("revision", SHIPPED.revisions[:-1])
def test_jobs_go_on_after_an_upgrade_from_every_earlier_schema(tmp_path, revision):
    data, starts, gate = tmp_path / "data", tmp_path / "starts", tmp_path / "gate"
    database = data / "astrago.db"
    settings = {"ASTRAGO_LOCAL_CPUS": "1"}

    def body(name, **fields):
        command = f"bash -c 'echo {name} >> {starts}; until [ -e {gate} ]; do sleep 0.05; done'"
        size = {"cpu": "1", "memory": "16Mi"}
        return a_request(name=name, nodes=1, code=None, command=command, resources=size, **fields)

    try:
        with (
            a_process(data, **settings) as server,
            httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
        ):
            for name, phase in (("runs", "Running"), ("waits", "Queued")):
                assert client.post(JOBS, json=body(name)).status_code == 201
                until(client, name, phase)
            answer = client.post(JOBS, json=body("suspended", suspend=True))
            assert answer.status_code == 201
            before = until(client, "suspended", "Suspended")
            server.kill()
        make_older(database, revision)
        assert _version(database) == revision

        with (
            a_process(data, **settings) as server,
            httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
        ):
            assert _version(database) == SHIPPED.head
            assert until(client, "suspended", "Suspended")["uid"] == before["uid"]
            until(client, "runs", "Running")
            until(client, "waits", "Queued")
            gate.touch()
            for name in ("runs", "waits"):
                job = until(client, name, "Complete", "Failed")
                assert (job["phase"], job["run"], job["attempt"]) == ("Complete", 1, 0)
            assert client.post(f"{JOBS}/suspended:resume").status_code == 202
            assert until(client, "suspended", "Complete", "Failed")["phase"] == "Complete"
        assert starts.read_text().split() == ["runs", "waits", "suspended"], "each ran once"
    finally:
        gate.touch()
        end_jobs(data)
