"""Three levels of restarts: the container in its pod, the Job, the whole group."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    ATTEMPT,
    FOREVER,
    WAIT_FOR_A_SIGN,
    a_node,
    a_runtime,
    a_trainjob,
    all_run,
    attempt,
    by_rank,
    conditions,
    ended,
    node_status,
    phases,
    pods_of,
    rank,
    uid,
)

IN_RANK_1 = f"[ $JOB_COMPLETION_INDEX = 1 ] || {FOREVER}; "


@pytest.mark.req("M133", "X13")
def test_the_defaults_are_restarts_in_place_and_a_limit_of_six(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob(nodes=2, suspend=True))
    job = space.until_one("jobs", "job-node-0")["spec"]
    job_set = space.get("jobsets", "job")["spec"]

    assert "failurePolicy" not in job_set
    assert job_set["successPolicy"] == {"operator": "All"}
    assert job["template"]["spec"]["restartPolicy"] == "OnFailure"
    assert job["backoffLimit"] == 6
    assert (job["completionMode"], job["completions"], job["parallelism"]) == ("Indexed", 2, 2)


@pytest.mark.req("M133")
def test_a_container_that_fails_is_started_again_in_its_pod_and_the_others_see_nothing(space):
    state = {"volumes": [{"name": "state", "emptyDir": {}}]}
    mount = {"volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    script = (
        IN_RANK_1
        + f"[ -e /state/tried ] && {FOREVER}; touch /state/tried; echo why; sleep 1; exit 3"
    )
    space.create(a_runtime(a_node(script, pod=state, container=mount)))

    space.create(a_trainjob(nodes=2))
    pods = space.until("pods", lambda all_: sorted(map(_starts, all_)) == [1, 2])

    first, second = (node_status(pod) for pod in by_rank(pods))
    assert (first["restartCount"], second["restartCount"]) == (0, 1)
    assert second["lastState"]["terminated"]["exitCode"] == 3
    assert space.log(by_rank(pods)[1]["metadata"]["name"], previous="true") == "why\n"
    assert [attempt(pod) for pod in pods] == ["0", "0"]
    assert space.get("jobsets", "job")["status"]["restarts"] == 0
    assert conditions(space.get("trainjobs", "job")) == {}


@pytest.mark.req("M133")
def test_after_the_back_off_limit_the_pods_and_their_logs_are_gone(space):
    space.create(a_runtime(a_node(IN_RANK_1 + "echo why; exit 3", backoffLimit=1)))

    space.create(a_trainjob(nodes=2))
    seen = set()
    for pods in space.watch("pods", labelSelector=pods_of("job")):
        seen |= {pod["metadata"]["name"] for pod in pods}
        if len(seen) == 2 and not pods:
            break
    job = space.until_one("jobs", "job-node-0", lambda job: "Failed" in conditions(job))
    trainjob = space.until_one("trainjobs", "job", ended)

    assert conditions(job)["Failed"] == {
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "Job has reached the specified backoff limit",
    }
    assert conditions(trainjob)["Failed"]["reason"] == "FailedJobs"
    assert [space.try_log(name).code for name in seen] == [404, 404]


@pytest.mark.req("M133", "M114", "X13")
def test_one_failure_makes_all_ranks_anew_until_the_limit_is_reached(space):
    node = a_node(
        IN_RANK_1 + 'echo "attempt $ATTEMPT"; sleep 1; exit 3', restart="Never", backoffLimit=0
    )
    space.create(a_runtime(node, failurePolicy={"maxRestarts": 1}))

    space.create(a_trainjob(nodes=2, trainer={"env": [ATTEMPT]}))
    seen, together = {}, set()
    for pods in space.watch("pods", labelSelector=pods_of("job")):
        seen |= {uid(pod): (attempt(pod), rank(pod)) for pod in pods}
        together.add(frozenset(attempt(pod) for pod in pods))
        if len(seen) == 4 and phases(pods) == ["Failed"]:
            break
    failed = space.until_one("trainjobs", "job", ended)

    assert sorted(seen.values()) == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert together == {frozenset(), frozenset("0"), frozenset("1")}  # never both at once
    assert space.log(pods[0]["metadata"]["name"]) == "attempt 1\n"
    assert space.get("jobsets", "job")["status"]["restarts"] == 1
    assert conditions(failed)["Failed"] == {
        "status": "True",
        "reason": "ReachedMaxRestarts",
        "message": "jobset failed due to reaching max number of restarts "
        "(first failed job: job-node-0)",
    }


@pytest.mark.req("M133", "M114")
def test_a_group_that_was_restarted_can_still_complete(space, version):
    script = "[ $ATTEMPT = 1 ] && exit 0; " + IN_RANK_1 + "exit 3"
    node = a_node(script, restart="Never", backoffLimit=0)
    space.create(a_runtime(node, failurePolicy={"maxRestarts": 3}))

    space.create(a_trainjob(nodes=2, trainer={"env": [ATTEMPT]}))
    complete = space.until_one("trainjobs", "job", ended)

    job_set = space.get("jobsets", "job")
    event = space.until_event("RestartJobSetFailurePolicyAction", "job")
    assert conditions(complete).keys() == {"Complete"}
    assert job_set["status"]["restarts"] == 1
    assert event["message"] == (
        "applying RestartJobSet failure policy action (first failed job: job-node-0)"
    )
    # JobSet says from 0.12 on that it restarts; the TrainJob never does
    assert ("RestartingJobSet" in conditions(job_set)) == (version == "2.3")


@pytest.mark.req("M133", "M114")
def test_ranks_that_did_not_fail_get_sigterm_before_the_group_starts_again(space, kubectl):
    healthy = "trap 'echo SIGTERM; sleep 1; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    failing = f"trap 'exit 0' TERM; {WAIT_FOR_A_SIGN}; exit 3"
    script = f"if [ $JOB_COMPLETION_INDEX = 1 ]; then {failing}; fi; {healthy}"
    pod = {"terminationGracePeriodSeconds": 3600}
    node = a_node(script, restart="Never", backoffLimit=0, pod=pod)
    space.create(a_runtime(node, failurePolicy={"maxRestarts": 1}))
    space.create(a_trainjob(nodes=2))
    pods = by_rank(space.until("pods", lambda all_: all_run(all_, 2)))
    first, second = (pod["metadata"]["name"] for pod in pods)
    lines = space.follow(first)
    assert next(lines) == "ready"

    kubectl("-n", space.name, "exec", second, "--", "touch", "/tmp/done")

    assert list(lines) == ["SIGTERM"]
    space.until("pods", lambda all_: [attempt(pod) for pod in all_] == ["1", "1"])


def _starts(pod) -> int:
    """How often the container has started by now, or 0 while it does not run."""
    status = node_status(pod)
    return status["restartCount"] + 1 if "running" in status.get("state", {}) else 0
