"""What the validating webhook says of a new TrainJob, in its own words, all of it at once."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.model import (
    DATASET_INITIALIZER,
    LAUNCHER,
    MODEL_INITIALIZER,
    NODE,
    OVERRIDES,
    CompiledRuntime,
    Job,
    Plan,
    PodSet,
)
from astrago_trainer.core.merge.plugins import mpi, torch, torchtune, xgboost
from astrago_trainer.core.merge.plugins.podgroup import QUEUE_ANNOTATION

Json = dict[str, Any]

_INVALID = "FieldValueInvalid"
_REF = "spec.runtimeRef"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_HTTP_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def check_reference(runtime: CompiledRuntime, job: Job) -> Problem | None:
    """Whether the TrainJob names this runtime; the API server fills in kind and group, so missing ones mean those."""
    ref = job.runtime_ref
    name, kind = ref.get("name", ""), ref.get("kind", "ClusterTrainingRuntime")
    group = ref.get("apiGroup", "trainer.kubeflow.org")
    if group != "trainer.kubeflow.org" or kind not in ("ClusterTrainingRuntime", "TrainingRuntime"):
        qualified = f"{kind}.{group}" if group else kind
        return Problem(_REF, _INVALID, f"unsupported runtime: {qualified}")
    found = kind == runtime.kind and name == runtime.name
    if kind == "ClusterTrainingRuntime":
        if found:
            return None
        missing = f'clustertrainingruntimes.trainer.kubeflow.org "{name}" not found'
        text = f"{missing}: specified clusterTrainingRuntime must be created before the TrainJob is created"
        return Problem("spec.RuntimeRef", _INVALID, text)
    if found and runtime.namespace == job.namespace:
        return None
    missing = f'trainingruntimes.trainer.kubeflow.org "{name}" not found'
    text = f"{missing}: specified trainingRuntime must be created before the TrainJob is created"
    return Problem(_REF, _INVALID, text)


def check_admission(plan: Plan, priority_classes: Collection[str]) -> list[Problem]:
    """Every refusal; raises ControllerFailure where the webhook itself crashes."""
    return [
        *_check_initializers(plan),
        *(_check_overrides(plan) if plan.version == "2.1" else _check_patches(plan)),
        *_check_torch(plan),
        *_check_mpi(plan),
        *_check_xgboost(plan),
        *_check_volcano(plan, priority_classes),
    ]


def _container_names(plan: Plan) -> dict[str, set[str]]:
    """The names in each job after the overrides, which is why admission misses a mistyped container."""
    names: dict[str, set[str]] = {}
    for pods in plan.pod_sets:
        groups = (pods.pod.get("initContainers", ()), pods.pod.get("containers", ()))
        names[pods.name] = {container["name"] for group in groups for container in group}
    return names


def _check_initializers(plan: Plan) -> list[Problem]:
    problems: list[Problem] = []
    if plan.job.initializer is None:
        return problems
    names = _container_names(plan)
    for part, job_name in (("dataset", DATASET_INITIALIZER), ("model", MODEL_INITIALIZER)):
        if plan.job.initializer.get(part) is None:
            continue
        if job_name not in names:
            text = f"must have {job_name} job when trainJob is configured with input {part}Config"
        elif job_name not in names[job_name]:
            text = f"must have container with name - {job_name} in the {job_name} job"
        elif plan.version == "2.3" and not _mounts_initializer(plan, job_name):
            text = f"must have volumeMount with name - initializer in container {job_name} of the {job_name} job"
        else:
            continue
        problems.append(Problem(_REF, _INVALID, text))
    return problems


def _mounts_initializer(plan: Plan, job_name: str) -> bool:
    sets: list[PodSet] = [pods for pods in plan.pod_sets if pods.name == job_name]
    containers = [
        c for pods in sets for c in pods.pod.get("containers", ()) if c["name"] == job_name
    ]
    return any(
        mount["name"] == "initializer" for c in containers for mount in c.get("volumeMounts", ())
    )


def _check_overrides(plan: Plan) -> list[Problem]:
    problems: list[Problem] = []
    names = _container_names(plan) if plan.job.overrides else {}
    for override in plan.job.overrides:
        for target in override.get("targetJobs") or ():
            name = target.get("name", "")
            if name not in names:
                text = "must not have targetJob that doesn't exist in the runtime job template"
                problems.append(Problem("spec.podTemplateOverrides", _INVALID, text))
            if override.get("spec") is not None:
                problems += _check_containers(plan, override["spec"], name, names.get(name, set()))
    return problems


def _check_patches(plan: Plan) -> list[Problem]:
    problems: list[Problem] = []
    names = _container_names(plan) if plan.job.overrides else {}
    for patch in plan.job.overrides:
        problems += _check_manager(patch.get("manager", ""))
        template = (patch.get("trainingRuntimeSpec") or {}).get("template") or {}
        for job_patch in (template.get("spec") or {}).get("replicatedJobs", ()):
            name = job_patch.get("name", "")
            if name not in names:
                text = "must not have replicated job that doesn't exist in the runtime job template"
                problems.append(Problem("spec.runtimePatches", _INVALID, text))
                continue
            pod_patch: Any = job_patch
            for step in ("template", "spec", "template", "spec"):
                pod_patch = (pod_patch or {}).get(step)
            if pod_patch is not None:
                problems += _check_containers(plan, pod_patch, name, names[name])
    return problems


def _check_containers(plan: Plan, pod_patch: Json, job_name: str, known: set[str]) -> list[Problem]:
    path = f"spec.{OVERRIDES[plan.version]}"
    problems = []
    for container in pod_patch.get("initContainers", ()):
        if container.get("name", "") not in known:
            text = f"must not have initContainer that doesn't exist in the runtime job {job_name}"
            problems.append(Problem(path, _INVALID, text))
    for container in pod_patch.get("containers", ()):
        name = container.get("name", "")
        if name not in known:
            text = f"must not have container that doesn't exist in the runtime job {job_name}"
            problems.append(Problem(path, _INVALID, text))
        elif container.get("env") and name in (DATASET_INITIALIZER, MODEL_INITIALIZER, NODE):
            text = f"must not have envs for the {DATASET_INITIALIZER}, {MODEL_INITIALIZER}, {NODE} containers"
            problems.append(Problem(path, _INVALID, text))
    return problems


def _check_manager(manager: str) -> list[Problem]:
    path = "spec.runtimePatches.manager"
    if not manager:
        return [Problem(path, "FieldValueRequired", "")]
    host, slash, rest = manager.partition("/")
    if not (slash and host and rest):
        return [Problem(path, _INVALID, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    problems = []
    if len(host.encode()) > 253:
        problems.append(Problem(path, _INVALID, "must be no more than 253 characters"))
    if not _SUBDOMAIN.fullmatch(host):
        text = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            rf"'{_LABEL}(\.{_LABEL})*')"
        )
        problems.append(Problem(path, _INVALID, text))
    if not _HTTP_PATH.fullmatch(rest):
        text = f"Invalid path (regex used for validation is '{_HTTP_PATH.pattern}')"
        problems.append(Problem(path, _INVALID, text))
    return problems


def _check_torch(plan: Plan) -> list[Problem]:
    policy, trainer = plan.runtime.policy("torch"), plan.job.trainer
    if policy is None:
        return []
    problems = []
    for target in (policy.get("envInjection") or {}).get("targets", ()):
        for name in target.get("containerNames", ()):
            job_name = target.get("jobName", "")
            if torch.find_in_job(plan, job_name, name) is None:
                text = f'envInjection target podSet "{job_name}" container "{name}" not found in runtime template'
                problems.append(Problem(_REF, _INVALID, text))
    if trainer is None or (plan.version == "2.1" and "numProcPerNode" not in trainer):
        return problems
    processes = trainer.get("numProcPerNode")
    if isinstance(processes, str) and processes not in ("auto", "cpu", "gpu"):
        text = "must have an int value or [auto cpu gpu]"
        problems.append(Problem("spec.trainer.numProcPerNode", _INVALID, text))
    problems += _check_reserved(trainer, torch.RESERVED)
    if torchtune.is_entrypoint(trainer.get("command")):
        problems += torchtune.check(plan)
    return problems


def _check_reserved(trainer: Json, reserved: Collection[str]) -> list[Problem]:
    taken = sorted({entry["name"] for entry in trainer.get("env", ())} & set(reserved))
    if not taken:
        return []
    text = f"must not have reserved envs, invalid envs configured: [{' '.join(taken)}]"
    return [Problem("spec.trainer.env", _INVALID, text)]


def _check_mpi(plan: Plan) -> list[Problem]:
    policy, trainer = plan.runtime.policy("mpi"), plan.job.trainer
    if policy is None or trainer is None:
        return []
    problems = []
    if isinstance(trainer.get("numProcPerNode"), str):
        text = "must have an int value for MPI TrainJob"
        problems.append(Problem("spec.trainer.numProcPerNode", _INVALID, text))
    lacks_job = plan.named(LAUNCHER) is None or plan.named(NODE) is None
    if lacks_job and trainer.get("numNodes", 1) >= 2 and policy.get("runLauncherAsNode"):
        text = (
            "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode "
            "does not have either launcher and node"
        )
        problems.append(Problem("spec.trainer.numNodes", _INVALID, text))
    if plan.version == "2.3":
        problems += _check_reserved(trainer, mpi.RESERVED)
    return problems


def _check_xgboost(plan: Plan) -> list[Problem]:
    if plan.version == "2.1" or plan.runtime.policy("xgboost") is None or plan.job.trainer is None:
        return []
    return [
        Problem(
            f"spec.trainer.env[{index}]",
            "FieldValueForbidden",
            f"{entry['name']} is reserved for the XGBoost runtime",
        )
        for index, entry in enumerate(plan.job.trainer.get("env", ()))
        if entry["name"] in xgboost.RESERVED
    ]


def _check_volcano(plan: Plan, priority_classes: Collection[str]) -> list[Problem]:
    if "volcano" not in (plan.runtime.pod_group_policy or {}):
        return []
    problems = []
    if plan.annotations.get(QUEUE_ANNOTATION) == "":
        text = "Volcano queue name must not be empty"
        problems.append(Problem(f"spec.annotations[{QUEUE_ANNOTATION}]", _INVALID, text))
    for pods in plan.pod_sets:
        name = pods.pod.get("priorityClassName")
        if name in ("system-cluster-critical", "system-node-critical"):
            break
        if name is not None and name not in priority_classes:
            missing = f'priorityclasses.scheduling.k8s.io "{name}" not found'
            text = f'PriorityClass "{name}" doesn\'t exist: {missing}'
            problems.append(Problem("spec.templateSpec.priorityClassName", _INVALID, text))
    return problems
