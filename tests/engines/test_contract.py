"""What every engine promises, whichever it is.

On a cluster the same tests run from `tests/cluster/engine`, with fixtures of the same names.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.engines import jobs
from tests.engines.jobs import PATIENCE, run, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import EngineUnavailable, Handle
from astrago_trainer.engines.fake import FakeEngine, Trouble
from astrago_trainer.engines.local.engine import LocalEngine

ENDLESS = "exec sleep 1000"
RUNNING = Phase.RUNNING


@pytest.fixture(params=["fake", "local, each pod with its view", "local, plain"])
def engine(request, tmp_path):
    if request.param == "fake":
        return FakeEngine()
    isolation = "plain" if "plain" in request.param else "view"
    return LocalEngine(tmp_path / "data", isolation=isolation)


@pytest.fixture
def a_handle():
    """Makes the name of a job that nobody has had before."""
    return jobs.a_handle


@pytest.fixture
def effective():
    """Makes what the engine is given for a shell script."""
    return jobs.effective


async def finish(engine, handle: Handle):
    """The real ones end by themselves; the fake one is told to."""
    if isinstance(engine, FakeEngine):
        engine.finish(handle)
    return await until_over(engine, handle)


def test_a_job_runs_to_its_end(engine, a_handle, effective):
    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective("exit 0", nodes=2))
        return await finish(engine, handle)

    seen = run(engine, scenario)

    assert seen.phase is Phase.COMPLETE
    assert [(pod.name, pod.job, pod.index, pod.phase) for pod in seen.pods] == [
        ("job-node-0-0", "node", 0, "Succeeded"),
        ("job-node-0-1", "node", 1, "Succeeded"),
    ]


def test_the_same_call_twice_makes_no_second_job(engine, a_handle, effective):
    async def scenario():
        handle, job = a_handle(), effective(ENDLESS)
        await engine.apply(handle, job)
        first = await until(engine, handle, lambda seen: seen.phase is RUNNING)
        await engine.apply(handle, job)
        second = await engine.observe(handle)
        await engine.stop(handle)
        return first, second

    first, second = run(engine, scenario)

    assert second.phase is RUNNING
    assert second.events == first.events


def test_a_job_that_was_never_applied_is_gone_and_can_be_stopped(engine, a_handle):
    async def scenario():
        handle = a_handle()
        before = await engine.observe(handle)
        await engine.stop(handle)
        return before, await engine.observe(handle)

    assert [seen.is_gone for seen in run(engine, scenario)] == [True, True]


def test_a_stopped_job_is_gone_and_stopping_it_again_is_fine(engine, a_handle, effective):
    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective(ENDLESS))
        await until(engine, handle, lambda seen: seen.phase is RUNNING)
        await engine.stop(handle)
        await engine.stop(handle)
        return await engine.observe(handle)

    assert run(engine, scenario).is_gone


def test_two_jobs_of_one_name_are_two_jobs(engine, a_handle, effective):
    async def scenario():
        first, second = a_handle(), a_handle()
        await engine.apply(first, effective(ENDLESS))
        await until(engine, first, lambda seen: seen.phase is RUNNING)
        await engine.stop(first)
        await engine.apply(second, effective(ENDLESS))
        seen = await until(engine, second, lambda seen: seen.phase is RUNNING)
        gone = await engine.observe(first)
        await engine.stop(second)
        return seen, gone

    seen, gone = run(engine, scenario)

    assert (seen.phase, gone.is_gone) == (RUNNING, True)


def test_a_suspended_job_has_no_pods_and_runs_again_when_resumed(engine, a_handle, effective):
    async def scenario():
        handle, job = a_handle(), effective(ENDLESS)
        await engine.apply(handle, job)
        await until(engine, handle, lambda seen: seen.phase is RUNNING)
        await engine.apply(handle, replace(job, suspend=True))
        suspended = await engine.observe(handle)
        await engine.apply(handle, job)
        resumed = await until(engine, handle, lambda seen: seen.phase is RUNNING)
        await engine.stop(handle)
        return suspended, resumed

    suspended, resumed = run(engine, scenario)

    assert suspended.phase is Phase.SUSPENDED
    assert not [pod for pod in suspended.pods if pod.phase == "Running"]
    assert (resumed.phase, resumed.restarts) == (RUNNING, 0)


def test_a_job_may_be_suspended_from_the_beginning(engine, a_handle, effective):
    async def scenario():
        handle, job = a_handle(), effective("exit 0", suspend=True)
        await engine.apply(handle, job)
        before = await engine.observe(handle)
        await engine.apply(handle, replace(job, suspend=False))
        return before, await finish(engine, handle)

    before, after = run(engine, scenario)

    assert (before.phase, after.phase) == (Phase.SUSPENDED, Phase.COMPLETE)


def test_the_fake_engine_makes_the_trouble_it_is_told_to(a_handle, effective):
    async def scenario():
        engine = FakeEngine(
            trouble=Trouble(fail_calls=frozenset({1}), fail_after_calls=frozenset({2}))
        )
        handle = a_handle()
        for _ in range(2):
            with pytest.raises(EngineUnavailable):
                await engine.apply(handle, effective())
        done = await engine.observe(handle)
        engine.lose(handle)
        return done, await engine.observe(handle)

    done, lost = asyncio.run(scenario())

    assert (done.phase, lost.is_gone) == (RUNNING, True)


def test_changes_name_the_jobs_of_which_there_are_news(engine, a_handle, effective):
    async def scenario():
        handle, other = a_handle(), a_handle("other")
        news = engine.changes()
        first = asyncio.ensure_future(anext(news))
        await asyncio.sleep(0)  # the step that begins to listen
        await engine.apply(handle, effective("exit 0"))
        async with asyncio.timeout(PATIENCE):
            named = {await first}
            await finish(engine, handle)
            await engine.apply(other, effective("exit 0", name="other"))
            while other not in named:
                named.add(await anext(news))
        await news.aclose()
        await finish(engine, other)
        return handle, other, named

    handle, other, named = run(engine, scenario)
    assert named == {handle, other}
