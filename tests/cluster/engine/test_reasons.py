"""What is told of jobs that do not run, or end badly: the first cause, in words."""

from __future__ import annotations

import pytest
from tests.cluster.engine.jobs import effective
from tests.engines.jobs import run, until, until_over

from astrago_trainer.core.lifecycle import Phase

CASES = {
    "Unschedulable": (
        effective(node={"container": {"resources": {"requests": {"cpu": "500"}}}}),
        Phase.PENDING,
        "1 Insufficient cpu",
    ),
    "ConfigMapMissing": (
        effective(
            node={
                "pod": {"volumes": [{"name": "code", "configMap": {"name": "no-such"}}]},
                "container": {"volumeMounts": [{"name": "code", "mountPath": "/code"}]},
            }
        ),
        Phase.PENDING,
        'configmap "no-such" not found',
    ),
    "CreateContainerConfigError": (
        effective(
            node={"container": {"envFrom": [{"configMapRef": {"name": "no-such"}}]}},
        ),
        Phase.PENDING,
        'configmap "no-such" not found',
    ),
    "ImagePullFailed": (
        effective(node={"image": "nowhere.invalid/no/such:1"}),
        Phase.PULLING,
        "nowhere.invalid/no/such:1",
    ),
    "InitContainerFailed": (
        effective(
            node={
                "pod": {
                    "initContainers": [
                        {
                            "name": "git-clone",
                            "image": "busybox:1.36.1",
                            "command": ["sh", "-c", "exit 128"],
                        }
                    ]
                },
            },
            restarts=0,
        ),
        Phase.FAILED,
        "init container git-clone of rank 0 ended with exit code 128",
    ),
    "OOMKilled": (
        effective(
            "cat /dev/zero | head -c 200m | tail",
            node={"container": {"resources": {"limits": {"memory": "32Mi"}}}},
            restarts=0,
        ),
        Phase.FAILED,
        "rank 0 used more memory than its limit of 32Mi and was killed",
    ),
    "DeadlineExceeded": (
        effective("exec sleep 1000", node={"activeDeadlineSeconds": 2}),
        Phase.FAILED,
        "longer than specified deadline",
    ),
}


@pytest.mark.parametrize("reason", CASES)
def test_why_a_job_does_not_run_is_told(reason, engine, a_handle):
    job, phase, words = CASES[reason]

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, job)
        seen = await until(
            engine, handle, lambda seen: (seen.reason, seen.phase) == (reason, phase)
        )
        await engine.stop(handle)
        return seen

    assert words in run(engine, scenario).message


def test_a_job_that_waits_for_quota_is_queued_and_says_for_what(engine, a_handle, space):
    hard = {"kind": "ResourceQuota", "apiVersion": "v1", "metadata": {"name": "small"}}
    space.create({**hard, "spec": {"hard": {"requests.cpu": "1m"}}})

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective())
        return await until(engine, handle, lambda seen: seen.phase is Phase.QUEUED)

    seen = run(engine, scenario)
    assert seen.reason == "QuotaExceeded"
    assert "exceeded quota: small, requested: requests.cpu=10m" in seen.message


def test_the_first_rank_that_failed_is_named_and_not_those_that_followed(engine, a_handle):
    script = 'if [ "$JOB_COMPLETION_INDEX" = 1 ]; then exit 7; fi; exec sleep 1000'

    async def scenario():
        handle = a_handle()
        await engine.apply(handle, effective(script, nodes=2, restarts=1))
        return await until_over(engine, handle)

    seen = run(engine, scenario)
    assert (seen.phase, seen.attempt, seen.max_restarts) == (Phase.FAILED, 1, 1)
    assert seen.message == "rank 1 ended with exit code 7; all 1 restarts are used up"
    assert {pod.exit_code for pod in seen.pods if pod.index == 1} == {7}


def test_a_name_that_is_too_long_for_pods_is_told(engine, a_handle, version):
    name = "a" * 60

    async def scenario():
        handle = a_handle(name)
        await engine.apply(handle, effective(name=name))
        return await until(
            engine, handle, lambda seen: seen.reason not in ("", "Accepted", "PodsAreMade")
        )

    seen = run(engine, scenario)
    # 2.2 loses the words on the way (operator.md); the event itself is there.
    expected = "TrainJobResourcesCreationFailed" if version == "2.2" else "NameTooLong"
    assert (seen.phase, seen.reason) == (Phase.PENDING, expected)
