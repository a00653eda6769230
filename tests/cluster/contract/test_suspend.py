"""Suspending takes the pods away, resuming makes new ones; what may be changed in between."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    FOREVER,
    a_node,
    a_runtime,
    a_trainjob,
    all_run,
    by_rank,
    conditions,
    pods_of,
    refusal,
)

from builders import an_override

SUSPENDED = {"status": "True", "reason": "Suspended", "message": "TrainJob is suspended"}
RESUMED = {"status": "False", "reason": "Resumed", "message": "TrainJob is resumed"}

FIELD = {"2.1": "podTemplateOverrides", "2.2": "runtimePatches", "2.3": "runtimePatches"}


def until_suspended(space):
    return space.until_one("trainjobs", "job", lambda job: _suspended_jobs(job) == 1)


@pytest.mark.req("M131")
def test_a_job_that_starts_suspended_has_a_job_below_but_no_pods(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob(suspend=True))
    trainjob = until_suspended(space)

    assert conditions(trainjob) == {"Suspended": SUSPENDED}
    assert space.get("jobs", "job-node-0")["spec"]["suspend"] is True
    assert space.list("pods") == []


@pytest.mark.req("M131")
def test_resuming_makes_new_pods_for_the_same_ranks(space, kubectl):
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob(nodes=2))
    before = space.until("pods", lambda pods: all_run(pods, 2), labelSelector=pods_of("job"))

    space.patch("trainjobs", "job", {"spec": {"suspend": True}})
    space.until_gone("pods", labelSelector=pods_of("job"))
    suspended = until_suspended(space)
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})
    after = space.until("pods", lambda pods: all_run(pods, 2), labelSelector=pods_of("job"))
    resumed = space.until_one("trainjobs", "job", lambda job: _suspended_jobs(job) == 0)

    assert conditions(suspended) == {"Suspended": SUSPENDED}
    assert conditions(resumed) == {"Suspended": RESUMED}
    names = [{pod["metadata"]["name"] for pod in pods} for pods in (before, after)]
    assert names[0] & names[1] == set()
    hosts = [[pod["spec"]["hostname"] for pod in by_rank(pods)] for pods in (before, after)]
    assert hosts == [["job-node-0-0", "job-node-0-1"]] * 2
    # the column shows the type of the last condition, whatever its status is
    assert kubectl("-n", space.name, "get", "trainjob", "job").split()[4] == "Suspended"


@pytest.mark.req("M130")
def test_where_a_job_runs_can_be_changed_while_it_is_suspended(space, version):
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob(suspend=True))
    until_suspended(space)

    toleration = {"key": "nvidia.com/gpu", "operator": "Exists"}
    where = {"nodeSelector": {"kubernetes.io/os": "linux"}, "tolerations": [toleration]}
    space.patch("trainjobs", "job", {"spec": an_override(where, version)})
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})
    (pod,) = space.until("pods", lambda pods: all_run(pods, 1))

    assert pod["spec"]["nodeSelector"] == where["nodeSelector"]
    assert toleration in pod["spec"]["tolerations"]


@pytest.mark.req("M130")
def test_another_change_while_it_is_suspended_is_taken_and_blocks_the_job(space, version):
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob(suspend=True))
    until_suspended(space)
    job_set = space.get("jobsets", "job")

    change = an_override({"volumes": [{"name": "data", "emptyDir": {}}]}, version)
    space.patch("trainjobs", "job", {"spec": change})
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})
    event = space.until_event("TrainJobResourcesCreationFailed", "job")
    space.settle()
    blocked = space.until_one(
        "trainjobs", "job", lambda job: conditions(job)["Suspended"] == RESUMED
    )

    # ": field is immutable" follows after the value, where the text may have been cut off
    assert refusal("spec.replicatedJobs: Invalid value: ", version) in event["message"]
    assert len(event["message"]) <= 1024
    assert space.get("jobsets", "job")["spec"] == job_set["spec"]  # suspended, as before
    assert space.list("pods") == []
    assert conditions(blocked).keys() == {"Suspended"}  # and it claims to be resumed


@pytest.mark.req("M130")
def test_a_blocked_job_runs_once_the_change_is_taken_back(space, version):
    space.create(a_runtime(a_node(FOREVER)))
    space.create(a_trainjob(suspend=True))
    until_suspended(space)
    change = an_override({"volumes": [{"name": "data", "emptyDir": {}}]}, version)
    space.patch("trainjobs", "job", {"spec": change})
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})
    space.until_event("TrainJobResourcesCreationFailed", "job")

    space.patch("trainjobs", "job", {"spec": {"suspend": True, FIELD[version]: None}})
    space.patch("trainjobs", "job", {"spec": {"suspend": False}})

    space.until("pods", lambda pods: all_run(pods, 1))


def _suspended_jobs(trainjob) -> int:
    (status,) = trainjob.get("status", {}).get("jobsStatus", [{"suspended": -1}])
    return int(status["suspended"])
