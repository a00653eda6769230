"""Overrides that admission lets through and that then make a job impossible: nothing on the TrainJob says so."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import SHELL_IMAGE, a_node, a_runtime, a_trainjob, conditions

from builders import an_override, pod_of

FIELD_REF = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}


def assert_it_never_runs(space, version: str, reason: str) -> None:
    """The JobSet is there, its Job is not; the reason is an event of the JobSet, or nowhere."""
    job_set = space.until_one("jobsets", "job")
    template = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": template}

    answer = space.try_create(job, dryRun="All")

    assert answer.code == 422
    assert reason in answer.message
    if version == "2.1":  # JobSet 0.10 tells only its own log
        space.settle()
        assert reason not in str(space.events("job"))
    else:
        event = space.until_event("JobCreationFailed", "job")
        assert event["involvedObject"]["kind"] == "JobSet"
        assert reason in event["message"]
    assert space.find("jobs", "job-node-0") is None
    assert conditions(space.get("trainjobs", "job")) == {}


@pytest.mark.req("M128", "M105")
def test_a_mistyped_container_passes_and_becomes_one_without_image(space, version):
    space.create(a_runtime(a_node("exit 0")))
    pod = {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "nodee", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
    }

    space.create(a_trainjob(**an_override(pod, version)))

    assert_it_never_runs(space, version, "spec.template.spec.containers[0].image: Required value")


@pytest.mark.req("M128")
def test_a_new_init_container_passes_and_has_no_image(space, version):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob(**an_override({"initContainers": [{"name": "prepare"}]}, version)))

    reason = "spec.template.spec.initContainers[0].image: Required value"
    assert_it_never_runs(space, version, reason)


@pytest.mark.req("M129")
def test_a_value_laid_over_a_reference_keeps_both(space, version):
    theirs = {"name": "WORKERS", "valueFrom": FIELD_REF}
    prepare = {"name": "prepare", "image": SHELL_IMAGE, "env": [theirs]}
    space.create(a_runtime(a_node("exit 0", pod={"initContainers": [prepare]})))
    env = [{"name": "WORKERS", "value": "3"}]
    override = an_override({"initContainers": [{"name": "prepare", "env": env}]}, version)

    space.create(a_trainjob(**override))
    pod = pod_of(space.until_one("jobsets", "job"))

    both = {"name": "WORKERS", "value": "3", "valueFrom": FIELD_REF}
    assert pod["initContainers"][0]["env"] == [both]
    reason = 'valueFrom: Invalid value: "": may not be specified when `value` is not empty'
    assert_it_never_runs(space, version, reason)


@pytest.mark.req("M129")
def test_a_value_in_the_trainer_replaces_a_reference(space):
    theirs = {"name": "WORKERS", "valueFrom": FIELD_REF}
    space.create(a_runtime(a_node("exit 0", container={"env": [theirs]})))
    mine = {"name": "WORKERS", "value": "3"}

    space.create(a_trainjob(suspend=True, trainer={"env": [mine]}))
    pod = pod_of(space.until_one("jobsets", "job"))

    assert pod["containers"][0]["env"][0] == mine
