"""A runtime is edited or deleted while jobs use it."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    FOREVER,
    a_node,
    a_runtime,
    a_trainjob,
    all_run,
    conditions,
    refusal,
)

IN_USE = "trainer.kubeflow.org/resource-in-use"


@pytest.mark.req("M125")
def test_a_runtime_in_use_is_deleted_after_its_last_job_up_to_2_2(space, version):
    if version == "2.3":
        pytest.skip("2.3 keeps a copy instead")
    space.create(a_runtime(a_node("exit 0")))
    space.create(a_trainjob(suspend=True))
    space.until_one(
        "trainingruntimes", "rt", lambda rt: IN_USE in rt["metadata"].get("finalizers", ())
    )

    space.delete("trainingruntimes", "rt")
    leaving = space.get("trainingruntimes", "rt")
    space.delete("trainjobs", "job")

    assert "deletionTimestamp" in leaving["metadata"]
    space.until_gone("trainingruntimes")


@pytest.mark.req("M125")
def test_2_3_keeps_a_copy_of_the_runtime_with_each_job(space, version):
    if version != "2.3":
        pytest.skip("it came with 2.3")
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob())
    space.until("pods", lambda pods: all_run(pods, 1))

    space.delete("trainingruntimes", "rt")

    assert space.find("trainingruntimes", "rt") is None
    copy = space.get("configmaps", "job-runtime-snapshot")
    (owner,) = copy["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("TrainJob", "job", True)
    assert copy["data"].keys() == {"runtime"}
    # but the webhook looks for the original: without it nothing about the job can be changed
    answer = space.try_patch("trainjobs", "job", {"spec": {"suspend": True}})
    assert answer.code == 403
    assert answer.message.endswith("must be created before the TrainJob is created")


@pytest.mark.req("M125")
def test_an_edited_runtime_blocks_a_suspended_job_until_2_3(space, version):
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob(suspend=True))
    space.until_one("trainjobs", "job", lambda job: "Suspended" in conditions(job))
    edited = a_runtime(a_node("exit 0"))

    space.patch("trainingruntimes", "rt", {"spec": edited["spec"]})
    space.settle()
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})

    if version == "2.3":
        (pod,) = space.until("pods", lambda pods: all_run(pods, 1))
        assert pod["spec"]["containers"][0]["command"][-1] == FOREVER
    else:
        event = space.until_event("TrainJobResourcesCreationFailed", "job")
        assert refusal("spec.replicatedJobs: Invalid value: ", version) in event["message"]
        space.settle()
        assert space.list("pods") == []
