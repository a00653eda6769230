"""A training runtime as render sees it, and the copy that a single job may own.

Restarts, and image and resources of MPI workers, can be set in a runtime only. A job that needs its
own gets a TrainingRuntime in its namespace; the administrator's runtime is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from astrago_trainer.core.names import MAX_JOB_NAME, job_runtime_name, max_trainjob_name
from astrago_trainer.core.render.configmaps import MANAGED_BY, USER_LABEL

Json = dict[str, Any]
Policy = Literal["torch", "mpi", "plain"]

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
ANCESTOR = f"{GROUP}/trainjob-ancestor-step"
FRAMEWORK_LABEL = f"{GROUP}/framework"
NODE = "node"


@dataclass(frozen=True, slots=True)
class TemplateJob:
    """One replicated job of a runtime."""

    name: str
    ancestor: str
    parallelism: int
    pod: Json

    def container(self, name: str, *, kind: str = "containers") -> Json | None:
        """The container (or init container) of this name."""
        return next((each for each in objects_in(self.pod, kind) if each.get("name") == name), None)

    def init_containers(self) -> list[Json]:
        return objects_in(self.pod, "initContainers")

    def volume_names(self) -> frozenset[str]:
        return frozenset(str(each.get("name")) for each in objects_in(self.pod, "volumes"))

    def mounts(self) -> Mapping[str, str]:
        """Mount path -> volume of the training container."""
        container: Json = self.container(NODE) or {}
        return {
            str(each.get("mountPath")): str(each.get("name"))
            for each in objects_in(container, "volumeMounts")
        }


@dataclass(frozen=True, slots=True)
class RuntimeView:
    """The parts of a (Cluster)TrainingRuntime that matter to a TrainJob."""

    name: str
    kind: str
    policy: Policy
    has_launcher_as_node: bool
    jobs: tuple[TemplateJob, ...]

    @property
    def training_jobs(self) -> tuple[TemplateJob, ...]:
        """Where the user's code runs: the trainer step, and the workers of MPI."""
        return tuple(
            job
            for job in self.jobs
            if job.ancestor == "trainer" or (self.policy == "mpi" and job.name == NODE)
        )

    def pods(self, nodes: int) -> list[tuple[str, int]]:
        """Replicated jobs and how many pods each has in a job of `nodes` nodes."""
        counts = []
        for job in self.jobs:
            count = job.parallelism
            if self.policy == "mpi" and job.name == NODE:
                count = max(nodes - 1, 1) if self.has_launcher_as_node else nodes
            elif self.policy != "mpi" and job.ancestor == "trainer":
                count = nodes
            counts.append((job.name, count))
        return counts


def view_runtime(runtime: Mapping[str, Any]) -> RuntimeView:
    """Read a runtime object; what is missing reads as absent, for the merge reports it in full."""
    policy = _dict(_dict(runtime.get("spec")).get("mlPolicy"))
    mpi = policy.get("mpi")
    kind: Policy = "torch" if policy.get("torch") is not None else "plain"
    return RuntimeView(
        name=str(_dict(runtime.get("metadata")).get("name", "")),
        kind=str(runtime.get("kind", "ClusterTrainingRuntime")),
        policy="mpi" if mpi is not None else kind,
        has_launcher_as_node=_dict(mpi).get("runLauncherAsNode") is True,
        jobs=tuple(_template_jobs(runtime)),
    )


def name_limit(runtime: Mapping[str, Any], nodes: int) -> int:
    """How long the name of a job with so many nodes may be on this runtime (M122)."""
    return min(MAX_JOB_NAME, max_trainjob_name(view_runtime(runtime).pods(nodes)))


def restarts_of(runtime: Mapping[str, Any]) -> int | None:
    """How often the whole group restarts; None where the runtime does not restart groups."""
    view, spec = view_runtime(runtime), _jobset_spec(runtime)
    for job in _replicated_jobs(runtime):
        if job.get("name") in {each.name for each in view.training_jobs}:
            job_spec = _dict(_dict(job.get("template")).get("spec"))
            pod = _dict(_dict(job_spec.get("template")).get("spec"))
            if job_spec.get("backoffLimit") != 0 or pod.get("restartPolicy") != "Never":
                return None
    found = _dict(spec.get("failurePolicy")).get("maxRestarts")
    return found if isinstance(found, int) else None


def own_runtime(runtime: Mapping[str, Any], *, job: str, namespace: str, user: str) -> Json:
    """A copy of `runtime` for one job, without the JobSet TTL that would run it again."""
    labels = _dict(_dict(runtime.get("metadata")).get("labels"))
    framework = {FRAMEWORK_LABEL: labels[FRAMEWORK_LABEL]} if FRAMEWORK_LABEL in labels else {}
    spec = copy.deepcopy(dict(_dict(runtime.get("spec"))))
    _dict(_dict(spec.get("template")).get("spec")).pop("ttlSecondsAfterFinished", None)
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRuntime",
        "metadata": {
            "name": job_runtime_name(job),
            "namespace": namespace,
            "labels": {**framework, **MANAGED_BY, USER_LABEL: user},
        },
        "spec": spec,
    }


def set_restarts(runtime: Json, count: int) -> None:
    """One failure restarts the whole group, `count` times (X13, trainer-facts 1.11)."""
    _jobset_spec(runtime).setdefault("failurePolicy", {})["maxRestarts"] = count
    training = {job.name for job in view_runtime(runtime).training_jobs}
    for job in _replicated_jobs(runtime):
        if job.get("name") in training:
            job_spec = job.setdefault("template", {}).setdefault("spec", {})
            job_spec["backoffLimit"] = 0
            job_spec.setdefault("template", {}).setdefault("spec", {})["restartPolicy"] = "Never"


def set_worker(runtime: Json, *, image: str | None, resources: Json) -> None:
    """Image and resources of MPI workers, which a TrainJob cannot reach (trainer-facts 1.6)."""
    for job in view_runtime(runtime).jobs:
        if job.name == NODE and (container := job.container(NODE)) is not None:
            container.update({"image": image} if image is not None else {})
            container.update({"resources": resources} if resources else {})


def _template_jobs(runtime: Mapping[str, Any]) -> Iterator[TemplateJob]:
    for job in _replicated_jobs(runtime):
        template = _dict(job.get("template"))
        labels = _dict(_dict(template.get("metadata")).get("labels"))
        spec = _dict(template.get("spec"))
        parallelism = spec.get("parallelism")
        yield TemplateJob(
            name=str(job.get("name", "")),
            ancestor=str(labels.get(ANCESTOR, "")),
            parallelism=parallelism if isinstance(parallelism, int) else 1,
            pod=_dict(_dict(spec.get("template")).get("spec")),
        )


def _jobset_spec(runtime: Mapping[str, Any]) -> Json:
    return _dict(_dict(_dict(runtime.get("spec")).get("template")).get("spec"))


def _replicated_jobs(runtime: Mapping[str, Any]) -> list[Json]:
    return objects_in(_jobset_spec(runtime), "replicatedJobs")


def objects_in(holder: Mapping[str, Any], key: str) -> list[Json]:
    """The objects of the list at `key`; nothing where there is no such list."""
    found = holder.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _dict(value: Any) -> Json:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
