"""First phase: the runtime's template, copied, with the TrainJob's overrides laid over it in their order."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.model import (
    ANCESTOR_LABEL,
    NODE,
    TRAINER,
    CompiledRuntime,
    Job,
    Plan,
    PodSet,
    override_origin,
)
from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.merge.strategic import Patcher

Json = dict[str, Any]

_TEMPLATE_PATH = "trainingRuntimeSpec.template"


def start_plan(runtime: CompiledRuntime, job: Job) -> Plan:
    """The plan as the controller has it before any plugin runs; raises PatchError."""
    version = runtime.version
    origins = Origins(runtime.origins)
    patcher = Patcher(version, origins)
    patched: set[str] = set()
    spec = _patched_job_set(runtime, job, patcher, patched) if version == "2.3" else runtime.spec
    spec = _with_own_jobs(spec, origins)
    replicated_jobs = spec.get("replicatedJobs", [])
    if version == "2.1":
        _patch_pod_templates(replicated_jobs, job, patcher, patched)
    elif version == "2.2":
        _patch_job_templates(replicated_jobs, job, patcher, patched)
    for replicated in replicated_jobs:
        _own_pod(replicated, origins)
    labels, annotations = _metadata(runtime, job, origins)
    pod_sets = [_pod_set(replicated, runtime, patched) for replicated in replicated_jobs]
    return Plan(version, runtime, job, origins, spec, pod_sets, labels, annotations)


def _patch_pod_templates(jobs: list[Json], job: Job, patcher: Patcher, patched: set[str]) -> None:
    """2.1: each override patches the pod template of each job it targets."""
    for index, override in enumerate(job.overrides):
        targets = {target.get("name", "") for target in override.get("targetJobs") or ()}
        patch = {"spec": override["spec"]} if override.get("spec") is not None else {}
        metadata = override.get("metadata") or {}
        if kept := {k: v for k, v in metadata.items() if k in ("labels", "annotations")}:
            patch["metadata"] = kept
        origin = override_origin("2.1", index)
        for replicated in jobs:
            if replicated["name"] in targets:
                patched.add(replicated["name"])
                job_spec = replicated["template"]["spec"]
                template = job_spec["template"]
                job_spec["template"] = patcher.apply(
                    template, patch, "core.v1.PodTemplateSpec", origin
                )


def _patch_job_templates(jobs: list[Json], job: Job, patcher: Patcher, patched: set[str]) -> None:
    """2.2: each patch names replicated jobs and patches their job templates."""
    for index, override in enumerate(job.overrides):
        path = f"{override_origin('2.2', index).path}.{_TEMPLATE_PATH}.spec.replicatedJobs"
        patches = (_template_patch(override).get("spec") or {}).get("replicatedJobs", ())
        for nth, patch in enumerate(patches):
            origin = Origin(f"override {index}", f"{path}[{nth}].template")
            for replicated in jobs:
                if "template" in patch and replicated["name"] == patch.get("name", ""):
                    patched.add(replicated["name"])
                    template = replicated["template"]
                    replicated["template"] = patcher.apply(
                        template, patch["template"], "batch.v1.JobTemplateSpec", origin
                    )


def _patched_job_set(
    runtime: CompiledRuntime, job: Job, patcher: Patcher, patched: set[str]
) -> Json:
    """2.3: each patch is laid over the whole JobSet spec; the order of the replicated jobs is the runtime's."""
    spec = runtime.spec
    order = {replicated["name"]: i for i, replicated in enumerate(spec.get("replicatedJobs", ()))}
    for index, override in enumerate(job.overrides):
        patch = _template_patch(override).get("spec")
        if patch is not None:
            path = f"{override_origin('2.3', index).path}.{_TEMPLATE_PATH}.spec"
            origin = Origin(f"override {index}", path)
            spec = patcher.apply(spec, patch, "jobset.v1alpha2.JobSetSpec", origin)
            patched.update(replicated["name"] for replicated in spec.get("replicatedJobs", ()))
    if "replicatedJobs" in spec:
        jobs = sorted(
            spec["replicatedJobs"], key=lambda replicated: order.get(replicated["name"], 0)
        )
        spec = {**spec, "replicatedJobs": jobs}
    return spec


def _template_patch(override: Json) -> Json:
    return (override.get("trainingRuntimeSpec") or {}).get("template") or {}


def _metadata(runtime: CompiledRuntime, job: Job, origins: Origins) -> tuple[Json, Json]:
    """Labels and annotations of the JobSet: the runtime's, overlaid by the TrainJob's."""
    layers = [
        (
            job.labels,
            job.annotations,
            Origin("spec.labels", "spec.labels"),
            Origin("spec.annotations", "spec.annotations"),
        )
    ]
    if runtime.version != "2.1":
        layers = []
        for index, override in enumerate(job.overrides):
            metadata = _template_patch(override).get("metadata") or {}
            path = f"{override_origin(runtime.version, index).path}.{_TEMPLATE_PATH}.metadata"
            layer = f"override {index}"
            layers.append(
                (
                    metadata.get("labels", {}),
                    metadata.get("annotations", {}),
                    Origin(layer, f"{path}.labels"),
                    Origin(layer, f"{path}.annotations"),
                )
            )
    labels, annotations = dict(runtime.labels), dict(runtime.annotations)
    for own_labels, own_annotations, label_origin, annotation_origin in layers:
        _overlay(labels, own_labels, label_origin, origins)
        _overlay(annotations, own_annotations, annotation_origin, origins)
    return labels, annotations


def _overlay(target: Json, values: Json, origin: Origin, origins: Origins) -> None:
    for key, value in values.items():
        target[key] = value
        origins.mark_key(target, key, Origin(origin.layer, f"{origin.path}.{key}"))


def _with_own_jobs(spec: Json, origins: Origins) -> Json:
    """A copy down to the pod templates; what lies deeper is shared, and copied where a later phase changes it."""
    fork = origins.fork
    spec = fork(spec)
    if "replicatedJobs" in spec:
        spec["replicatedJobs"] = [fork(replicated) for replicated in spec["replicatedJobs"]]
        for replicated in spec["replicatedJobs"]:
            replicated["template"] = template = fork(replicated["template"])
            template["spec"] = fork(template["spec"])
    return spec


def _own_pod(replicated: Json, origins: Origins) -> None:
    """Copies of every dict and list inside the pod that the plugins change."""
    fork = origins.fork
    job_spec = replicated["template"]["spec"]
    job_spec["template"] = pod_template = fork(job_spec["template"])
    pod_template["spec"] = pod = fork(pod_template["spec"])
    if "volumes" in pod:
        pod["volumes"] = fork(pod["volumes"])
    for group in ("initContainers", "containers"):
        if group in pod:
            pod[group] = containers = fork(pod[group])
            for position, container in enumerate(containers):
                containers[position] = own = fork(container)
                for name in ("env", "ports", "volumeMounts", "envFrom"):
                    if name in own:
                        own[name] = fork(own[name])


def _pod_set(replicated: Json, runtime: CompiledRuntime, patched: set[str]) -> PodSet:
    template = replicated["template"]
    job_spec = template["spec"]
    ancestor = template["metadata"].get("labels", {}).get(ANCESTOR_LABEL)
    count = job_spec.get("parallelism", 1)
    if ancestor == TRAINER and runtime.ml_policy is not None:
        count = runtime.ml_policy.get("numNodes", 1)
    pod_template = job_spec["template"]
    name = replicated["name"]
    return PodSet(
        name,
        ancestor,
        max(count, 1),
        replicated,
        pod_template["spec"],
        pod_template,
        name in patched,
    )


def takes_resources(plan: Plan, pods: PodSet) -> bool:
    """Whether `spec.trainer.resourcesPerNode` is meant for these pods (2.3's rule)."""
    if plan.runtime.ml_policy is None:
        return False
    mpi = plan.runtime.policy("mpi")
    return pods.ancestor == TRAINER or bool(
        mpi and mpi.get("runLauncherAsNode") and pods.name == NODE
    )
