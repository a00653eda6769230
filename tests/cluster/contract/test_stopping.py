"""What a process hears of the end of its job, and how long the end takes."""

from __future__ import annotations

import time

import pytest
from tests.cluster.contract.jobs import (
    PYTHON_IMAGE,
    WAIT_FOR_A_SIGN,
    a_node,
    a_runtime,
    a_trainjob,
    pods_of,
)

from builders import an_override

# Waits with sigwait, because a handler could run just before a sleep begins, which would go on.
TRAINING = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print("ready", flush=True)
signal.sigwait({signal.SIGTERM})
print("SIGTERM", flush=True)
time.sleep(1)
"""

# Hears the signal and stays until a file tells it to go, as a training that writes its last checkpoint does. After a
# while it goes by itself: a pod that the Job makes in between, before it is deleted too, gets no file.
STAYING = f"trap 'echo SIGTERM; (sleep 30; touch /tmp/done) &' TERM; echo ready; {WAIT_FOR_A_SIGN}"

LONG = 3600
"""A grace period in seconds that no test can wait for."""


def started(space, node):
    """The pod of a job with this node, and its log from the line `ready` on."""
    space.create(a_runtime(node))
    space.create(a_trainjob())
    (pod,) = space.until("pods", lambda pods: pods and pods[0]["status"]["phase"] == "Running")
    lines = space.follow(pod["metadata"]["name"])
    assert next(lines) == "ready"
    return pod, lines


@pytest.mark.parametrize("how", ["deleted", "suspended"])
def test_process_1_gets_sigterm_and_the_pod_goes_as_soon_as_it_ends(space, how):
    pod = {"terminationGracePeriodSeconds": LONG}
    node = a_node(TRAINING, command=["python3", "-c"], image=PYTHON_IMAGE, pod=pod)
    _, lines = started(space, node)

    if how == "deleted":
        space.delete("trainjobs", "job")
    else:
        space.patch("trainjobs", "job", {"spec": {"suspend": True}})

    assert list(lines) == ["SIGTERM"]
    space.until_gone("pods", labelSelector=pods_of("job"))


def test_behind_a_shell_nobody_hears_sigterm_and_the_pod_takes_the_whole_grace_period(space):
    grace = 4
    script = f"python3 -c '{TRAINING}'\necho after"
    pod = {"terminationGracePeriodSeconds": grace}
    _, lines = started(space, a_node(script, command=["bash", "-c"], image=PYTHON_IMAGE, pod=pod))

    begin = time.monotonic()
    space.delete("trainjobs", "job")
    rest = list(lines)
    space.until_gone("pods", labelSelector=pods_of("job"))

    assert rest == []
    assert time.monotonic() - begin >= grace


def test_a_deleted_trainjob_is_gone_before_its_pods(space, kubectl):
    pod = {"terminationGracePeriodSeconds": LONG}
    pod, lines = started(space, a_node(STAYING, pod=pod))

    space.delete("trainjobs", "job")

    assert next(lines) == "SIGTERM"
    assert space.find("trainjobs", "job") is None
    left = space.get("pods", pod["metadata"]["name"])
    assert left["status"]["phase"] == "Running"
    assert left["metadata"]["deletionGracePeriodSeconds"] == LONG
    kubectl("-n", space.name, "exec", pod["metadata"]["name"], "--", "touch", "/tmp/done")


def test_a_trainjob_deleted_in_the_foreground_stays_until_its_pods_are_gone(space, kubectl):
    pod = {"terminationGracePeriodSeconds": LONG}
    pod, lines = started(space, a_node(STAYING, pod=pod))

    space.delete("trainjobs", "job", "Foreground")

    assert next(lines) == "SIGTERM"
    leaving = space.get("trainjobs", "job")
    assert "deletionTimestamp" in leaving["metadata"]
    kubectl("-n", space.name, "exec", pod["metadata"]["name"], "--", "touch", "/tmp/done")
    space.until_gone("trainjobs")
    assert space.find("pods", pod["metadata"]["name"]) is None


def test_the_grace_period_is_30_seconds_and_up_to_2_2_only_a_runtime_can_change_it(space, version):
    node = a_node("exit 0")
    del node["template"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    space.create(a_runtime(node))

    space.create(a_trainjob(suspend=True))
    job = space.until_one("jobs", "job-node-0")
    changed = space.try_create(
        a_trainjob(
            "changed", suspend=True, **an_override({"terminationGracePeriodSeconds": 60}, version)
        )
    )

    assert job["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 30
    assert changed.code == (201 if version == "2.3" else 400)
