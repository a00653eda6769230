"""Whatever is lost or killed between two steps of creation: one job in the end, and nobody else's is touched."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from cluster.layout import Layout
from tests.cluster.engine.jobs import code, effective
from tests.cluster.engine.proxy import Trouble, engine_behind
from tests.engines.jobs import run, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import EngineRejected, EngineUnavailable, Handle

ENDLESS = "exec sleep 1000"

APPLY = """
import asyncio, os, sys
from pathlib import Path
from tests.cluster.engine.jobs import code, effective
from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.kubernetes.credentials import find_access
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine

steps = 0
def step(name):
    global steps
    steps += 1
    if steps == int(sys.argv[2]):
        os.kill(os.getpid(), 9)

handle = Handle(*sys.argv[3:])
engine = KubernetesEngine(Path(sys.argv[1]), access=find_access(), namespaces=[handle.namespace], step=step)
asyncio.run(engine.apply(handle, effective("exec sleep 1000", objects=(code(),))))
"""


def owners(found):
    return [each["name"] for each in found["metadata"].get("ownerReferences", [])]


async def killed_at(step: int, handle: Handle, data) -> int | None:
    """A process that applies the job and is killed after so many steps."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", APPLY, str(data), str(step)),
        *(handle.namespace, handle.name, handle.uid),
        env={
            **os.environ,
            "KUBECONFIG": str(Layout.default().kubeconfig),
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        },
    )
    return await process.wait()


@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_process_killed_after_any_step_leaves_one_job_to_the_next(
    step, engine, a_handle, space, tmp_path
):
    """Steps: code, runtime, TrainJob, owner of the code; the last one before it is owned whole."""
    handle = a_handle()

    async def scenario():
        assert await killed_at(step, handle, tmp_path / "data") == -9
        await engine.apply(handle, effective(ENDLESS, objects=(code(),)))
        return await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)

    assert run(engine, scenario).phase is Phase.RUNNING
    assert len(space.list("trainjobs")) == 1
    assert owners(space.get("configmaps", "code")) == ["job"]
    assert owners(space.get("trainingruntimes", "job-runtime")) == ["job"]


def test_what_a_killed_process_made_goes_when_the_job_is_stopped(engine, a_handle, space, tmp_path):
    handle = a_handle()

    async def scenario():
        assert await killed_at(2, handle, tmp_path / "data") == -9
        await engine.stop(handle)

    run(engine, scenario)
    assert not space.list("trainingruntimes")
    assert [each["metadata"]["name"] for each in space.list("configmaps")] == ["kube-root-ca.crt"]


def test_an_answer_that_is_lost_makes_no_second_job(access, namespace, a_handle, space, tmp_path):
    handle = a_handle()
    lost = []

    def lose(method, path):
        is_lost = method == "POST" and path.endswith("/trainjobs") and not lost
        lost.extend([path] * is_lost)
        return is_lost

    async def scenario():
        async with engine_behind(Trouble(lose_answer=lose), access, namespace, tmp_path) as engine:
            with pytest.raises(EngineUnavailable):
                await engine.apply(handle, effective("exit 0"))
            await engine.apply(handle, effective("exit 0"))
            return await until_over(engine, handle)

    assert asyncio.run(scenario()).phase is Phase.COMPLETE
    assert lost
    assert len(space.list("trainjobs")) == 1


def test_a_trainjob_of_somebody_else_is_never_taken_for_ours(engine, a_handle, space):
    *_, runtime, trainjob = effective(ENDLESS).objects
    space.create(runtime, trainjob)
    handle = a_handle()

    async def scenario():
        with pytest.raises(EngineRejected) as refused:
            await engine.apply(handle, effective(ENDLESS))
        await engine.stop(handle)
        return str(refused.value), await engine.observe(handle)

    words, seen = run(engine, scenario)
    assert "exists and was not made for this job" in words
    assert "under another name" in words
    assert seen.is_gone
    assert space.find("trainjobs", "job") is not None


def test_what_the_cluster_refuses_is_told_in_its_words(engine, a_handle):
    async def refusal(**changes):
        job = effective("exit 0", name=changes.pop("name", "job"))
        job.objects[-1]["spec"].update(changes)
        with pytest.raises(EngineRejected) as refused:
            await engine.apply(a_handle(job.objects[-1]["metadata"]["name"]), job)
        return str(refused.value)

    async def scenario():
        ref = {"kind": "ClusterTrainingRuntime", "name": "no-such"}
        return [
            await refusal(runtimeRef={"apiGroup": "trainer.kubeflow.org", **ref}, name="a"),
            await refusal(nonsense=1, name="b"),
            await refusal(managedBy="nobody", name="c"),
        ]

    runtime, unknown, invalid = run(engine, scenario)
    assert "must be created before the TrainJob is created" in runtime
    assert 'unknown field "spec.nonsense"' in unknown
    assert "refuses TrainJob c" in invalid


def test_code_that_two_jobs_use_goes_with_the_last_of_them(engine, a_handle, space):
    first, second = a_handle("first"), a_handle("second")

    async def scenario():
        for handle in (first, second):
            job = effective(ENDLESS, name=handle.name, objects=(code(),))
            await engine.apply(handle, job)
        both = owners(space.get("configmaps", "code"))
        await engine.stop(first)
        left = await asyncio.to_thread(
            space.until_one, "configmaps", "code", lambda found: owners(found) == ["second"]
        )
        await engine.stop(second)
        await asyncio.to_thread(space.until_gone, "configmaps", fieldSelector="metadata.name=code")
        return both, left

    both, _ = run(engine, scenario)
    assert sorted(both) == ["first", "second"]


def test_other_code_under_the_same_name_is_refused(engine, a_handle):
    async def scenario():
        await engine.apply(a_handle("a"), effective("exit 0", name="a", objects=(code(),)))
        other = effective("exit 0", name="b", objects=(code(text="other"),))
        with pytest.raises(EngineRejected, match="holds other files than this job's"):
            await engine.apply(a_handle("b"), other)

    run(engine, scenario)
