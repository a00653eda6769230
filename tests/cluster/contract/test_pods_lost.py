"""A process or a pod goes without being asked: what comes back, and who else has to start again."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    FOREVER,
    a_node,
    a_runtime,
    a_trainjob,
    all_run,
    attempt,
    by_rank,
    conditions,
    node_status,
    pods_of,
    uid,
)


@pytest.mark.req("M133", "M114")
def test_a_process_that_is_killed_ends_with_137_and_is_started_again(space):
    state = {"volumes": [{"name": "state", "emptyDir": {}}]}
    mount = {"volumeMounts": [{"name": "state", "mountPath": "/state"}]}
    # behind a shell, because the kernel protects process 1 from its own kind
    killed = "sleep 3600 & kill -KILL $!; wait $!"
    script = f"[ -e /state/tried ] && {FOREVER}; touch /state/tried; {killed}"
    space.create(a_runtime(a_node(script, pod=state, container=mount)))

    space.create(a_trainjob())
    (pod,) = space.until("pods", lambda all_: all_ and "terminated" in _last(all_[0]))

    assert _last(pod)["terminated"]["exitCode"] == 137
    assert _last(pod)["terminated"]["reason"] == "Error"
    assert node_status(pod)["restartCount"] == 1


@pytest.mark.req("M133", "M114")
def test_a_deleted_pod_is_replaced_alone_while_the_back_off_limit_allows(space):
    space.create(a_runtime(a_node(FOREVER)))
    before = _running(space, lambda pods: all_run(pods, 2))

    space.delete("pods", before[1]["metadata"]["name"])
    after = _running(
        space, lambda pods: all_run(pods, 2) and uid(by_rank(pods)[1]) != uid(before[1])
    )

    assert uid(after[0]) == uid(before[0])
    assert after[1]["metadata"]["name"] != before[1]["metadata"]["name"]
    assert after[1]["spec"]["hostname"] == before[1]["spec"]["hostname"]
    assert [attempt(pod) for pod in after] == ["0", "0"]
    assert space.get("jobsets", "job")["status"]["restarts"] == 0
    assert conditions(space.get("trainjobs", "job")) == {}


@pytest.mark.req("M133", "M114")
def test_a_deleted_pod_is_a_failure_like_any_other_when_the_back_off_limit_is_zero(space):
    node = a_node(FOREVER, restart="Never", backoffLimit=0)
    space.create(a_runtime(node, failurePolicy={"maxRestarts": 3}))
    before = _running(space, lambda pods: all_run(pods, 2))

    space.delete("pods", before[1]["metadata"]["name"])
    after = _running(
        space, lambda pods: all_run(pods, 2) and {attempt(pod) for pod in pods} == {"1"}
    )

    assert {uid(pod) for pod in before} & {uid(pod) for pod in after} == set()
    assert space.get("jobsets", "job")["status"]["restarts"] == 1


def _running(space, claim):
    if space.find("trainjobs", "job") is None:
        space.create(a_trainjob(nodes=2))
    return by_rank(space.until("pods", claim, labelSelector=pods_of("job")))


def _last(pod):
    return node_status(pod).get("lastState", {})
