"""Backups: whole or refused, of either database, into either database."""

from __future__ import annotations

import asyncio
import gzip

import pytest

from astrago_trainer.cli.main import main
from astrago_trainer.store import StoreRefused
from astrago_trainer.store.access import (
    AccessChange,
    Invitation,
    Tenant,
    change_access,
    load_access,
)
from astrago_trainer.store.audit import AuditRow
from astrago_trainer.store.backup import Summary, back_up, check_backup, restore
from astrago_trainer.store.jobs import load_documents, load_jobs
from astrago_trainer.store.metrics import Point, Points, insert_points, load_points
from astrago_trainer.store.schema import SHIPPED
from astrago_trainer.store.servers import Server, insert_servers, start_of, this_host
from tests.store.databases import NOW, a_new_job, accept, on_database, with_store

INVITED = AccessChange(
    AuditRow(NOW, "ann", "team", "invitation.create", "bob"),
    put=(
        Tenant("team", "", NOW),
        Invitation("team", "bob", "member", "ann", NOW, NOW + 0.1),
    ),
)


async def fill(store):
    first = await accept(
        store, a_new_job("first", code=("code", "c"), message="日本 'quotes' \\ \n")
    )
    second = await accept(store)
    await store.write(insert_points, Points(first.number, 1, "loss", (Point(1, NOW, 0.5),)))
    await store.write(change_access, INVITED)
    return first, second


async def everything(store):
    jobs, _ = await store.read(load_jobs)
    return (
        jobs,
        [await store.read(lambda c, job=job: load_documents(c, job.number)) for job in jobs],
        await store.read(lambda c: load_points(c, jobs[0].number, 1)),
        (await store.read(load_access)).invitations,
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def target(request, tmp_path, url) -> str:
    """Another database, empty, of both kinds."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'restored' / 'astrago.db'}"
    if url.startswith("postgresql"):
        base, _, host = request.getfixturevalue("postgres_server").partition("?")
        on = f"{base.rsplit('/', 1)[0]}/other?{host}"
        exists = on_database(url, "SELECT 1 FROM pg_database WHERE datname = 'other'")
        if not exists:
            asyncio.run(_create_database(url))
        on_database(on, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")
        return on
    return request.getfixturevalue("postgres")


async def _create_database(url: str) -> None:
    from sqlalchemy import make_url, text
    from sqlalchemy.ext.asyncio import create_async_engine

    engine = create_async_engine(make_url(url).set(drivername="postgresql+asyncpg"))
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("CREATE DATABASE other"))
    await engine.dispose()


def test_what_comes_back_is_what_was_there_and_goes_on(url, target, tmp_path):
    with_store(url, fill)
    before = with_store(url, everything)
    file = tmp_path / "backup.gz"

    made = asyncio.run(back_up(url, file))
    asyncio.run(restore(target, file))

    assert (made.version, made.jobs) == (SHIPPED.head, 2)
    assert check_backup(file) == made
    assert with_store(target, everything) == before
    new = with_store(target, accept)
    assert new.number == before[0][-1].number + 1
    assert file.stat().st_mode & 0o077 == 0


def test_a_backup_is_made_while_others_write(url, tmp_path):
    async def scenario(store):
        await fill(store)
        writing = asyncio.create_task(asyncio.sleep(0))
        made, *_ = await asyncio.gather(
            back_up(url, tmp_path / "backup.gz"), *(accept(store) for _ in range(50)), writing
        )
        return made

    made = with_store(url, scenario)

    assert check_backup(tmp_path / "backup.gz") == made


def test_a_database_that_is_not_empty_is_not_overwritten(url, tmp_path):
    jobs = with_store(url, fill)
    asyncio.run(back_up(url, tmp_path / "backup.gz"))

    with pytest.raises(StoreRefused, match="is not empty"):
        asyncio.run(restore(url, tmp_path / "backup.gz"))

    assert tuple(with_store(url, lambda store: store.read(load_jobs))[0]) == jobs


def test_it_is_replaced_when_asked(url, tmp_path):
    jobs = with_store(url, fill)
    asyncio.run(back_up(url, tmp_path / "backup.gz"))
    with_store(url, accept)

    asyncio.run(restore(url, tmp_path / "backup.gz", replace=True))

    assert tuple(with_store(url, lambda store: store.read(load_jobs))[0]) == jobs


def test_a_file_that_a_server_uses_is_not_replaced(tmp_path):
    import os

    url = f"sqlite:///{tmp_path / 'astrago.db'}"

    async def scenario(store):
        await fill(store)
        pid = os.getpid()
        await store.write(insert_servers, Server("me", this_host(), pid, start_of(pid)))

    with_store(url, scenario)
    asyncio.run(back_up(url, tmp_path / "backup.gz"))

    with pytest.raises(StoreRefused, match=f"is in use by process {os.getpid()}. Stop it first"):
        asyncio.run(restore(url, tmp_path / "backup.gz", replace=True))


@pytest.mark.parametrize("damage", ["cut", "flipped", "a row less", "no backup"])
def test_a_backup_that_is_not_whole_is_refused(tmp_path, damage):
    url, file = f"sqlite:///{tmp_path / 'astrago.db'}", tmp_path / "backup.gz"
    with_store(url, fill)
    asyncio.run(back_up(url, file))
    data = file.read_bytes()
    if damage == "cut":
        file.write_bytes(data[:-30])
    elif damage == "flipped":
        file.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    elif damage == "a row less":
        lines = gzip.decompress(data).splitlines(keepends=True)
        file.write_bytes(gzip.compress(b"".join(lines[:3] + lines[4:])))
    else:
        file.write_bytes(gzip.compress(b"[1, 2]\n"))

    with pytest.raises(StoreRefused, match=f"the backup {file} "):
        asyncio.run(restore(f"sqlite:///{tmp_path / 'other.db'}", file))
    assert not (tmp_path / "other.db").exists()


def test_no_flipped_bit_goes_unnoticed_or_ends_in_another_error(tmp_path):
    """What the packer finds wrong depends on the place; only what no row stands in may be another."""
    url, file = f"sqlite:///{tmp_path / 'astrago.db'}", tmp_path / "backup.gz"
    with_store(url, fill)
    summary = asyncio.run(back_up(url, file))
    data = file.read_bytes()
    refused = set()
    for place in range(len(data)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        try:
            assert check_backup(file) == summary
        except StoreRefused:
            refused.add(place)
    # The rest: time and name in gzip's own header.
    assert refused > set(range(40, len(data)))


def test_a_broken_database_is_replaced_by_its_backup(tmp_path):
    path, file = tmp_path / "astrago.db", tmp_path / "backup.gz"
    jobs = with_store(f"sqlite:///{path}", fill)
    asyncio.run(back_up(f"sqlite:///{path}", file))
    path.write_bytes(b"rubbish" * 1000)

    asyncio.run(restore(f"sqlite:///{path}", file, replace=True))

    found, _ = with_store(f"sqlite:///{path}", lambda store: store.read(load_jobs))
    assert tuple(found) == jobs
    assert (tmp_path / "astrago.db.before-restore").read_bytes().startswith(b"rubbish")


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("ASTRAGO_DATABASE", raising=False)
    monkeypatch.setenv("ASTRAGO_DATA", str(tmp_path / "data"))
    file = str(tmp_path / "backup.gz")
    nothing = main(["db", "backup", file])
    with_store(f"sqlite:///{tmp_path / 'data' / 'astrago.db'}", fill)

    codes = [
        main(["db", "backup", file]),
        main(["db", "upgrade"]),
        main(["db", "restore", file]),
        main(["db", "restore", file, "--replace"]),
        main(["db", "restore"]),
    ]

    said = capsys.readouterr()
    assert [nothing, *codes] == [1, 0, 0, 1, 0, 2]
    assert f"{file}: 2 jobs, " in said.out
    assert f"schema {SHIPPED.head}\n" in said.out
    assert "restored 2 jobs, " in said.out
    assert f"astrago: there is no database {tmp_path}/data/astrago.db to back up." in said.err
    assert "is not empty" in said.err
    assert Summary(SHIPPED.head, 0, 0) != check_backup(tmp_path / "backup.gz")
