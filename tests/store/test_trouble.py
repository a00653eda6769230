"""Databases that are broken, missing, locked, full or read-only: one message that names them and the way out."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from astrago_trainer.store import DataGone, Store, StoreRefused, StoreUnavailable
from astrago_trainer.store.jobs import load_jobs
from tests.store.databases import a_new_job, accept, with_store

NOBODY = 65534


@pytest.fixture
def path(tmp_path):
    return tmp_path / "astrago.db"


def url_of(path):
    return f"sqlite:///{path}"


def refusal(path, kind=StoreRefused):
    with pytest.raises(kind) as caught:
        with_store(url_of(path), lambda store: store.read(load_jobs))
    return str(caught.value)


def test_a_file_that_is_no_database_is_refused(path):
    path.write_bytes(b"these are not the bytes you are looking for" * 100)

    assert refusal(path) == (
        f"the database {path} is broken: file is not a database. Bring back a backup with "
        "'astrago db restore FILE', or move it away to begin with an empty one."
    )


def test_a_damaged_page_is_found_when_the_jobs_are_read(path):
    async def fill(store):
        for _ in range(200):
            await accept(store)

    with_store(url_of(path), fill)
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name='jobs'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(os.urandom(4096))

    assert "is broken: database disk image is malformed" in refusal(path)


def test_a_truncated_file_is_refused(path):
    with_store(url_of(path), accept)
    os.truncate(path, 10_000)

    assert "is broken" in refusal(path)


def test_a_database_that_has_gone_is_missed(path):
    with_store(url_of(path), accept)
    path.unlink()

    mark = path.with_name("astrago.db.made-here")
    assert refusal(path) == (
        f"the database {path} is missing, although it was made here once. Bring it back with "
        f"'astrago db restore FILE', or remove {mark} to begin with an empty one."
    )
    mark.unlink()
    assert with_store(url_of(path), lambda store: store.read(load_jobs))[0] == []


@pytest.mark.parametrize("how", ["removed", "replaced", "moved with its folder"])
def test_a_database_that_goes_while_it_is_open_takes_no_writes(tmp_path, how):
    path = tmp_path / "data" / "astrago.db"

    async def scenario(store):
        await accept(store)
        if how == "moved with its folder":
            path.parent.rename(tmp_path / "elsewhere")
        else:
            path.unlink()
        if how == "replaced":
            path.write_bytes(b"")
        with pytest.raises(DataGone) as caught:
            await accept(store)
        if how == "moved with its folder":
            (tmp_path / "elsewhere").rename(path.parent)
            await accept(store)
        return str(caught.value)

    message = with_store(url_of(path), scenario)

    assert f"the database {path} was removed or replaced while the server ran" in message
    assert "start the server again" in message


def test_it_is_private(path):
    with_store(url_of(path), accept)

    assert path.stat().st_mode & 0o077 == 0


def test_a_write_that_is_cut_off_is_not_there_and_the_rest_is(path):
    """What a loss of power leaves: the log of writes ends in the middle of the last one."""
    left = path.with_name("left")
    left.mkdir()

    async def scenario(store):
        first = await accept(store)
        whole = path.with_name("astrago.db-wal").stat().st_size
        await accept(store)
        wal = path.with_name("astrago.db-wal").read_bytes()
        for name, data in (
            ("astrago.db", path.read_bytes()),
            ("astrago.db-wal", wal[: whole + 5000]),
        ):
            (left / name).write_bytes(data)
        return first

    first = with_store(url_of(path), scenario)

    found, _ = with_store(url_of(left / "astrago.db"), lambda store: store.read(load_jobs))
    assert found == [first]


class TestALockedDatabase:
    def test_is_told_and_nothing_of_the_write_is_kept(self, path):
        with_store(url_of(path), accept)

        async def scenario():
            store = await Store.open(url_of(path), busy_seconds=0.05)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                with pytest.raises(StoreUnavailable) as caught:
                    await accept(store, a_new_job("not now"))
                other.execute("COMMIT")
            later = await accept(store, a_new_job("later"))
            jobs, _ = await store.read(load_jobs)
            await store.close()
            return str(caught.value), later, jobs

        message, later, jobs = asyncio.run(scenario())

        assert message == (
            f"the database {path} is not available: another process holds it locked; it is free again "
            "when that one ends or commits (database is locked)."
        )
        assert jobs[1:] == [later]

    def test_is_waited_for(self, path):
        async def scenario(store):
            with closing(
                sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            ) as other:
                other.execute("BEGIN EXCLUSIVE")
                writing = asyncio.create_task(accept(store))
                reading = await asyncio.gather(store.read(load_jobs), return_exceptions=True)
                is_done = writing.done()
                other.execute("COMMIT")
                return is_done, reading, await writing

        is_done, reading, job = with_store(url_of(path), scenario)

        assert not is_done
        assert reading == [([], 0)], "in WAL mode readers do not wait"
        assert job.number == 1

    def test_cannot_be_opened(self, path):
        with_store(url_of(path), accept)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")

            async def scenario():
                await Store.open(url_of(path), busy_seconds=0.05)

            with pytest.raises(StoreUnavailable, match="Nothing was changed; try again"):
                asyncio.run(scenario())


class TestAFullDisk:
    @pytest.fixture
    def small(self, tmp_path):
        folder = tmp_path / "small"
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "astrago", str(folder)]
        if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
            pytest.skip("no file system can be mounted here: root is needed")
        yield folder
        subprocess.run(["umount", "-l", str(folder)], check=True)

    def test_is_told_and_it_goes_on_when_there_is_room(self, small):
        filler = small / "filler"

        async def fill(store):
            for _ in range(100):
                await asyncio.gather(*(accept(store) for _ in range(50)))

        async def scenario(store):
            first = await accept(store)
            room = os.statvfs(small)
            filler.write_bytes(bytes(room.f_bavail * room.f_frsize))
            with pytest.raises(StoreUnavailable) as caught:
                await fill(store)
            full, _ = await store.read(load_jobs)
            filler.unlink()
            last = await accept(store)
            jobs, _ = await store.read(load_jobs)
            return str(caught.value), first, full, last, jobs

        message, first, full, last, jobs = with_store(url_of(small / "astrago.db"), scenario)

        assert "is not available: its disk" in message
        assert full[0] == first
        assert jobs == [*full, last], "no torn row, no lost one"
        with closing(sqlite3.connect(small / "astrago.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("folder_mode", [0o755, 0o700])
def test_a_database_of_somebody_else_is_read_only(folder_mode):
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    program = (
        # All that is needed is imported first, because root's Python may be private.
        "import asyncio, os, sqlite3, sys, sqlalchemy.dialects.sqlite\n"
        "from astrago_trainer.store import Store, StoreRefused\n"
        f"os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "try:\n    asyncio.run(Store.open(sys.argv[1]))\n"
        "except StoreRefused as error:\n    print(error)\n"
    )
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = Path(folder, "astrago.db")
        with_store(url_of(path), accept)
        path.chmod(0o644)
        Path(folder).chmod(folder_mode)
        command = [sys.executable, "-c", program, url_of(path)]
        done = subprocess.run(command, capture_output=True, text=True)

    assert done.stdout.startswith(f"the database {path} is read-only for this user. "), done.stderr


def test_a_postgresql_that_does_not_answer_is_unavailable_and_comes_back(postgres):
    """It is stopped as a machine stops that has run out of memory: connections stay open, and nothing comes."""
    folder = parse_qs(urlsplit(postgres).query)["host"][0]

    async def scenario():
        store = await Store.open(postgres, busy_seconds=0.5)
        patient = await Store.open(postgres, busy_seconds=2.0)
        await patient.read(load_jobs)
        await accept(store)
        stop_all(folder, signal.SIGSTOP)
        refused = []
        try:
            for work in (accept(store), store.read(load_jobs), accept(store)):
                async with asyncio.timeout(60):
                    with pytest.raises(StoreUnavailable) as error:
                        await work
                refused.append(str(error.value))
            # A connection of the pool is tried, then a new one: together they may take no longer than one.
            begin = time.monotonic()
            with pytest.raises(StoreUnavailable):
                await patient.read(load_jobs)
            seconds = time.monotonic() - begin
        finally:
            stop_all(folder, signal.SIGCONT)
        async with asyncio.timeout(60):
            await accept(store)
            jobs, _ = await store.read(load_jobs)
            await store.close()
            await patient.close()
        return refused, len(jobs), seconds

    refused, count, seconds = asyncio.run(scenario())

    assert count >= 2
    assert seconds < 3.5
    assert all("did not answer" in each for each in refused), refused


def stop_all(folder: str, number: int) -> None:
    """Every process of that server: the one that listens and those of its connections."""
    postmaster = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    for pid in (postmaster, *map(int, children)):
        os.kill(pid, number)
