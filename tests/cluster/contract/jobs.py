"""Tiny runtimes and TrainJobs for the contract tests, and what is read off their objects."""

from __future__ import annotations

from typing import Any

from builders import a_job

Json = dict[str, Any]

SHELL_IMAGE = "busybox:1.36.1"
PYTHON_IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"

TORCH: Json = {"numNodes": 1, "torch": {}}
PLAIN: Json = {"numNodes": 1}

FOREVER = "exec sleep 3600"
WAIT_FOR_A_SIGN = "while [ ! -e /tmp/done ]; do sleep 0.1; done"
"""Scripts; the sign is a file that the test makes with `kubectl exec`."""

ATTEMPT: Json = {
    "name": "ATTEMPT",
    "valueFrom": {
        "fieldRef": {"fieldPath": "metadata.labels['jobset.sigs.k8s.io/restart-attempt']"}
    },
}
"""For `trainer.env`: the number of the attempt, readable inside the pod."""


def a_node(
    script: str,
    *,
    command: list[str] | None = None,
    image: str = SHELL_IMAGE,
    restart: str | None = None,
    pod: Json | None = None,
    container: Json | None = None,
    **job: Any,
) -> Json:
    """The replicated job `node` whose container runs the script. Its pods do not linger unless told to."""
    node = {
        "name": "node",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [*(command or ["sh", "-c"]), script],
        "resources": {"requests": {"cpu": "10m"}},
        **(container or {}),
    }
    policy = {} if restart is None else {"restartPolicy": restart}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [node], **policy, **(pod or {})}
    return a_job("node", "trainer", pod=spec, **job)


def a_runtime(*jobs: Json, policy: Json = TORCH, name: str = "rt", **job_set: Any) -> Json:
    """In the namespace of its job, so that it goes with it."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": policy,
            "template": {"spec": {**job_set, "replicatedJobs": list(jobs)}},
        },
    }


def a_trainjob(name: str = "job", *, nodes: int = 1, **spec: Any) -> Json:
    """Of the runtime `rt`; `spec` adds to the specification, and its `trainer` to the trainer."""
    trainer = {"numNodes": nodes, **spec.pop("trainer", {})}
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": "rt"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": ref, "trainer": trainer, **spec},
    }


def without_trainer(trainjob: Json) -> Json:
    spec = {key: value for key, value in trainjob["spec"].items() if key != "trainer"}
    return {**trainjob, "spec": spec}


def pods_of(job: str) -> str:
    """The label selector of a TrainJob's pods."""
    return f"jobset.sigs.k8s.io/jobset-name={job}"


def rank(pod: Json) -> int:
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def attempt(pod: Json) -> str:
    return str(pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"])


def by_rank(pods: list[Json]) -> list[Json]:
    return sorted(pods, key=rank)


def uid(item: Json) -> str:
    return str(item["metadata"]["uid"])


def phases(pods: list[Json]) -> list[str]:
    return [pod["status"].get("phase", "") for pod in by_rank(pods)]


def node_status(pod: Json) -> Json:
    """The container `node` as the kubelet sees it; empty before it has looked."""
    statuses: list[Json] = pod["status"].get("containerStatuses", [])
    return next((status for status in statuses if status["name"] == "node"), {})


def all_run(pods: list[Json], count: int) -> bool:
    return len(pods) == count and all(
        "running" in node_status(pod).get("state", {}) for pod in pods
    )


def conditions(item: Json) -> dict[str, Json]:
    """By type, without the times."""
    times = ("lastTransitionTime", "observedGeneration", "lastProbeTime")
    return {
        each["type"]: {key: value for key, value in each.items() if key not in ("type", *times)}
        for each in item.get("status", {}).get("conditions", [])
    }


def ended(trainjob: Json) -> bool:
    return bool({"Complete", "Failed"} & conditions(trainjob).keys())


def environment(text: str) -> dict[str, str]:
    """The output of `env`."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def refusal(text: str, version: str, name: str = "job") -> str:
    """What the event of a refused JobSet says. 2.2 has lost the reason on the way."""
    return f"unknown (patch jobsets.jobset.x-k8s.io {name})" if version == "2.2" else text
