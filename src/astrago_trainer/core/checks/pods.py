"""What admission lets through and the user would find out later: pods that cannot start, or do not train as meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.quantity import Quantity

Json = dict[str, Any]

_RANKED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "LOCAL_RANK")
_LAUNCHERS = re.compile(
    r"\b(torchrun|torch\.distributed\.(run|launch)|accelerate|deepspeed|tune run|launch\.py)\b"
)
_TRANSLATED = re.compile(r"PET_NODE_RANK|setup_pytorch_env\.sh")
_VOLUME_FIELDS = frozenset({"name"})


def check_pods(job_set: Json, runtime: Mapping[str, Any]) -> list[Problem]:
    """Warnings and errors about the effective pods; `runtime` is the unmerged one, to tell a typo from a container."""
    problems: list[Problem] = []
    claimed = _claimed_volumes(job_set)
    for job in job_set["spec"].get("replicatedJobs", ()):
        pod = job["template"]["spec"]["template"]["spec"]
        known = _runtime_containers(runtime, job["name"])
        for group in ("initContainers", "containers"):
            for container in pod.get(group, ()):
                problems += _check_container(job["name"], group, container, known)
        problems += _check_volumes(job["name"], pod, claimed)
        problems += _check_training(job_set, job, pod, runtime)
    problems += _check_ttl(job_set)
    return problems


def _check_container(job: str, group: str, container: Json, known: set[str]) -> Iterator[Problem]:
    name = container["name"]
    where = f"{job}.{group}[{name}]"
    if not container.get("image"):
        text = f"container {name!r} has no image: the runtime has no container of that name, only {_listed(known)}."
        remedy = "Correct the name in the override; admission does not notice, and no pod would ever start."
        yield Problem(where, "ContainerWithoutImage", text, remedy)
    for entry in container.get("env", ()):
        if "value" in entry and "valueFrom" in entry:
            text = f"variable {entry['name']!r} has a value and a valueFrom (runtime and override were merged)."
            remedy = "Give the runtime a plain value, or use another variable; Kubernetes refuses the pod."
            yield Problem(f"{where}.env[{entry['name']}]", "EnvWithTwoSources", text, remedy)
        if not entry["name"] or "=" in entry["name"]:
            text = f"{entry['name']!r} is no variable name; Kubernetes refuses the pod."
            yield Problem(f"{where}.env", "EnvNameInvalid", text)
    resources = container.get("resources", {})
    for name_of_resource, amount in (resources.get("requests") or {}).items():
        limit = (resources.get("limits") or {}).get(name_of_resource)
        if limit is not None and Quantity.parse(amount) > Quantity.parse(limit):
            text = f"{name_of_resource} is requested with {amount}, more than its limit {limit}."
            yield Problem(
                f"{where}.resources",
                "RequestAboveLimit",
                text,
                "Raise the limit or lower the request.",
            )
        if limit is None and "/" in name_of_resource:
            text = f"{name_of_resource} needs a limit equal to its request; Kubernetes refuses the pod."
            yield Problem(
                f"{where}.resources",
                "LimitMissing",
                text,
                f"Set limits.{name_of_resource} to {amount}.",
            )
    for kind in ("requests", "limits"):
        for name_of_resource, amount in (resources.get(kind) or {}).items():
            finest = {"cpu": -3, "memory": 0}.get(name_of_resource)
            if finest is not None and Quantity.parse(amount).is_finer_than(finest):
                text = f"{name_of_resource} {amount} is finer than Kubernetes counts; it will be rounded up."
                where_exactly = f"{where}.resources.{kind}"
                yield Problem(
                    where_exactly, "QuantityTooFine", text, "Check its suffix.", "warning"
                )
            if Quantity.parse(amount) < Quantity.parse("0"):
                text = f"{name_of_resource} must not be negative, found {amount}."
                yield Problem(f"{where}.resources.{kind}", "FieldValueInvalid", text)


def _claimed_volumes(job_set: Json) -> set[str]:
    """Volumes that JobSet adds to the pods itself, for the claims it makes."""
    policies = job_set["spec"].get("volumeClaimPolicies", ())
    templates = [template for policy in policies for template in policy.get("templates") or ()]
    return {template.get("metadata", {}).get("name", "") for template in templates}


def _check_volumes(job: str, pod: Json, claimed: set[str]) -> Iterator[Problem]:
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    for name, volume in volumes.items():
        sources = sorted(set(volume) - _VOLUME_FIELDS)
        if len(sources) > 1:
            text = f"volume {name!r} has several sources after the merge: {', '.join(sources)}."
            remedy = "Give the override's volume a name of its own; Kubernetes refuses the pod."
            yield Problem(f"{job}.volumes[{name}]", "VolumeWithTwoSources", text, remedy)
    for group in ("initContainers", "containers"):
        for container in pod.get(group, ()):
            for mount in container.get("volumeMounts", ()):
                if mount["name"] not in volumes and mount["name"] not in claimed:
                    text = f"{container['name']!r} mounts volume {mount['name']!r}, which the pod does not have."
                    remedy = f"Add it to the volumes; there are {_listed(set(volumes))}."
                    yield Problem(
                        f"{job}.{group}[{container['name']}].volumeMounts",
                        "VolumeMissing",
                        text,
                        remedy,
                    )


def _check_training(
    job_set: Json, job: Json, pod: Json, runtime: Mapping[str, Any]
) -> Iterator[Problem]:
    """Whether the processes that start are those that the numbers promise."""
    policy = ((runtime.get("spec") or {}).get("mlPolicy")) or {}
    container = next((c for c in pod.get("containers", ()) if c["name"] == "node"), None)
    if policy.get("torch") is None or container is None:
        return
    env = {entry["name"]: entry.get("value") for entry in container.get("env", ())}
    processes = env.get("PET_NPROC_PER_NODE")
    gpu_count = _gpus(container)
    if processes == "auto" and gpu_count == 1:
        processes = "1"
    nodes = job["template"]["spec"].get("completions", 1)
    where = f"{job['name']}.containers[node]"
    if processes is None:
        text = "without spec.trainer the operator sets no PET_* variables, and the pods do not find each other."
        yield Problem("spec.trainer", "NoTrainer", text, "Write `trainer: {}` at least.", "warning")
        return
    words = " ".join([*container.get("command", ()), *container.get("args", ())])
    runs_launcher = bool(_LAUNCHERS.search(words))
    has_ranks = all(name in env for name in _RANKED) or bool(_TRANSLATED.search(words))
    if words and not runs_launcher:
        if not has_ranks and (nodes > 1 or processes != "1"):
            text = f"the command is no torchrun, and plain programs do not read the PET_* variables of {nodes} nodes."
            remedy = "Start it with torchrun, or export RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT from PET_*."
            yield Problem(where, "PetWithoutTorchrun", text, remedy, "warning")
        elif processes != "1":
            text = f"PET_NPROC_PER_NODE is {processes}, but a plain program is one process a node."
            remedy = "Use torchrun, or set spec.trainer.numProcPerNode to 1."
            yield Problem(where, "PetWithoutTorchrun", text, remedy, "warning")
    if gpu_count > 1 and processes == "1":
        text = f"{gpu_count} GPUs a node but one process: {gpu_count - 1} of them would be idle."
        remedy = "Start one process a GPU with torchrun, or ask for one GPU."
        yield Problem(where, "GpusWithoutProcesses", text, remedy, "warning")


def _gpus(container: Json) -> int:
    limits = container.get("resources", {}).get("limits") or {}
    return sum(
        Quantity.parse(amount).value() for name, amount in limits.items() if name.endswith("/gpu")
    )


def _check_ttl(job_set: Json) -> Iterator[Problem]:
    if "ttlSecondsAfterFinished" in job_set["spec"]:
        text = "a TTL on the JobSet makes the Trainer run a finished training again, for ever."
        remedy = "Put ttlSecondsAfterFinished into replicatedJobs[].template.spec, or leave the clean-up to Astrago."
        yield Problem(
            "runtime.spec.template.spec.ttlSecondsAfterFinished",
            "JobSetTtl",
            text,
            remedy,
            "warning",
        )


def _runtime_containers(runtime: Mapping[str, Any], job: str) -> set[str]:
    template = (runtime.get("spec") or {}).get("template") or {}
    for replicated in (template.get("spec") or {}).get("replicatedJobs") or ():
        if replicated.get("name") == job:
            pod = replicated.get("template") or {}
            for step in ("spec", "template", "spec"):
                pod = pod.get(step) or {}
            groups = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
            return {container.get("name", "") for container in groups}
    return set()


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"
