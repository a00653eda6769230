"""What a TrainJob changes in the pods of its runtime: volumes, init containers, placement, labels.

The same changes are written in two dialects: `podTemplateOverrides` up to Trainer 2.1 and
`runtimePatches` from 2.2 on. Variables of the training container are not among them, for Trainer
refuses them here (M126).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from astrago_trainer.core.platform import PLATFORM, SYSTEM_PATH, Platform, SystemScripts
from astrago_trainer.core.render.command import literal
from astrago_trainer.core.render.configmaps import code_volume
from astrago_trainer.core.render.draft import Draft, Path
from astrago_trainer.core.render.reporting import token_volume
from astrago_trainer.core.render.runtime import NODE, RuntimeView, TemplateJob, objects_in
from astrago_trainer.core.spec import JobSpec, Volume
from astrago_trainer.core.spec.rules import (
    GIT_PATH,
    PROGRESS_PATH,
    PROGRESS_VOLUME,
    SCRIPTS_PATH,
    SCRIPTS_VOLUME,
    SHARED_MEMORY_PATH,
    SHARED_MEMORY_VOLUME,
)

MANAGER = "trainer.astrago.io/render"
GIT_CONTAINER, GIT_VOLUME = "git-clone", "git-clone-volume"
TF_CONTAINER = "tf-config-generator"

_VOLUMES: Path = ("spec", "volumes")
_INIT: Path = ("spec", "initContainers")
_MOUNTS: Path = ("spec", "containers", 0, "volumeMounts")


def put_pod_changes(
    draft: Draft,
    spec: JobSpec,
    runtime: RuntimeView,
    platform: Platform,
    *,
    scripts: SystemScripts | None,
    code_name: str,
) -> None:
    """Add the pods' part to a TrainJob, one entry for each replicated job that runs user code."""
    name = draft.value["metadata"]["name"]
    changes = [
        (job.name, pod)
        for job in runtime.training_jobs
        if (
            pod := _pod(
                spec,
                job,
                scripts=scripts,
                code_name=code_name,
                reporter=name if platform.progress_server else "",
            )
        ).value
    ]
    for index, (target, pod) in enumerate(changes):
        if platform.trainer_version == "2.1":
            entry: Path = ("spec", "podTemplateOverrides", index)
            draft.put((*entry, "targetJobs", 0, "name"), target)
            draft.graft(entry, pod)
        else:
            patch: Path = ("spec", "runtimePatches", 0)
            if index == 0:
                draft.put((*patch, "manager"), MANAGER)
            entry = (*patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs", index)
            draft.put((*entry, "name"), target)
            draft.graft((*entry, "template", "spec", "template"), pod)


def tensorflow_variables(spec: JobSpec) -> dict[str, str]:
    """The worker count under both names the generators know (X5)."""
    return {"NUM_WORKERS": str(spec.nodes), "PET_NNODES": str(spec.nodes)}


def _pod(
    spec: JobSpec,
    job: TemplateJob,
    *,
    scripts: SystemScripts | None,
    code_name: str,
    reporter: str,
) -> Draft:
    pod = Draft()
    _put_metadata(pod, spec)
    _put_placement(pod, spec, job)
    _put_code(pod, spec, job, code_name)
    for index, volume in enumerate(spec.volumes):
        _put_volume(pod, index, volume)
    if scripts is not None and scripts.volume not in job.volume_names():
        source = {"configMap": {"name": scripts.name, "defaultMode": 0o755}}
        _put_own_volume(pod, scripts.volume, source, mount=(SYSTEM_PATH, True))
    if spec.shared_memory is not None:
        source = {"emptyDir": {"medium": "Memory", "sizeLimit": spec.shared_memory}}
        _put_own_volume(
            pod, SHARED_MEMORY_VOLUME, source, mount=(SHARED_MEMORY_PATH, None), of="shared_memory"
        )
    if reporter:
        mount = (PROGRESS_PATH, True)
        _put_own_volume(pod, PROGRESS_VOLUME, token_volume(reporter), mount=mount, of=PLATFORM)
    _put_init_containers(pod, spec, job)
    return pod


def _put_metadata(pod: Draft, spec: JobSpec) -> None:
    for field, entries in (("labels", spec.labels), ("annotations", spec.annotations)):
        for key, value in sorted(entries.items()):
            pod.put(("metadata", field, key), value, f"{field}.{key}")


def _put_placement(pod: Draft, spec: JobSpec, job: TemplateJob) -> None:
    for key, value in sorted(spec.node_selector.items()):
        pod.put(("spec", "nodeSelector", key), value, f"node_selector.{key}")
    if not spec.tolerations:
        return
    # The list replaces the runtime's as a whole (trainer-facts 1.2), so the runtime's come along, but for those that
    # the job has an own word on: of two for one taint the shorter time would count.
    own = job.pod.get("tolerations")
    said = {(each.key, each.effect) for each in spec.tolerations}
    for toleration in copy.deepcopy(own) if isinstance(own, list) else []:
        if (toleration.get("key"), toleration.get("effect")) not in said:
            pod.put(("spec", "tolerations", pod.count(("spec", "tolerations"))), toleration)
    for index, wanted in enumerate(spec.tolerations):
        entry = {
            "key": wanted.key,
            "operator": wanted.operator,
            "value": wanted.value,
            "effect": wanted.effect,
            "tolerationSeconds": wanted.seconds,
        }
        entry = {name: value for name, value in entry.items() if value is not None}
        place: Path = ("spec", "tolerations", pod.count(("spec", "tolerations")))
        pod.put(place, entry, f"tolerations[{index}]")


def _put_code(pod: Draft, spec: JobSpec, job: TemplateJob, code_name: str) -> None:
    if spec.code is None:
        return
    if spec.code.git is None:
        source = {"configMap": code_volume(spec.code, code_name)}
        _put_own_volume(pod, SCRIPTS_VOLUME, source, mount=(SCRIPTS_PATH, True), of="code")
    elif GIT_VOLUME in job.volume_names() and job.mounts().get(GIT_PATH) != GIT_VOLUME:
        _put_mount(pod, {"name": GIT_VOLUME, "mountPath": GIT_PATH}, "code.git")


def _put_volume(pod: Draft, index: int, volume: Volume) -> None:
    field, place = f"volumes[{index}]", (*_VOLUMES, pod.count(_VOLUMES))
    pod.put((*place, "name"), volume.name, f"{field}.name")
    kind, source = _SOURCES[_kind(volume)](volume)
    pod.put((*place, kind), source, f"{field}.{_kind(volume)}")
    mount = (*_mounts(pod), pod.count(_MOUNTS))
    pod.put((*mount, "name"), volume.name, f"{field}.name")
    pod.put((*mount, "mountPath"), volume.mount_path, f"{field}.mount_path")
    pod.put((*mount, "readOnly"), volume.read_only, f"{field}.read_only")
    if volume.sub_path is not None:
        pod.put((*mount, "subPath"), volume.sub_path, f"{field}.sub_path")


def _kind(volume: Volume) -> str:
    return next(kind for kind in _SOURCES if getattr(volume, kind) is not None)


def _empty_dir(volume: Volume) -> tuple[str, dict[str, Any]]:
    wanted = volume.empty_dir
    source: dict[str, Any] = {}
    if wanted is not None and wanted.medium:
        source["medium"] = wanted.medium
    if wanted is not None and wanted.size is not None:
        source["sizeLimit"] = wanted.size
    return "emptyDir", source


_SOURCES: dict[str, Callable[[Volume], tuple[str, dict[str, Any]]]] = {
    "claim": lambda volume: ("persistentVolumeClaim", {"claimName": volume.claim}),
    "empty_dir": _empty_dir,
    "config_map": lambda volume: ("configMap", {"name": volume.config_map, "defaultMode": 0o755}),
    "secret": lambda volume: ("secret", {"secretName": volume.secret}),
    "host_path": lambda volume: ("hostPath", {"path": volume.host_path, "type": "Directory"}),
}


def _put_own_volume(
    pod: Draft,
    name: str,
    source: dict[str, Any],
    *,
    mount: tuple[str, bool | None],
    of: str = "",
) -> None:
    """A volume the platform makes for a field of the request, and its mount."""
    pod.put((*_VOLUMES, pod.count(_VOLUMES)), {"name": name, **source}, of)
    path, read_only = mount
    entry: dict[str, Any] = {"name": name, "mountPath": path}
    _put_mount(pod, entry if read_only is None else {**entry, "readOnly": read_only}, of)


def _put_mount(pod: Draft, entry: dict[str, Any], of: str) -> None:
    pod.put((*_mounts(pod), pod.count(_MOUNTS)), entry, of)


def _mounts(pod: Draft) -> Path:
    """The mounts of the training container, the only container this changes."""
    if not pod.count(("spec", "containers")):
        pod.put(("spec", "containers", 0, "name"), NODE)
    return _MOUNTS


def _put_init_containers(pod: Draft, spec: JobSpec, job: TemplateJob) -> None:
    """Variables of the runtime's init containers, in the runtime's order."""
    wanted = {GIT_CONTAINER: _git_variables(spec), TF_CONTAINER: _tensorflow_init_variables(spec)}
    for container in job.init_containers():
        name = str(container.get("name"))
        # A value laid over a valueFrom keeps both, and Kubernetes refuses the pod (M129).
        fixed = {each.get("name") for each in objects_in(container, "env") if "valueFrom" in each}
        variables = [each for each in wanted.get(name, ()) if each[0] not in fixed]
        place = (*_INIT, pod.count(_INIT))
        if variables:
            pod.put((*place, "name"), name)
        for index, (variable, value, source) in enumerate(variables):
            pod.put((*place, "env", index), {"name": variable, "value": value}, source)


def _git_variables(spec: JobSpec) -> list[tuple[str, str, str]]:
    if spec.code is None or spec.code.git is None:
        return []
    git = spec.code.git
    wanted = [("GIT_SYNC_REPO", git.url, "url"), ("GIT_SYNC_BRANCH", git.branch, "branch")]
    return [
        (name, literal(value, ()), f"code.git.{field}")
        for name, value, field in wanted
        if value is not None
    ]


def _tensorflow_init_variables(spec: JobSpec) -> list[tuple[str, str, str]]:
    """The init container that writes TF_CONFIG needs the worker count and the port (M39, X12)."""
    if spec.framework != "tensorflow":
        return []
    ports = [
        ("TF_PORT", env.value, f"env[{index}].value")
        for index, env in enumerate(spec.env)
        if env.name == "TF_PORT" and env.value is not None
    ]
    return [(name, value, "nodes") for name, value in tensorflow_variables(spec).items()] + ports
