"""Parts of the cluster fail under a running server: jobs are accepted, the wait is explained, nothing is lost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster.holder import Holder
from cluster.layout import NODE_NAME, Layout
from cluster.operators import Kubectl
from tests.cluster.alone.programs import Programs
from tests.cluster.service.counting import (
    COUNTS,
    DOWN_SECONDS,
    ENOUGH,
    LONGER,
    answers_until,
    assert_whole,
    counting,
)

SYSTEM = ("-n", "kubeflow-system")
WAITS = ("Queued", "Pending")


@contextmanager
def down(kubectl: Kubectl, deployment: str) -> Iterator[None]:
    """Without any pod of it, and whole again afterwards."""
    name = f"deployment/{deployment}"
    found = json.loads(kubectl(*SYSTEM, "get", name, "-o", "json"))
    labels = found["spec"]["selector"]["matchLabels"]
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    kubectl(*SYSTEM, "scale", name, "--replicas=0")
    try:
        kubectl(*SYSTEM, "wait", "pods", "-l", selector, "--for=delete", "--timeout=120s")
        yield
    finally:
        kubectl(*SYSTEM, "scale", name, "--replicas=1")
        kubectl(*SYSTEM, "rollout", "status", name, "--timeout=120s")


@pytest.fixture
def programs(kubectl: Kubectl) -> Iterator[Programs]:
    """What a test ends is well again before the next one."""
    found = Programs(Holder(Layout.default()), kubectl)
    yield found
    found.until_well()


def test_without_the_trainer_a_job_is_accepted_and_waits(ann, kubectl):
    """Its webhook is in the same program: the API server takes no TrainJob meanwhile."""
    with down(kubectl, "kubeflow-trainer-controller-manager"):
        back = time.monotonic() + DOWN_SECONDS
        job = ann.submit("print('hello')\n", name="job")
        assert job.phase in WAITS
        waiting = ann.until("job", lambda job: job.reason == "EngineUnavailable")
        assert "webhook" in waiting.message
        answers_until(back, ann, "job", *WAITS)
        assert ann.space.list("trainjobs") == []
    assert ann.wait("job").has_succeeded
    assert len(ann.space.list("trainjobs")) == 1


def test_without_the_jobset_controller_the_wait_is_explained(ann, kubectl):
    with down(kubectl, "jobset-controller-manager"):
        back = time.monotonic() + DOWN_SECONDS
        ann.submit("print('hello')\n", name="job")
        reasons = ("WebhookUnavailable", "ControllerNotResponding")
        waiting = ann.until("job", lambda job: job.reason in reasons)
        assert "webhook" in waiting.message or "controller" in waiting.message
        answers_until(back, ann, "job", *WAITS)
    assert ann.wait("job").has_succeeded
    assert len(ann.space.list("trainjobs")) == 1


def test_an_api_server_that_hangs_costs_nothing(ann, programs):
    ann.submit(COUNTS, name="job", nodes=2, env=counting(LONGER))
    ann.until("job", lambda job: job.phase == "Running")
    with programs.silent("kube-apiserver"):
        answers_until(time.monotonic() + DOWN_SECONDS, ann, "job", "Running")
    job = ann.wait("job")
    assert (job.phase, job.restarts, job.run) == ("Complete", 0, 1), job.message
    for rank in (0, 1):
        assert_whole(ann, "job", LONGER, rank)


@pytest.mark.parametrize("program", ["kube-apiserver", "etcd"])
def test_a_killed_control_plane_costs_nothing(program, ann, programs):
    """Training goes on without it; what is asked for meanwhile is done once, when it is back."""
    ann.submit(COUNTS, name="job", nodes=2, env=counting(LONGER))
    ann.until("job", lambda job: job.phase == "Running")
    with programs.without(program):
        back = time.monotonic() + DOWN_SECONDS
        assert ann.submit("print('late')\n", name="later").phase in WAITS
        answers_until(back, ann, "job", "Running")
        assert ann.client.get("later").phase in WAITS
    programs.until_well()
    assert ann.wait("later").has_succeeded
    job = ann.wait("job")
    assert (job.phase, job.restarts, job.run) == ("Complete", 0, 1), job.message
    for rank in (0, 1):
        assert_whole(ann, "job", LONGER, rank)
    assert ann.lines("later")[-1] == "late"
    found = sorted(each["metadata"]["name"] for each in ann.space.list("trainjobs"))
    assert found == ["job", "later"]


def test_a_kubelet_that_starts_again_leaves_jobs_alone(ann, programs):
    ann.submit(COUNTS, name="job", nodes=2, env=counting(1500))
    ann.until("job", lambda job: job.phase == "Running")
    with programs.without("kubelet"):
        pass
    job = ann.wait("job")
    assert (job.phase, job.restarts) == ("Complete", 0), job.message
    for rank in (0, 1):
        assert_whole(ann, "job", 1500, rank)


def test_a_node_that_does_not_answer_is_named_until_it_is_back(ann, programs, kubectl):
    """The cluster gives a node some 50 s before it takes it for silent, and its pods 5 minutes more."""
    ann.submit(COUNTS, name="job", nodes=2)
    ann.until("job", lambda job: job.phase == "Running")
    with programs.silent("kubelet"):
        told = ann.until("job", lambda job: job.reason == "NodeNotReady")
        (node,) = ann.ask("GET", "/api/v1/nodes").json()["items"]
    assert told.phase == "Running"
    assert told.message.startswith(f"node {NODE_NAME} does not answer; on it: rank 0, rank 1. ")
    assert not node["ready"]
    back = ann.until("job", lambda job: job.reason != "NodeNotReady")
    assert (back.phase, back.reason, back.restarts) == ("Running", "", 0), back.message
    for pod in ann.space.list("pods"):
        name = pod["metadata"]["name"]
        kubectl("exec", name, "-n", ann.namespace, "-c", "node", "--", "touch", ENOUGH)
    job = ann.wait("job")
    assert (job.phase, job.restarts, job.run) == ("Complete", 0, 1), job.message
    for rank in (0, 1):
        assert_whole(ann, "job", rank=rank)
