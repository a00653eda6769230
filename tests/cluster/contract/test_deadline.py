"""A limit on the time that a job may take: on the TrainJob from 2.2 on, on the Job always."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    FOREVER,
    a_node,
    a_runtime,
    a_trainjob,
    conditions,
    ended,
    pods_of,
)


@pytest.mark.req("M120")
def test_2_1_has_no_deadline_for_a_trainjob(space, version):
    if version != "2.1":
        pytest.skip("it came with 2.2")
    space.create(a_runtime(a_node(FOREVER)))

    answer = space.try_create(a_trainjob(activeDeadlineSeconds=2))

    assert answer.code == 400
    assert answer.message.endswith('unknown field "spec.activeDeadlineSeconds"')


@pytest.mark.req("M120")
def test_after_its_deadline_a_trainjob_has_failed_and_nothing_is_left_below(space, version):
    if version == "2.1":
        pytest.skip("it came with 2.2")
    space.create(a_runtime(a_node(FOREVER)))

    space.create(a_trainjob(activeDeadlineSeconds=4))
    space.until("pods", bool, labelSelector=pods_of("job"))
    failed = space.until_one("trainjobs", "job", ended)
    space.until_gone("jobsets")
    space.until_gone("pods")
    space.settle()

    assert conditions(failed) == {
        "Failed": {
            "status": "True",
            "reason": "DeadlineExceeded",
            "message": "TrainJob exceeded its active deadline",
        }
    }
    assert space.find("jobsets", "job") is None
    assert conditions(space.get("trainjobs", "job")) == conditions(failed)


@pytest.mark.req("M120", "M133")
def test_a_deadline_on_the_job_fails_it_and_takes_the_pods_away(space):
    space.create(a_runtime(a_node(FOREVER, activeDeadlineSeconds=2)))

    space.create(a_trainjob())
    failed = space.until_one("trainjobs", "job", ended)
    job = space.until_one("jobs", "job-node-0", lambda job: "Failed" in conditions(job))
    space.until_gone("pods")

    assert conditions(failed)["Failed"]["reason"] == "FailedJobs"
    assert conditions(job)["Failed"] == {
        "status": "True",
        "reason": "DeadlineExceeded",
        "message": "Job was active longer than specified deadline",
    }
