"""Where one reads why a job has no pods: three places, and none of them is a condition of the TrainJob."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    a_node,
    a_runtime,
    a_trainjob,
    conditions,
    ended,
    refusal,
)

OVER_QUOTA = "exceeded quota: quota, requested: count/jobsets.jobset.x-k8s.io=1"


def a_quota(**hard: str):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota"},
        "spec": {"hard": hard},
    }


def enforce(space, **hard: str) -> None:
    space.create(a_quota(**hard))
    space.until_one("resourcequotas", "quota", lambda quota: "hard" in quota.get("status", {}))


@pytest.mark.req("M131")
def test_a_job_set_that_is_refused_is_an_event_of_the_trainjob(space, version):
    space.create(a_runtime(a_node("exit 0")))
    enforce(space, **{"count/jobsets.jobset.x-k8s.io": "0"})

    space.create(a_trainjob())
    event = space.until_event("TrainJobResourcesCreationFailed", "job")

    assert event["involvedObject"]["kind"] == "TrainJob"
    # the older kind of event has its time here, the newer one there
    assert (event["firstTimestamp"] is None) == (version != "2.1")
    assert (event["eventTime"] is None) == (version == "2.1")
    assert refusal(OVER_QUOTA, version) in event["message"]
    assert space.get("trainjobs", "job").get("status") is None


@pytest.mark.req("M131")
def test_a_job_that_is_refused_is_an_event_of_the_job_set_from_2_2_on(space, version):
    space.create(a_runtime(a_node("exit 0")))
    gpu_without_limit = {"requests": {"nvidia.com/gpu": "1"}}

    space.create(a_trainjob(trainer={"resourcesPerNode": gpu_without_limit}))
    space.until_one("jobsets", "job")

    reason = "Limit must be set for non overcommitable resources"
    if version == "2.1":
        space.settle()
        assert reason not in str(space.events("job"))
    else:
        event = space.until_event("JobCreationFailed", "job")
        assert event["involvedObject"]["kind"] == "JobSet"
        assert reason in event["message"]
    assert conditions(space.get("trainjobs", "job")) == {}


@pytest.mark.req("M131")
def test_a_pod_that_is_refused_is_an_event_of_the_job(space):
    space.create(a_runtime(a_node("exit 0")))
    enforce(space, pods="0")

    space.create(a_trainjob())
    event = space.until_event("FailedCreate", "job-node-0")

    assert event["involvedObject"]["kind"] == "Job"
    assert (
        "exceeded quota: quota, requested: pods=1, used: pods=0, limited: pods=0"
        in event["message"]
    )
    assert "exceeded quota" not in str(space.events("job"))
    assert conditions(space.get("trainjobs", "job")) == {}


@pytest.mark.req("M131")
def test_the_operator_tries_again_until_the_reason_is_gone(space):
    space.create(a_runtime(a_node("exit 0")))
    enforce(space, **{"count/jobsets.jobset.x-k8s.io": "0"})
    space.create(a_trainjob())
    space.until_event("TrainJobResourcesCreationFailed", "job")

    space.delete("resourcequotas", "quota")

    trainjob = space.until_one("trainjobs", "job", ended)
    assert conditions(trainjob).keys() == {"Complete"}


@pytest.mark.req("M124")
def test_a_job_with_no_nodes_is_complete_without_a_pod(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob(nodes=0))
    trainjob = space.until_one("trainjobs", "job", ended)

    assert conditions(trainjob).keys() == {"Complete"}
    assert space.list("pods") == []


@pytest.mark.req("M124")
def test_a_negative_number_of_nodes_is_accepted_and_never_runs(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob(nodes=-3))
    space.until_one("jobsets", "job")
    space.settle()

    assert space.find("jobs", "job-node-0") is None
    assert conditions(space.get("trainjobs", "job")) == {}
