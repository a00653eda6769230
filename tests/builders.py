"""Runtimes and TrainJobs for tests of the merge: valid as they are, a test changes what it is about."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
REF = {"name": "rt", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}


def a_container(name: str = "node", **fields: Any) -> Json:
    return {"name": name, "image": "img", **fields}


def a_job(
    name: str = "node", ancestor: str | None = "trainer", *, pod: Json | None = None, **spec: Any
) -> Json:
    """A replicated job; `pod` replaces fields of the pod spec, `spec` those of the job spec."""
    labels = {} if ancestor is None else {ANCESTOR: ancestor}
    pod_spec = {
        "containers": [a_container("node" if ancestor in (None, "trainer") else ancestor)],
        **(pod or {}),
    }
    return {
        "name": name,
        "replicas": 1,
        "template": {
            "metadata": {"labels": labels},
            "spec": {**spec, "template": {"spec": pod_spec}},
        },
    }


def a_runtime(*jobs: Json, policy: Json | None = None, name: str = "rt", **spec: Any) -> Json:
    """A ClusterTrainingRuntime with the torch policy and one job `node`, unless told otherwise."""
    template = {"spec": {"replicatedJobs": list(jobs) or [a_job()]}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}} if policy is None else policy,
            "template": template,
            **spec,
        },
    }


def a_trainjob(**spec: Any) -> Json:
    """A TrainJob that refers to `a_runtime()`."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job", "namespace": "ns"},
        "spec": {"runtimeRef": copy.deepcopy(REF), **spec},
    }


def an_override(pod: Json, version: str = "2.1", *, job: str = "node") -> Json:
    """The spec field that lays `pod` over the pods of `job`, in the dialect of the version."""
    if version == "2.1":
        return {"podTemplateOverrides": [{"targetJobs": [{"name": job}], "spec": pod}]}
    return {"runtimePatches": [a_patch(pod, job=job)]}


def a_patch(pod: Json, *, job: str = "node", manager: str = "example.com/test") -> Json:
    template = {"spec": {"template": {"spec": pod}}}
    jobs = [{"name": job, "template": template}]
    return {
        "manager": manager,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }


def pod_of(job_set: Json, job: int = 0) -> Json:
    pod: Json = job_set["spec"]["replicatedJobs"][job]["template"]["spec"]["template"]["spec"]
    return pod


def container_of(job_set: Json, job: int = 0, container: int = 0) -> Json:
    found: Json = pod_of(job_set, job)["containers"][container]
    return found


def env_of(container: Json) -> dict[str, str | None]:
    return {entry["name"]: entry.get("value") for entry in container.get("env", ())}
