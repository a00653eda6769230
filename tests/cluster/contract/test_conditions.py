"""What the status of a TrainJob says, word for word, and what it never says."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    WAIT_FOR_A_SIGN,
    a_node,
    a_runtime,
    a_trainjob,
    all_run,
    by_rank,
    conditions,
    ended,
    phases,
    pods_of,
)

NOTHING = {"name": "node", "ready": 0, "active": 0, "succeeded": 0, "failed": 0, "suspended": 0}


@pytest.mark.req("M131", "M24")
def test_a_job_has_no_condition_until_all_ranks_have_ended_well(space, kubectl):
    space.create(a_runtime(a_node(WAIT_FOR_A_SIGN)))
    space.create(a_trainjob(nodes=2))
    pods = space.until("pods", lambda all_: all_run(all_, 2), labelSelector=pods_of("job"))
    first, second = (pod["metadata"]["name"] for pod in by_rank(pods))
    # two pods run: the numbers count Jobs
    running = space.until_one(
        "trainjobs",
        "job",
        lambda job: job.get("status", {}).get("jobsStatus", [NOTHING])[0]["ready"],
    )

    kubectl("-n", space.name, "exec", first, "--", "touch", "/tmp/done")
    space.until(
        "pods", lambda all_: phases(all_) == ["Succeeded", "Running"], labelSelector=pods_of("job")
    )
    space.settle()
    half = space.get("trainjobs", "job")
    kubectl("-n", space.name, "exec", second, "--", "touch", "/tmp/done")
    complete = space.until_one("trainjobs", "job", ended)

    assert running["status"] == {"jobsStatus": [{**NOTHING, "ready": 1, "active": 1}]}
    assert conditions(half) == {}
    assert complete["status"].keys() == {"conditions", "jobsStatus"}
    assert conditions(complete) == {
        "Complete": {
            "status": "True",
            "reason": "AllJobsCompleted",
            "message": "jobset completed successfully",
        }
    }
    counts = space.until_one(
        "trainjobs", "job", lambda job: job["status"]["jobsStatus"][0]["succeeded"]
    )
    assert counts["status"]["jobsStatus"] == [{**NOTHING, "succeeded": 1}]


@pytest.mark.req("M131", "M133", "M24")
def test_a_job_fails_with_the_name_of_the_job_below_and_no_exit_code(space):
    script = 'echo "rank $JOB_COMPLETION_INDEX"; [ $JOB_COMPLETION_INDEX = 0 ] || { sleep 1; exit 7; }; sleep 3600'
    space.create(a_runtime(a_node(script, restart="Never", backoffLimit=0)))

    space.create(a_trainjob(nodes=2))
    failed = space.until_one("trainjobs", "job", ended)

    assert conditions(failed) == {
        "Failed": {
            "status": "True",
            "reason": "FailedJobs",
            "message": "jobset failed due to one or more job failures "
            "(first failed job: job-node-0)",
        }
    }
    counts = space.until_one(
        "trainjobs", "job", lambda job: job["status"]["jobsStatus"][0]["failed"]
    )
    assert counts["status"]["jobsStatus"] == [{**NOTHING, "failed": 1}]


@pytest.mark.req("M131")
def test_the_pod_that_failed_stays_with_its_log_and_the_others_go(space):
    script = 'echo "rank $JOB_COMPLETION_INDEX"; [ $JOB_COMPLETION_INDEX = 0 ] || { sleep 1; exit 7; }; sleep 3600'
    space.create(a_runtime(a_node(script, restart="Never", backoffLimit=0)))

    space.create(a_trainjob(nodes=2))
    space.until_one("trainjobs", "job", ended)
    (left,) = space.until("pods", lambda all_: phases(all_) == ["Failed"])

    assert space.log(left["metadata"]["name"]) == "rank 1\n"
    (status,) = left["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 7
