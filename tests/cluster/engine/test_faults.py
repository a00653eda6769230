"""The way to the API server is bad: cut, forgetful, overloaded; a rank is killed. What is told of a job stays true."""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing

import pytest
from tests.cluster.engine.jobs import effective
from tests.cluster.engine.proxy import Trouble, engine_behind
from tests.engines.jobs import PATIENCE, run, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import EngineUnavailable
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine
from astrago_trainer.engines.kubernetes.resources import JOB_UID

OURS = f"trainjobs {JOB_UID}"


async def told_of_the_end(engine, handle) -> Phase | None:
    """Only by changes: whoever has to ask again and again would not notice a watch that is dead."""
    async with asyncio.timeout(PATIENCE), aclosing(engine.changes()) as changes:
        async for named in changes:
            seen = await engine.observe(named)
            if named == handle and seen.phase in (Phase.COMPLETE, Phase.FAILED):
                return seen.phase
    return None


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble(cut_after=0.3),
        Trouble(expire_watches=3),
        Trouble(refuse_watches=3),
        Trouble(cut_after=0.2, expire_watches=2, refuse_watches=2),
    ],
    ids=["cut", "forgotten", "refused", "all"],
)
def test_watches_that_are_cut_or_forgotten_miss_nothing(
    trouble, access, namespace, a_handle, tmp_path
):
    handle = a_handle()

    async def scenario():
        async with engine_behind(trouble, access, namespace, tmp_path) as engine:
            await engine.apply(handle, effective("sleep 1", nodes=2))
            end = await told_of_the_end(engine, handle)
            await engine.stop(handle)
            return end, await engine.observe(handle)

    end, after = asyncio.run(scenario())
    assert end is Phase.COMPLETE
    assert after.is_gone
    assert trouble.forgotten[OURS] == trouble.expire_watches + trouble.refuse_watches


@pytest.mark.parametrize("way_of_telling", ["expire_watches", "refuse_watches"])
def test_what_happened_while_nothing_was_seen_is_told_when_the_place_is_forgotten(
    way_of_telling, access, namespace, a_handle, space, kubectl, tmp_path
):
    """One job has ended meanwhile, another one was removed by somebody else."""
    ended, removed = a_handle("ended"), a_handle("removed")
    # A last second of silence: what a container writes in its last moment containerd may lose, and nobody has it then.
    script = "until [ -e /tmp/enough ]; do sleep 0.1; done; seq 1 20000; sleep 1"
    trouble = Trouble()

    def is_complete(job):
        conditions = job.get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("Complete", "True") for each in conditions)

    def happens():
        space.delete("trainjobs", "removed")
        (pod,) = space.list("pods", labelSelector="jobset.sigs.k8s.io/jobset-name=ended")
        kubectl("exec", pod["metadata"]["name"], "-n", namespace, "--", "touch", "/tmp/enough")
        space.until_one("trainjobs", "ended", is_complete)

    async def scenario():
        async with engine_behind(trouble, access, namespace, tmp_path) as engine:
            await engine.apply(ended, effective(script, name="ended"))
            await engine.apply(removed, effective("exec sleep 1000", name="removed"))
            for each in (ended, removed):
                await until(engine, each, lambda seen: seen.phase is Phase.RUNNING)
            told = asyncio.create_task(told_of_the_end(engine, ended))
            trouble.is_down = True
            await asyncio.to_thread(happens)
            setattr(trouble, way_of_telling, 1)
            trouble.is_down = False
            end = await told
            await until(engine, removed, lambda seen: seen.is_gone)
            return end, (engine.logs(ended) / "logs/0/ended-node-0-0/node.log").read_bytes()

    end, log = asyncio.run(scenario())
    written = "".join(f"{number}\n" for number in range(1, 20001)).encode()
    assert end is Phase.COMPLETE
    assert hashlib.sha256(log).hexdigest() == hashlib.sha256(written).hexdigest()
    assert trouble.forgotten[OURS] == 1


@pytest.mark.parametrize(("code", "phase"), [(0, Phase.COMPLETE), (3, Phase.FAILED)])
def test_the_end_of_a_job_is_told_when_its_pods_have_told_theirs(
    code, phase, access, namespace, a_handle, tmp_path
):
    """The watch of pods may be behind that of TrainJobs: whoever hears of an end wants its logs and its cause."""
    handle = a_handle()
    trouble = Trouble()

    async def scenario():
        async with engine_behind(trouble, access, namespace, tmp_path) as engine:
            await engine.nodes()  # everything has been listed
            trouble.hold = lambda path: path.endswith("/pods")
            script = f"echo said; sleep 1; exit {code}"
            await engine.apply(handle, effective(script, restarts=0))
            early = await until(
                engine, handle, lambda seen: seen.ended_at is not None or seen.phase is phase
            )
            trouble.hold = lambda _path: False
            return early, await until_over(engine, handle)

    early, over = asyncio.run(scenario())
    assert (early.phase, early.reason) == (Phase.RUNNING, "ReadingLogs")
    assert over.phase is phase
    assert code == 0 or "exit code 3" in over.message
    folder = KubernetesEngine(tmp_path).logs(handle)
    assert (folder / "logs/0/job-node-0-0/node.log").read_bytes() == b"said\n"


def test_a_server_that_does_not_answer_is_unavailable_and_its_jobs_are_not_gone(
    access, namespace, a_handle, tmp_path
):
    handle = a_handle()
    trouble = Trouble()

    async def scenario():
        async with engine_behind(trouble, access, namespace, tmp_path) as engine:
            await engine.apply(handle, effective("exit 0"))
            trouble.refuse = lambda _method, _path: 503
            seen = await engine.observe(handle)
            with pytest.raises(EngineUnavailable):
                await engine.stop(handle)
            with pytest.raises(EngineUnavailable):
                await engine.observe(a_handle("other"))
            trouble.refuse = lambda _method, _path: None
            return seen, await until_over(engine, handle)

    seen, after = asyncio.run(scenario())
    assert not seen.is_gone
    assert after.phase is Phase.COMPLETE


def test_observing_asks_nothing_of_the_server(access, namespace, a_handle, tmp_path):
    handle = a_handle()
    trouble = Trouble()

    async def scenario():
        async with engine_behind(trouble, access, namespace, tmp_path) as engine:
            await engine.apply(handle, effective("exit 0"))
            await until_over(engine, handle)
            before = len(trouble.asked)
            for _ in range(1000):
                await engine.observe(handle)
            return before, len(trouble.asked)

    before, after = asyncio.run(scenario())
    assert before == after


def test_a_rank_that_is_killed_takes_the_group_with_it_and_is_named(
    engine, a_handle, kubectl, namespace, space
):
    handle = a_handle()

    async def scenario():
        await engine.apply(handle, effective("sleep 1000 & wait $!", nodes=2, restarts=1))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        pods = await asyncio.to_thread(space.list, "pods")
        victim = next(
            each["metadata"]["name"] for each in pods if "-0-1-" in each["metadata"]["name"]
        )
        kill = ("exec", victim, "-n", namespace, "--", "killall", "-9", "sleep")
        await asyncio.to_thread(kubectl, *kill)
        told = await until(engine, handle, lambda seen: seen.phase is Phase.RESTARTING)
        again = await until(
            engine, handle, lambda seen: seen.attempt == 1 and seen.phase is Phase.RUNNING
        )
        await engine.stop(handle)
        return told, again

    told, again = run(engine, scenario)
    assert told.message.startswith("rank 1 ended with exit code 137 (SIGKILL)")
    assert [pod.phase for pod in again.pods] == ["Running", "Running"]
