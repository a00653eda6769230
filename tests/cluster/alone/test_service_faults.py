"""Parts of the cluster fail under a running server: jobs are accepted, the wait is explained, nothing is lost."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster.holder import Holder
from cluster.layout import NODE_NAME, Layout
from cluster.operators import Kubectl
from tests.cluster.service.test_faults import COUNTS, assert_whole, counting

SYSTEM = ("-n", "kubeflow-system")
DOWN_SECONDS = 15.0


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
def holder() -> Holder:
    return Holder(Layout.default())


def program(holder: Holder, name: str) -> str:
    """Its pid in there."""
    record = json.loads((holder.layout.run / f"{name}.json").read_text(encoding="utf-8"))
    return str(record["pid"])


def test_without_the_trainer_a_job_is_accepted_and_waits(ann, kubectl):
    """Its webhook is in the same program: the API server takes no TrainJob meanwhile."""
    with down(kubectl, "kubeflow-trainer-controller-manager"):
        job = ann.submit("print('hello')\n", name="job")
        assert job.phase in ("Queued", "Pending")
        waiting = ann.until("job", lambda job: job.reason == "EngineUnavailable")
        assert "webhook" in waiting.message
        assert ann.space.list("trainjobs") == []
    assert ann.wait("job").has_succeeded
    assert len(ann.space.list("trainjobs")) == 1


def test_without_the_jobset_controller_the_wait_is_explained(ann, kubectl):
    with down(kubectl, "jobset-controller-manager"):
        ann.submit("print('hello')\n", name="job")
        reasons = ("WebhookUnavailable", "ControllerNotResponding")
        waiting = ann.until("job", lambda job: job.reason in reasons)
        assert waiting.phase in ("Queued", "Pending")
        assert "webhook" in waiting.message or "controller" in waiting.message
    assert ann.wait("job").has_succeeded


def test_an_api_server_that_hangs_costs_nothing(ann, holder):
    ann.submit(COUNTS, name="job", nodes=2, env=counting(500))
    ann.until("job", lambda job: job.phase == "Running")
    assert holder.inside("kill", "-STOP", program(holder, "kube-apiserver")).returncode == 0
    try:
        back = time.monotonic() + DOWN_SECONDS
        while time.monotonic() < back:
            before = time.monotonic()
            assert ann.client.get("job").phase == "Running"
            assert time.monotonic() - before < 1
    finally:
        holder.inside("kill", "-CONT", program(holder, "kube-apiserver"))
    assert ann.wait("job").has_succeeded
    for rank in (0, 1):
        assert_whole(ann, "job", 500, rank)


def test_a_kubelet_that_starts_again_leaves_jobs_alone(ann, holder, kubectl):
    ann.submit(COUNTS, name="job", nodes=2, env=counting(1500))
    ann.until("job", lambda job: job.phase == "Running")
    record = holder.layout.run / "kubelet.json"
    known = json.loads(record.read_text(encoding="utf-8"))
    log = shlex.quote(str(holder.layout.run / "kubelet.log"))
    holder.inside("kill", "-9", str(known["pid"]))
    start = f"setsid {shlex.join(known['arguments'])} >>{log} 2>&1 </dev/null & echo $!"
    made = holder.inside("sh", "-c", start)
    record.write_text(json.dumps({**known, "pid": int(made.stdout)}), encoding="utf-8")
    kubectl("wait", f"node/{NODE_NAME}", "--for=condition=Ready", "--timeout=120s")
    job = ann.wait("job")
    assert (job.phase, job.restarts) == ("Complete", 0), job.message
    for rank in (0, 1):
        assert_whole(ann, "job", 1500, rank)
