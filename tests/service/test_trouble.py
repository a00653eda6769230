"""A database that is locked, full or gone under a running service: told, nothing lost, and it goes on by itself."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from contextlib import closing

import pytest

from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.store import StoreRefused, StoreUnavailable
from tests.service.jobs import (
    ANN,
    SetClock,
    a_service,
    a_spec,
    handle,
    running,
    serving,
    until,
    until_gone,
    until_phase,
)


def locked(path):
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    return closing(other)


def test_while_it_is_locked_reads_go_on_and_writes_are_told_to_wait(tmp_path):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine, busy_seconds=0.05) as service:
            job = await running(service)
            with locked(tmp_path / "astrago.db"):
                with pytest.raises(StoreUnavailable, match="another process holds it locked"):
                    await service.submit(ANN, "team", a_spec())
                with pytest.raises(StoreUnavailable):
                    await service.check_ready()
                shown = service.get("team", job.name).job.phase
                engine.finish(handle(job))
            over = await service.until_over("team", job.name)
            later = await running(service)
            return shown, over.job, later, len(service.board)

    shown, over, later, jobs = asyncio.run(scenario())

    assert (shown, over.phase, later.phase, jobs) == ("Running", "Complete", "Running", 2)


def test_a_full_disk_refuses_jobs_and_the_service_goes_on_when_there_is_room(tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "astrago", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here: root is needed")
    engine = FakeEngine()

    async def fill(service):
        while True:
            await asyncio.gather(*(service.submit(ANN, "team", a_spec()) for _ in range(20)))

    async def scenario():
        async with serving(folder, engine) as service:
            await running(service)
            room = os.statvfs(folder)
            (folder / "filler").write_bytes(bytes(room.f_bavail * room.f_frsize))
            with pytest.raises(StoreUnavailable) as caught:
                await fill(service)
            accepted = len(service.board)
            (folder / "filler").unlink()
            await running(service)
            await until(service, lambda: service.board.counts() == {"Running": accepted + 1})
            return str(caught.value), accepted

    async def count():
        async with serving(folder, engine) as service:
            return len(service.board)

    try:
        message, accepted = asyncio.run(scenario())
        found = asyncio.run(count())
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)

    assert "disk" in message
    assert found == len(engine._jobs) == accepted + 1


def test_a_broken_database_is_refused_at_the_start(tmp_path):
    (tmp_path / "astrago.db").write_bytes(b"rubbish" * 1000)

    async def scenario():
        with pytest.raises(StoreRefused) as caught:
            await a_service(tmp_path).open()
        return str(caught.value)

    assert f"the database {tmp_path / 'astrago.db'} is broken" in asyncio.run(scenario())


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_somebody_sets_disturbs_nothing(tmp_path, seconds):
    engine, clock = FakeEngine(), SetClock()

    async def scenario():
        async with serving(tmp_path, engine, clock=clock.clock) as service:
            first = await running(service)
            clock.set_by(seconds)
            second = await running(service)
            await service.suspend(ANN, "team", first.name)
            await until_phase(service, first.name, "Suspended")
            listed = [record.job.name for record in service.list("team").records]
            for job in (first, second):
                await service.delete(ANN, "team", job.name)
                await until_gone(service, job.name)
            return first, second, listed

    first, second, listed = asyncio.run(scenario())

    assert listed == [second.name, first.name], "the newest first, whatever the clock says"
    assert engine._jobs == {}


def test_closing_ends_streams_and_leaves_jobs_alone(tmp_path):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine) as service:
            await running(service)
            stream = service.subscribe("team")
            waiting = asyncio.create_task(anext(stream, "ended"))
            await asyncio.sleep(0)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        return await waiting, others - {waiting}

    ended, tasks = asyncio.run(scenario())

    assert ended == "ended"
    assert tasks == set()
    assert len(engine._jobs) == 1
    assert [what for what, _ in engine.calls].count("stop") == 0
