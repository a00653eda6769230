"""Last phase: the JobSet, from the plan and what `spec.initializer` and `spec.trainer` say."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.lists import env_value, job_env, resettle, resettle_list, set_env
from astrago_trainer.core.merge.model import (
    ANCESTOR_LABEL,
    DATASET_INITIALIZER,
    MODEL_INITIALIZER,
    NODE,
    TRAINER,
    Plan,
    PodSet,
    owner_reference,
)
from astrago_trainer.core.merge.origins import DEFAULT, Origin
from astrago_trainer.core.merge.overrides import takes_resources
from astrago_trainer.core.merge.plugins.podgroup import pod_label_origin
from astrago_trainer.core.merge.schema import printed_once

Json = dict[str, Any]


def merge_resources(plan: Plan) -> None:
    """2.3: the TrainJob's resources are merged into the runtime's key by key, before the plugins look at them."""
    trainer = plan.job.trainer
    if plan.version != "2.3" or trainer is None or "resourcesPerNode" not in trainer:
        return
    wanted = trainer["resourcesPerNode"]
    for pods in plan.pod_sets:
        container = pods.container(NODE)
        if container is None or not takes_resources(plan, pods):
            continue
        present = container.get("resources", {})
        merged: Json = {}
        for name in ("limits", "requests"):
            if amounts := {**present.get(name, {}), **wanted.get(name, {})}:
                merged[name] = {key: str(amount) for key, amount in amounts.items()}
            for key in wanted.get(name, ()):
                where = f"spec.trainer.resourcesPerNode.{name}.{key}"
                plan.origins.mark_key(merged[name], key, Origin(where, where))
        container["resources"] = merged


def build_job_set(plan: Plan) -> Json:
    """The JobSet as the controller would apply it."""
    for pods in plan.pod_sets:
        _set_counts(plan, pods)
        resettle_list(pods.pod, "volumes", "name")
        for container in pods.pod.get("containers", ()):
            resettle(container)
        if plan.version == "2.3":
            for container in pods.pod.get("initContainers", ()):
                resettle(container)
    for pods in plan.pod_sets:
        _initialize(plan, pods)
    for pods in plan.pod_sets:
        _train(plan, pods)
    _label_pods(plan)
    if plan.job.suspend is None:
        plan.spec.pop("suspend", None)
    else:
        plan.spec["suspend"] = plan.job.suspend
        plan.origins.mark_key(plan.spec, "suspend", Origin("spec.suspend", "spec.suspend"))
    return _wrap(plan)


def _wrap(plan: Plan) -> Json:
    metadata: Json = {"name": plan.job.name, "namespace": plan.job.namespace}
    plan.origins.mark(metadata, Origin("metadata", "metadata"))
    if plan.labels:
        metadata["labels"] = plan.origins.mark(plan.labels, Origin("runtime"))
    if plan.annotations:
        metadata["annotations"] = plan.origins.mark(plan.annotations, Origin("runtime"))
    metadata["ownerReferences"] = plan.origins.mark([owner_reference(plan.job)], DEFAULT)
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": plan.spec,
    }
    plan.origins.mark_key(job_set, "apiVersion", DEFAULT)
    plan.origins.mark_key(job_set, "kind", DEFAULT)
    return job_set


def _set_counts(plan: Plan, pods: PodSet) -> None:
    """The number of pods; every job of the set gets it, also those that the runtime gave another number."""
    # 2.3 looks the job up by its name, which matters only where a name is there twice
    target = plan.named(pods.name) or pods if plan.version == "2.3" else pods
    job_spec = target.job["template"]["spec"]
    origin = _count_origin(plan, pods)
    for name in ("parallelism", "completions"):
        job_spec[name] = pods.count
        plan.origins.mark_key(job_spec, name, origin)


def _count_origin(plan: Plan, pods: PodSet) -> Origin:
    trainer = plan.job.trainer or {}
    counted = (
        pods.name == NODE if plan.runtime.policy("mpi") is not None else pods is plan.trainer_set()
    )
    if counted and "numNodes" in trainer:
        return Origin("spec.trainer.numNodes", "spec.trainer.numNodes")
    policy = plan.runtime.ml_policy
    if pods.ancestor == TRAINER and policy is not None:
        return Origin("runtime") if "numNodes" in policy else DEFAULT
    return DEFAULT


def _initialize(plan: Plan, pods: PodSet) -> None:
    """`spec.initializer` on the jobs that fetch data set and model."""
    ancestor = pods.job["template"]["metadata"].get("labels", {}).get(ANCESTOR_LABEL)
    if ancestor not in (DATASET_INITIALIZER, MODEL_INITIALIZER):
        return
    _one_replica(plan, pods)
    part = "dataset" if ancestor == DATASET_INITIALIZER else "model"
    wanted = (plan.job.initializer or {}).get(part)
    if wanted is None:
        return
    path = f"spec.initializer.{part}"
    for container in pods.pod.get("containers", ()):
        if container["name"] != ancestor:
            continue
        entries = job_env(wanted.get("env"), f"{path}.env")
        if "storageUri" in wanted:
            origin = Origin(f"{path}.storageUri", f"{path}.storageUri")
            entries.insert(0, (env_value("STORAGE_URI", wanted["storageUri"]), origin))
        set_env(container, entries, plan.origins)
        if "secretRef" in wanted:
            source = {"secretRef": {"name": wanted["secretRef"].get("name", "")}}
            origin = Origin(f"{path}.secretRef", f"{path}.secretRef")
            container.setdefault("envFrom", []).append(plan.origins.mark(source, origin))


def _train(plan: Plan, pods: PodSet) -> None:
    """`spec.trainer` on the training container; it wins over runtime, overrides and plugins."""
    ancestor = pods.job["template"]["metadata"].get("labels", {}).get(ANCESTOR_LABEL)
    mpi = plan.runtime.policy("mpi") or {}
    is_trainer = ancestor == TRAINER
    if is_trainer:
        _one_replica(plan, pods)
    trainer = plan.job.trainer
    if trainer is None or not (is_trainer or (mpi.get("runLauncherAsNode") and pods.name == NODE)):
        return
    for container in pods.pod.get("containers", ()):
        if container["name"] != NODE:
            continue
        if is_trainer:
            _set_program(plan, container, trainer)
        if plan.version != "2.3":
            _replace_resources(plan, container, trainer)
        set_env(container, job_env(trainer.get("env"), "spec.trainer.env"), plan.origins)


def _set_program(plan: Plan, container: Json, trainer: Json) -> None:
    if "image" in trainer:
        container["image"] = trainer["image"]
        plan.origins.mark_key(
            container, "image", Origin("spec.trainer.image", "spec.trainer.image")
        )
    for name in ("command", "args"):
        words = (
            plan.command if name == "command" and plan.command is not None else trainer.get(name)
        )
        if words is None:
            continue
        container.pop(name, None)
        if words:  # an empty list takes the runtime's words away and leaves the image's own
            container[name] = words
            plan.origins.mark_key(
                container, name, Origin(f"spec.trainer.{name}", f"spec.trainer.{name}")
            )


def _replace_resources(plan: Plan, container: Json, trainer: Json) -> None:
    """2.1 and 2.2: all or nothing, the runtime's resources are gone once the TrainJob names any."""
    wanted = trainer.get("resourcesPerNode", {})
    replaced = {
        name: {key: printed_once(amount) for key, amount in wanted[name].items()}
        for name in ("limits", "requests")
        if name in wanted
    }
    if replaced:
        container["resources"] = replaced
        where = "spec.trainer.resourcesPerNode"
        for name in replaced:
            plan.origins.mark_key(replaced, name, Origin(f"{where}.{name}", f"{where}.{name}"))


def _one_replica(plan: Plan, pods: PodSet) -> None:
    if pods.job.get("replicas") != 1:
        pods.job["replicas"] = 1
        plan.origins.mark_key(pods.job, "replicas", DEFAULT)


def _label_pods(plan: Plan) -> None:
    for name, values in (("labels", plan.pod_labels), ("annotations", plan.pod_annotations)):
        if not values:
            continue
        for pods in plan.pod_sets:
            metadata = plan.origins.fork(pods.template["metadata"])
            own = plan.origins.fork(metadata.get(name, {}))
            for key, value in values.items():
                own[key] = value
                plan.origins.mark_key(own, key, pod_label_origin(plan))
            metadata[name] = own
            pods.template["metadata"] = metadata
