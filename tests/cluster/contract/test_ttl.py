"""Two places for a time to live, and only one of them is safe."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    FOREVER,
    SHELL_IMAGE,
    a_node,
    a_runtime,
    a_trainjob,
    conditions,
    ended,
    pods_of,
    uid,
)

from builders import a_container, a_job


@pytest.mark.req("M134", "M67", "X9")
def test_on_the_job_it_removes_the_pods_and_leaves_the_verdict(space):
    space.create(a_runtime(a_node("exit 0", ttlSecondsAfterFinished=1)))

    space.create(a_trainjob())
    space.until_one("trainjobs", "job", ended)
    space.until_gone("jobs")
    space.until_gone("pods")
    space.settle()

    trainjob = space.get("trainjobs", "job")
    assert conditions(trainjob).keys() == {"Complete"}
    assert "Completed" in conditions(space.get("jobsets", "job"))
    assert space.find("jobs", "job-node-0") is None
    # the numbers go with the Job that they counted
    assert trainjob["status"]["jobsStatus"][0]["succeeded"] == 0


@pytest.mark.req("M134")
def test_on_the_job_set_it_makes_2_1_train_again_and_again(space, version):
    space.create(a_runtime(a_node("exit 0"), ttlSecondsAfterFinished=1))

    space.create(a_trainjob())
    complete = space.until_one("trainjobs", "job", ended)

    assert conditions(complete).keys() == {"Complete"}
    if version == "2.1":
        assert len(_runs(space, 3)) == 3
        assert conditions(space.get("trainjobs", "job")).keys() == {"Complete"}
    else:
        space.until_gone("jobsets")
        space.settle()
        assert space.find("jobsets", "job") is None
        assert conditions(space.get("trainjobs", "job")).keys() == {"Complete"}


@pytest.mark.req("M134")
def test_on_the_job_set_it_makes_a_failed_job_train_again_in_every_release(space):
    node = a_node("exit 3", restart="Never", backoffLimit=0)
    space.create(a_runtime(node, ttlSecondsAfterFinished=1))

    space.create(a_trainjob())

    assert len(_runs(space, 3)) == 3


@pytest.mark.req("M134")
def test_on_a_job_that_others_wait_for_it_makes_that_job_run_again(space):
    prepare = a_job("prepare", None, pod={"containers": [a_container(image=SHELL_IMAGE)]})
    prepare["template"]["spec"]["ttlSecondsAfterFinished"] = 1
    prepare["template"]["spec"]["template"]["spec"]["containers"][0]["command"] = ["true"]
    node = a_node(FOREVER)
    node["dependsOn"] = [{"name": "prepare", "status": "Complete"}]
    space.create(a_runtime(prepare, node))

    space.create(a_trainjob())

    assert len(_runs(space, 2, of="prepare")) == 2


def _runs(space, count: int, of: str = "node") -> set[str]:
    """The uids of so many pods of the job, one after the other."""
    selector = f"{pods_of('job')},jobset.sigs.k8s.io/replicatedjob-name={of}"
    seen: set[str] = set()
    for pods in space.watch("pods", labelSelector=selector):
        seen |= {uid(pod) for pod in pods}
        if len(seen) >= count:
            break
    return seen
