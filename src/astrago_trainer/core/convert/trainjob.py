"""A TrainJob as people write it for kubectl, to a job file; both dialects of changes to pods are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.core.convert import pods
from astrago_trainer.core.convert.converted import Converted, Manifest, Path, lost
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import Framework, Platform, SystemScripts
from astrago_trainer.core.render.command import ENTER_FOLDER, WORKING_DIR, prelude
from astrago_trainer.core.render.configmaps import MANAGED_BY, USER_LABEL
from astrago_trainer.core.render.job import HASH_ANNOTATION, TTL_ANNOTATION
from astrago_trainer.core.render.pods import GIT_CONTAINER, GIT_VOLUME, TF_CONTAINER
from astrago_trainer.core.render.runtime import NODE
from astrago_trainer.core.spec.rules import GIT_PATH, PROGRESS_VOLUME, SCRIPTS_PATH

Json = dict[str, Any]

_TRAINER: Path = ("spec", "trainer")
_GIT = {"GIT_SYNC_REPO": "url", "GIT_SYNC_BRANCH": "branch"}
_OWN_VARIABLES = {
    WORKING_DIR: "working_dir",
    "ASTRAGO_CHECKPOINT_DIR": "checkpoints",
    "ASTRAGO_RESUME_FROM": "resume_from",
}
"""What `render` tells its own scripts, and the fields it stands for."""
_WORKER_COUNTS = ("NUM_WORKERS", "PET_NNODES")
_MANAGER = "trainer.kubeflow.org/trainjob-controller"


def trainjob_to_job(
    trainjob: Mapping[str, Any],
    platform: Platform,
    frameworks: Mapping[str, Framework],
    beside: Sequence[Mapping[str, Any]] = (),
) -> Converted:
    """`frameworks` are those of the runtimes that are offered; `beside` are ConfigMaps of the same file.

    A ConfigMap that is mounted where the platform mounts code becomes the job's code. What the platform adds by
    itself, its scripts and the line that sources them, is left out.
    """
    manifest = Manifest(trainjob)
    problems: list[Problem] = []
    for name in ("apiVersion", "kind"):
        manifest.take(name)
    runtime = manifest.take("spec", "runtimeRef", "name")
    manifest.take("spec", "runtimeRef", "apiGroup")
    if manifest.see("spec", "runtimeRef", "kind") in (None, "ClusterTrainingRuntime"):
        manifest.take("spec", "runtimeRef", "kind")
    framework = frameworks.get(str(runtime))
    if framework is None:
        problems.append(
            lost(
                ("spec", "runtimeRef", "name"),
                f"there is no runtime {runtime!r} here; there are {', '.join(sorted(frameworks))}",
            )
        )
    if manifest.see("spec", "managedBy") == _MANAGER:
        manifest.take("spec", "managedBy")
    for index, each in manifest.entries(*_TRAINER, "env"):
        if each.get("name") == "ASTRAGO_ATTEMPT":
            manifest.take(*_TRAINER, "env", index)
    scripts = platform.scripts_for(str(runtime), framework)
    job: Json = {
        "name": manifest.take("metadata", "name"),
        "namespace": manifest.take("metadata", "namespace"),
        "framework": framework,
        "runtime": runtime,
        "image": manifest.take(*_TRAINER, "image"),
        "nodes": manifest.take(*_TRAINER, "numNodes"),
        "processes_per_node": manifest.take(*_TRAINER, "numProcPerNode"),
        "suspend": manifest.take("spec", "suspend") or None,
        "active_deadline_seconds": manifest.take("spec", "activeDeadlineSeconds"),
        "env": pods.variables(manifest, (*_TRAINER, "env"), problems),
        "resources": pods.resources(manifest, (*_TRAINER, "resourcesPerNode")),
        **pods.program(manifest, _TRAINER, problems, prelude(platform, str(runtime), scripts)),
        **pods.names(manifest, ("metadata",)),
    }
    for at in _pod_changes(manifest):
        _add(job, _changes(manifest, at, job))
    _leave_to_platform(job, scripts)
    _take_code(job, beside)
    if "command" not in job and "argv" not in job:
        problems.append(
            lost(
                (*_TRAINER, "command"),
                "a job says what it runs; the command of the image or the runtime is not known here",
                "Write it down.",
            )
        )
    return Converted(
        {name: value for name, value in job.items() if value not in (None, {}, [])},
        (*problems, *manifest.left()),
    )


def _pod_changes(manifest: Manifest) -> list[Path]:
    """The templates that are laid over pods of the training; those for other jobs stay unread."""
    found: list[Path] = []
    for index, _ in manifest.entries("spec", "podTemplateOverrides"):
        at: Path = ("spec", "podTemplateOverrides", index)
        targets = [target.get("name") for _, target in manifest.entries(*at, "targetJobs")]
        if NODE in targets and set(targets) <= {NODE, "launcher"}:
            manifest.take(*at, "targetJobs")
            found.append(at)
    for index, _ in manifest.entries("spec", "runtimePatches"):
        patch: Path = ("spec", "runtimePatches", index)
        manifest.take(*patch, "manager")
        manifest.take(*patch, "time")
        jobs: Path = (*patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
        for number, each in manifest.entries(*jobs):
            if each.get("name") == NODE:
                manifest.take(*jobs, number, "name")
                found.append((*jobs, number, "template", "spec", "template"))
    return found


def _changes(manifest: Manifest, at: Path, job: Json) -> Json:
    made = {**pods.names(manifest, (*at, "metadata")), **pods.placement(manifest, (*at, "spec"))}
    for index, each in manifest.entries(*at, "spec", "containers"):
        if each.get("name") == NODE:
            place: Path = (*at, "spec", "containers", index)
            manifest.take(*place, "name")
            mounts = (*place, "volumeMounts")
            for number, mount in manifest.entries(*mounts):
                if (mount.get("name"), mount.get("mountPath")) == (GIT_VOLUME, GIT_PATH):
                    manifest.take(*mounts, number)
            made["volumes"] = list(pods.volumes(manifest, (*at, "spec", "volumes"), mounts))
    for index, each in manifest.entries(*at, "spec", "initContainers"):
        place = (*at, "spec", "initContainers", index)
        values = {str(env.get("name")): env.get("value") for env in each.get("env") or ()}
        if each.get("name") == GIT_CONTAINER and values.keys() <= _GIT.keys() and values:
            manifest.take(*place)
            git = {_GIT[name]: value for name, value in values.items()}
            made["code"] = {"git": git}
        elif each.get("name") == TF_CONTAINER and _is_set_by_platform(values, job):
            manifest.take(*place)
    return made


def _is_set_by_platform(values: Mapping[str, Any], job: Json) -> bool:
    """The number of workers, which follows from the number of nodes."""
    return all(
        name in _WORKER_COUNTS and str(value) == str(job.get("nodes"))
        for name, value in values.items()
    )


def _add(job: Json, more: Json) -> None:
    for name, value in more.items():
        if isinstance(value, list):
            job[name] = [*(job.get(name) or ()), *value]
        else:
            job[name] = {**(job.get(name) or {}), **value}


def _leave_to_platform(job: Json, scripts: SystemScripts | None) -> None:
    annotations, labels = job.get("annotations", {}), job.get("labels", {})
    if TTL_ANNOTATION in annotations:
        ttl = annotations.pop(TTL_ANNOTATION)
        job["ttl_seconds"] = int(ttl) if ttl.isdecimal() else ttl
    annotations.pop(HASH_ANNOTATION, None)
    for name in (*MANAGED_BY, USER_LABEL):
        labels.pop(name, None)
    for each in list(job["env"]):
        field = _OWN_VARIABLES.get(each["name"])
        if field is not None and "value" in each:
            job[field] = each["value"]
        if field is not None or each["name"].startswith("KUBEFLOW_TRAINER_"):
            job["env"].remove(each)
    job["volumes"] = [each for each in job.get("volumes") or () if each["name"] != PROGRESS_VOLUME]
    if "command" in job:
        job["command"] = job["command"].removeprefix(f"{ENTER_FOLDER}\n").lstrip("\n")
    if job["framework"] == "tensorflow":
        job["env"] = [
            each
            for each in job["env"]
            if not _is_set_by_platform({each["name"]: each.get("value")}, job)
        ]
    if scripts is None:
        return
    job["volumes"] = [
        each for each in job.get("volumes") or () if each.get("config_map") != scripts.name
    ]


def _take_code(job: Json, beside: Sequence[Mapping[str, Any]]) -> None:
    """A ConfigMap of the same file that is mounted as code is the code."""
    texts = {each["metadata"]["name"]: each.get("data") or {} for each in beside}
    for volume in list(job.get("volumes") or ()):
        is_code = volume["mount_path"] == SCRIPTS_PATH and volume.get("config_map") in texts
        if is_code and "sub_path" not in volume:
            files = dict(texts[volume["config_map"]])
            job["volumes"].remove(volume)
            entrypoint = "train.py" if "train.py" in files or not files else sorted(files)[0]
            job["code"] = {"files": files, "entrypoint": entrypoint}
