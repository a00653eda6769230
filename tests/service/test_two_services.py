"""Two services on one database: one job for one submit, one of them looks after it, both know."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager

import pytest

from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.service import following
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.leases import BEAT_SECONDS, DEAD_SECONDS
from astrago_trainer.store import StoreUnavailable
from astrago_trainer.store.jobs import Change, change_jobs
from astrago_trainer.store.servers import Server, insert_servers, remove_servers, this_host
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


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request):
    return None if request.param == "sqlite" else request.getfixturevalue("postgres")


@asynccontextmanager
async def two(tmp_path, engine, database, clock=None):
    """Both in one loop; they share the engine, as they would share a machine or a cluster."""
    async with (
        serving(tmp_path, engine, database=database) as one,
        serving(tmp_path, engine, database=database, clock=clock) as other,
    ):
        yield one, other


def applies(engine):
    return [handle for what, handle in engine.calls if what == "apply"]


def test_a_key_sent_to_both_at_once_is_one_job(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with two(tmp_path, engine, database) as (one, other):
            submits = [
                service.submit(ANN, "team", a_spec(nodes=1), f"key{number}")
                for number in range(10)
                for service in (one, other, one, other)
            ]
            records = await asyncio.gather(*submits)
            for service in (one, other):
                await service._following.catch_up()
                await until(service, lambda s=service: s.board.counts() == {"Running": 10})
            return records, [{r.job.uid for r in s.list().records} for s in (one, other)]

    records, boards = asyncio.run(scenario())

    assert len({record.job.uid for record in records}) == 10
    assert boards[0] == boards[1] == {record.job.uid for record in records}
    assert len(applies(engine)) == len(set(applies(engine))) == 10


def test_the_same_second_gives_different_names(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with two(tmp_path, engine, database) as (one, other):
            submits = [s.submit(ANN, "team", a_spec(nodes=1)) for s in (one, other) * 10]
            return [record.job.name for record in await asyncio.gather(*submits)]

    assert len(set(asyncio.run(scenario()))) == 20


def test_one_looks_after_a_job_and_the_other_may_still_wish(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with two(tmp_path, engine, database) as (one, other):
            job = await running(one)
            await other._following.catch_up()
            other._reconciler.look_at_all()
            await other.suspend(ANN, "team", job.name)
            await one._following.catch_up()
            await until_phase(one, job.name, "Suspended")
            await other._following.catch_up()
            suspended = other.get("team", job.name).job
            await other.delete(ANN, "team", job.name)
            await one._following.catch_up()
            await until_gone(one, job.name)
            await other._following.catch_up()
            return job, suspended, len(other.board)

    job, suspended, left = asyncio.run(scenario())

    assert (suspended.phase, suspended.server) == ("Suspended", job.server)
    assert (left, engine._jobs) == (0, {})


def test_both_change_one_job_at_once_and_nothing_is_lost(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with two(tmp_path, engine, database) as (one, other):
            job = await running(one)
            await other._following.catch_up()
            verbs = [
                verb(ANN, "team", job.name)
                for service in (one, other)
                for verb in (service.suspend, service.restart, service.resume)
            ]
            await asyncio.gather(*verbs)
            await one.delete(ANN, "team", job.name)
            await asyncio.gather(other.delete(ANN, "team", job.name), return_exceptions=True)
            await until_gone(one, job.name)
            return await one.audit()

    audit = asyncio.run(scenario())

    assert [row.action for _, row in audit].count("job.delete") == 1
    assert [row.action for _, row in audit].count("job.removed") == 1
    assert engine._jobs == {}


def test_what_a_closed_one_leaves_is_taken_over(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine, database=database) as other:
            async with serving(tmp_path, engine, database=database) as one:
                job = await running(one)
            await other._following.catch_up()
            await other._leases.refresh()
            other._reconciler.look_at_all()
            engine.finish(handle(job))
            over = await other.until_over("team", job.name)
            return job, over.job

    job, over = asyncio.run(scenario())

    assert over.server != job.server
    assert len(applies(engine)) == 1


def test_a_server_elsewhere_is_dead_when_its_beat_stands_still(tmp_path, database):
    """A machine that lost its power: nobody can ask for its processes."""
    engine, clock = FakeEngine(), SetClock()

    async def scenario():
        async with two(tmp_path, engine, database, clock.clock) as (one, other):
            far = Server("far away", "another machine", 1, 1)
            await one.store.write(insert_servers, far)
            job = await running(one)
            taken = await one.store.write(change_jobs, Change(job, {"server": far.id}))
            one.board.put(taken)
            await other._following.catch_up()
            await other._leases.refresh()
            alive = not await other._leases.is_free(far.id)
            clock.pass_(DEAD_SECONDS - BEAT_SECONDS)
            await other._leases.refresh()
            still = not await other._leases.is_free(far.id)
            clock.pass_(BEAT_SECONDS + 1)
            await other._leases.refresh()
            other._reconciler.look_at_all()
            engine.finish(handle(job))
            await other.until_over("team", job.name)
            server = other.get("team", job.name).job.server
            return alive, still, server in (one._leases.id, other._leases.id)

    alive, still, is_taken_over = asyncio.run(scenario())

    assert (alive, still, is_taken_over) == (True, True, True), "one of those who live has it"
    assert len(applies(engine)) == 1


def test_a_server_that_has_just_come_keeps_its_jobs(tmp_path, database):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine, database=database) as one:
            await one._leases.refresh()
            async with serving(tmp_path, engine, database=database) as new:
                job = await running(new)
                await one._following.catch_up()
                one._reconciler.look_at_all()
                await running(one)
                await one._following.catch_up()
                return job, one.get("team", job.name).job.server

    job, server = asyncio.run(scenario())

    assert server == job.server


def test_a_server_of_this_machine_is_dead_when_its_process_is_gone(tmp_path):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine) as service:
            gone = Server("gone", this_host(), 2**22 + 1, 12345)
            await service.store.write(insert_servers, gone)
            await service._leases.refresh()
            return await service._leases.is_free("gone")

    assert asyncio.run(scenario())


def test_one_that_was_taken_for_dead_comes_back_and_doubles_nothing(tmp_path):
    engine, clock = FakeEngine(), SetClock()

    async def scenario():
        async with serving(tmp_path, engine, clock=clock.clock) as service:
            job = await running(service)
            await service.store.write(remove_servers, service._leases.id)  # another one did this
            clock.pass_(DEAD_SECONDS)
            engine.finish(handle(job))
            over = await service.until_over("team", job.name)
            await service._leases.refresh()
            return over.job

    assert asyncio.run(scenario()).phase == "Complete"
    assert len(applies(engine)) == 1


def test_a_token_that_one_revokes_opens_nothing_at_the_other(tmp_path, database):
    root = Identity("root", is_administrator=True)

    async def scenario():
        async with two(tmp_path, FakeEngine(), database) as (one, other):
            await one.access.sign_up(root, "ann")
            issued = await one.access.create_token(root, "ann")
            await other._following.catch_up()
            before = other.access.verify(issued.secret)
            await one.access.revoke_token(root, issued.id)
            await other._following.catch_up()
            return before, other.access.verify(issued.secret)

    before, after = asyncio.run(scenario())

    assert before is not None
    assert after is None


def test_one_that_only_asks_takes_no_job_and_needs_no_beat(tmp_path):
    engine = FakeEngine()

    async def scenario():
        visitor = a_service(tmp_path, engine)
        async with serving(tmp_path, engine) as server:
            await visitor.open(tend=False)
            record = await visitor.submit(ANN, "team", a_spec())
            await server._following.catch_up()
            job = await until_phase(server, record.job.name, "Running")
            await visitor._following.catch_up()
            seen = visitor.get("team", job.name).job.phase
            await visitor.close()
            return record.job.server, job.server, server._leases.id, seen

    before, after, server, seen = asyncio.run(scenario())

    assert (before, after, seen) == (None, server, "Running")


def test_what_one_was_asked_for_the_other_knows(tmp_path, database):
    """Nobody reads by stamp in between: each decides on what the database has."""

    async def scenario():
        async with two(tmp_path, FakeEngine(), database) as (one, other):
            stays = []
            for _ in range(10):
                job = (await one.submit(ANN, "team", a_spec(nodes=1))).job
                await other.suspend(ANN, "team", job.name)
                resumed = await one.resume(ANN, "team", job.name)
                again = await other.suspend(ANN, "team", job.name)
                stays.append((resumed.job.is_suspended, again.job.is_suspended))
                deleted = await one.delete(ANN, "team", job.name)
                assert deleted.job.is_deleting
            return stays

    assert asyncio.run(scenario()) == [(False, True)] * 10


def test_a_name_that_was_freed_at_the_other_can_be_used(tmp_path, database):
    async def scenario():
        async with two(tmp_path, FakeEngine(), database) as (one, other):
            for first, second in ((one, other), (other, one)):
                await first.submit(ANN, "team", a_spec(nodes=1, name="job"))
                await second.catch_up()
                await first.delete(ANN, "team", "job")
                await until_gone(first, "job")
                made = await second.submit(ANN, "team", a_spec(nodes=1, name="job"))
                await second.delete(ANN, "team", "job")
                await until_gone(second, "job")
                await first.catch_up()
            return made.job.name

    assert asyncio.run(scenario()) == "job"


def test_readers_at_the_same_time_share_one_pass(tmp_path):
    async def scenario():
        async with two(tmp_path, FakeEngine(), None) as (one, other):
            assert one.has_others or other.has_others
            job = (await one.submit(ANN, "team", a_spec(nodes=1))).job
            before = other._following._passes
            await asyncio.gather(*(other.catch_up() for _ in range(100)))
            return other.get("team", job.name).job.uid == job.uid, other._following._passes - before

    is_known, passes = asyncio.run(scenario())

    assert is_known
    assert passes <= 2


def test_reads_are_answered_where_the_database_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "READ_SECONDS", 0.05)

    async def scenario():
        async with two(tmp_path, FakeEngine(), None) as (one, _):
            job = (await one.submit(ANN, "team", a_spec(nodes=1))).job
            asked = 0

            async def hangs(work):
                nonlocal asked
                asked += 1
                await asyncio.Event().wait()

            monkeypatch.setattr(one.store, "read", hangs)
            for _ in range(100):
                await one.keep_up()
            monkeypatch.undo()
            return asked, one.get("team", job.name).job.uid == job.uid

    asked, is_known = asyncio.run(scenario())

    assert is_known
    assert asked < 20, "later reads do not wait again"


def test_a_pass_that_failed_is_nobody_elses(tmp_path, monkeypatch):
    """Who waits for the pass of somebody else makes one of their own when that one fails."""

    async def scenario():
        async with two(tmp_path, FakeEngine(), None) as (one, other):
            real, fails = other.store.read, [True, True]

            async def read(work):
                if fails:
                    fails.pop()
                    await asyncio.sleep(0)
                    raise StoreUnavailable("lost on the way")
                return await real(work)

            job = (await one.submit(ANN, "team", a_spec(nodes=1))).job
            monkeypatch.setattr(other.store, "read", read)
            ends = await asyncio.gather(
                *(other.catch_up() for _ in range(5)), return_exceptions=True
            )
            monkeypatch.undo()
            return ends, other.board.find("team", job.name)

    ends, found = asyncio.run(scenario())

    assert [type(each) for each in ends].count(StoreUnavailable) == 2
    assert found is not None


def test_a_process_that_was_stopped_asks_the_database_once_more(tmp_path, monkeypatch):
    """The time of a stop says nothing about the database: what another server has written is seen."""
    monkeypatch.setattr(following, "READ_SECONDS", 0.05)

    async def scenario():
        async with two(tmp_path, FakeEngine(), None) as (one, other):
            job = (await other.submit(ANN, "team", a_spec(nodes=1))).job
            read, stops = one.store.read, 0

            async def stopped_once(work):
                nonlocal stops
                stops += 1
                if stops == 1:
                    time.sleep(0.5)  # nothing else of the process runs, its timers neither
                    await asyncio.Event().wait()
                return await read(work)

            monkeypatch.setattr(one.store, "read", stopped_once)
            await one.keep_up()
            return one.get("team", job.name).job.uid == job.uid

    assert asyncio.run(scenario())
