"""Jobs that wait for one machine: no process each, fair turns, and nobody forgotten when processes die."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.engines.jobs import PATIENCE, a_handle, effective, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import is_alive, read_json
from astrago_trainer.engines.local.queue import Queue
from astrago_trainer.engines.local.scheduler import is_running

GROUP = {"pod": {"restartPolicy": "Never"}, "job": {"backoffLimit": 0}}


def cpus(count: int | str) -> dict:
    return {"resources": {"requests": {"cpu": str(count), "memory": "1Mi"}}}


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch):
    monkeypatch.setenv("ASTRAGO_LOCAL_CPUS", "2")


@contextmanager
def gate(folder: Path) -> Iterator[str]:
    """A script that runs until the block is left."""
    file = folder / "go-on"
    try:
        yield f"until [ -e {file} ]; do sleep 0.02; done"
    finally:
        file.touch()


def scheduler_of(engine: LocalEngine) -> int:
    return read_json(str(engine._data / "scheduler.json"))["pid"]


async def ended(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while Path(f"/proc/{pid}").exists():
            await asyncio.sleep(0.01)


def test_a_waiting_job_has_no_process_and_says_what_is_missing(tmp_path):
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        with gate(tmp_path) as script:
            first, second = a_handle("first"), a_handle("second")
            await engine.apply(first, effective(script, container=cpus(2)))
            await engine.apply(second, effective("exit 0", container=cpus(1)))
            seen = await engine.observe(second)
            assert (seen.phase, seen.reason) == (Phase.QUEUED, "NoRoom")
            assert seen.message == "1 CPU needed, 0 of 2 free"
            assert read_json(engine.folder(second).supervisor) is None
            scheduler = scheduler_of(engine)
        ends = [await until_over(engine, handle) for handle in (first, second)]
        await ended(scheduler)
        return ends

    assert [(seen.phase, seen.attempt) for seen in asyncio.run(scenario())] == [
        (Phase.COMPLETE, 0)
    ] * 2
    assert not is_running(str(tmp_path / "data"))
    assert not (tmp_path / "data" / "scheduler.json").exists()


def test_namespaces_take_turns_and_each_keeps_its_order(tmp_path):
    """30 jobs of ann come first, ten of ben and ten of eve after them; all run, one at a time."""
    engine = LocalEngine(tmp_path / "data", isolation="plain")
    order = tmp_path / "order"

    async def scenario():
        jobs = [("ann", n) for n in range(30)] + [
            (who, n) for n in range(10) for who in ("ben", "eve")
        ]
        with gate(tmp_path) as script:
            blocker = a_handle("blocker", namespace="zoe")
            await engine.apply(blocker, effective(script, container=cpus(2)))
            handles = []
            for who, number in jobs:
                handle = a_handle(f"j{number}", namespace=who)
                handles.append(handle)
                line = f"echo {who} {number} >> {order}"
                await engine.apply(handle, effective(line, container=cpus(2)))
        for handle in [blocker, *handles]:
            seen = await until_over(engine, handle)
            assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 0)

    asyncio.run(scenario())
    lines = [line.split() for line in order.read_text().splitlines()]
    assert [who for who, _ in lines[:30]] == ["ann", "ben", "eve"] * 10
    for who in ("ann", "ben", "eve"):
        numbers = [int(number) for name, number in lines if name == who]
        assert numbers == sorted(numbers)


def test_a_killed_scheduler_is_replaced_when_a_job_ends(tmp_path):
    """By whoever watches the jobs; nobody has to ask for the one that waits."""
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        with gate(tmp_path) as script:
            first, second = a_handle("first"), a_handle("second")
            await engine.apply(first, effective(script, container=cpus(2)))
            await engine.apply(second, effective("exit 0", container=cpus(2)))
            changes = engine.changes()
            heard = asyncio.ensure_future(anext(changes))
            await asyncio.sleep(0)  # it listens now
            killed = scheduler_of(engine)
            os.kill(killed, signal.SIGKILL)
            await ended(killed)
        async with asyncio.timeout(PATIENCE):
            while (await heard) != second or not is_over(engine, second):
                heard = asyncio.ensure_future(anext(changes))
        await changes.aclose()
        return await engine.observe(second)

    def is_over(engine, handle):
        return (read_json(engine.folder(handle).status) or {}).get("phase") == "Complete"

    assert asyncio.run(scenario()).phase is Phase.COMPLETE


def test_who_looks_at_a_waiting_job_replaces_a_killed_scheduler(tmp_path):
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        with gate(tmp_path) as script:
            first, second = a_handle("first"), a_handle("second")
            await engine.apply(first, effective(script, container=cpus(2)))
            await engine.apply(second, effective("exit 0", container=cpus(2)))
            killed = scheduler_of(engine)
            os.kill(killed, signal.SIGKILL)
            await ended(killed)
        return await until_over(engine, second)

    assert asyncio.run(scenario()).phase is Phase.COMPLETE


@pytest.mark.parametrize("resumes", [True, False])
def test_a_waiting_job_is_suspended_or_stopped_without_a_process(tmp_path, resumes):
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        queue = Queue(str(tmp_path / "data"))
        job = effective("exit 0", container=cpus(2))
        with gate(tmp_path) as script:
            first, second = a_handle("first"), a_handle("second")
            await engine.apply(first, effective(script, container=cpus(2)))
            await engine.apply(second, job)
            assert queue.has(second.uid)
            if resumes:
                await engine.apply(second, effective("exit 0", container=cpus(2), suspend=True))
                seen = await engine.observe(second)
                assert (seen.phase, queue.is_empty()) == (Phase.SUSPENDED, True)
                await engine.apply(second, job)
                assert (await engine.observe(second)).phase is Phase.QUEUED
            else:
                await engine.stop(second)
                assert queue.is_empty()
        if resumes:
            seen = await until_over(engine, second)
            assert (seen.phase, seen.attempt, seen.restarts) == (Phase.COMPLETE, 0, 0)
        else:
            assert (await engine.observe(second)).is_gone
        await until_over(engine, first)

    asyncio.run(scenario())


def test_a_job_whose_supervisor_is_killed_waits_its_turn_and_keeps_its_attempts(tmp_path):
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        policy = {"failurePolicy": {"maxRestarts": 3}}
        with gate(tmp_path) as script:
            first, second = a_handle("first"), a_handle("second")
            await engine.apply(first, effective(script, container=cpus(2), job_set=policy, **GROUP))
            await until(engine, first, lambda seen: seen.phase is Phase.RUNNING)
            await engine.apply(second, effective(script, container=cpus(2)))
            who = read_json(engine.folder(first).supervisor)
            os.kill(who["pid"], signal.SIGKILL)
            await until(engine, second, lambda seen: seen.phase is Phase.RUNNING)
            await until(engine, first, lambda seen: seen.phase is Phase.QUEUED)
            assert not is_alive(read_json(engine.folder(first).supervisor))
        return await until_over(engine, first), await until_over(engine, second)

    first, second = asyncio.run(scenario())
    assert (first.phase, first.attempt, first.restarts) == (Phase.COMPLETE, 1, 1)
    assert (second.phase, second.attempt) == (Phase.COMPLETE, 0)


def test_jobs_added_while_the_scheduler_ends_are_not_forgotten(tmp_path):
    """Each job leaves an empty queue behind, so that the scheduler is about to end when the next one comes."""
    engine = LocalEngine(tmp_path / "data", isolation="plain")

    async def scenario():
        for number in range(20):
            handles = [a_handle(f"j{number}-{each}") for each in range(2)]
            for handle in handles:
                await engine.apply(handle, effective("exit 0", container=cpus(2)))
            for handle in handles:
                assert (await until_over(engine, handle)).phase is Phase.COMPLETE

    asyncio.run(scenario())
