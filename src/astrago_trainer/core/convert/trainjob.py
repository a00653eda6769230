"""A TrainJob as people write it for kubectl, to a job file; both dialects of changes to pods are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.core.convert import pods
from astrago_trainer.core.convert.code import take_code
from astrago_trainer.core.convert.converted import Converted, Manifest, Path, lost
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import SYSTEM_PATH, Framework, Platform, SystemScripts
from astrago_trainer.core.render.command import (
    CHECKPOINT_DIR,
    ENTER_FOLDER,
    MAKE_CHECKPOINTS,
    WORKING_DIR,
    prelude,
)
from astrago_trainer.core.render.configmaps import MANAGED_BY, USER_LABEL
from astrago_trainer.core.render.job import HASH_ANNOTATION, TTL_ANNOTATION
from astrago_trainer.core.render.pods import GIT_CONTAINER, GIT_VOLUME, TF_CONTAINER
from astrago_trainer.core.render.requirements import USE_PACKAGES
from astrago_trainer.core.render.runtime import NODE
from astrago_trainer.core.spec.rules import GIT_PATH, PROGRESS_VOLUME

Json = dict[str, Any]

_TRAINER: Path = ("spec", "trainer")
_GIT = {"GIT_SYNC_REPO": "url", "GIT_SYNC_BRANCH": "branch"}
_OWN_VARIABLES = {
    WORKING_DIR: "working_dir",
    CHECKPOINT_DIR: "checkpoints",
    "ASTRAGO_RESUME_FROM": "resume_from",
}
"""What `render` tells its own scripts, and the fields it stands for."""
_TF_PORT = "TF_PORT"
_WORKER_COUNTS = ("NUM_WORKERS", "PET_NNODES")
UPSTREAM_RUNTIMES: Mapping[str, Framework] = {
    "torch-distributed": "pytorch",
    "torch-distributed-with-cpu": "pytorch",
    "deepspeed-distributed": "pytorch",
}
"""Runtimes that come with Kubeflow Trainer, and that a runtime of the platform can stand in for."""
_MANAGER = "trainer.kubeflow.org/trainjob-controller"


def stand_in(runtime: str) -> Problem:
    """What is said of a job that names one of UPSTREAM_RUNTIMES."""
    return lost(
        ("spec", "runtimeRef", "name"),
        f"{runtime} is not one of the platform's runtimes; the job takes the one for "
        f"{UPSTREAM_RUNTIMES[runtime]}",
        severity="warning",
    )


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
    if framework is None and str(runtime) in UPSTREAM_RUNTIMES:
        framework = UPSTREAM_RUNTIMES[str(runtime)]
        problems.append(stand_in(str(runtime)))
        runtime = None
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
        **pods.program(
            manifest,
            _TRAINER,
            problems,
            (
                prelude(platform, str(runtime), scripts),
                *(f"source {SYSTEM_PATH}/{each.sourced}" for each in platform.system_scripts),
                USE_PACKAGES,
                MAKE_CHECKPOINTS,
                ENTER_FOLDER,
            ),
        ),
        **pods.names(manifest, ("metadata",)),
    }
    for at in _pod_changes(manifest):
        _add(job, _changes(manifest, at, job, problems))
    _leave_to_platform(job, scripts)
    own = {
        each.name for each in platform.system_scripts
    }  # the service brings these along by itself
    take_code(job, [each for each in beside if each["metadata"]["name"] not in own], problems)
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


def _changes(manifest: Manifest, at: Path, job: Json, problems: list[Problem]) -> Json:
    made: Json = {
        **pods.names(manifest, (*at, "metadata")),
        **pods.placement(manifest, (*at, "spec")),
    }
    git_paths: list[tuple[Path, str]] = []
    for index, each in manifest.entries(*at, "spec", "containers"):
        if each.get("name") == NODE:
            place: Path = (*at, "spec", "containers", index)
            manifest.take(*place, "name")
            mounts = (*place, "volumeMounts")
            for number, mount in manifest.entries(*mounts):
                if mount.get("name") == GIT_VOLUME and mount.keys() == {"name", "mountPath"}:
                    manifest.take(*mounts, number)
                    git_paths.append(((*mounts, number), str(mount["mountPath"])))
            made["volumes"] = list(pods.volumes(manifest, (*at, "spec", "volumes"), mounts))
    for index, each in manifest.entries(*at, "spec", "initContainers"):
        place = (*at, "spec", "initContainers", index)
        values = {str(env.get("name")): env.get("value") for env in each.get("env") or ()}
        if each.get("name") == GIT_CONTAINER and values.keys() <= _GIT.keys() and values:
            manifest.take(*place)
            git = {_GIT[name]: value for name, value in values.items() if value}
            if "url" in git:  # without an address nothing is cloned
                made["code"] = {"git": git}
        elif each.get("name") == TF_CONTAINER and _is_set_by_platform(
            {name: value for name, value in values.items() if name != _TF_PORT}, job
        ):
            manifest.take(*place)
            if _TF_PORT in values and all(each["name"] != _TF_PORT for each in job["env"]):
                made["env"] = [{"name": _TF_PORT, "value": str(values[_TF_PORT])}]
    for where, path in git_paths:
        _move_git(where, path, job, problems, has_code="code" in made)
    return made


def _move_git(
    where: Path, path: str, job: Json, problems: list[Problem], *, has_code: bool
) -> None:
    """The job's code lies at the platform's place, and the command starts there: `cd` to it is not needed."""
    if path == GIT_PATH:
        return
    command = job.get("command")
    if not has_code:
        why = f"no repository is named, so nothing would be at {path}; it is not mounted"
        problems.append(lost(where, why, severity="warning"))
        return
    if isinstance(command, str):
        first, newline, rest = command.partition("\n")
        if first.strip() in (f"cd {path}", f"cd -- {path}") and newline:
            command = job["command"] = rest
    texts = [command, *job.get("argv", ()), *(str(each.get("value")) for each in job["env"])]
    if any(re.search(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", str(each)) for each in texts):
        why = f"the code of a job lies at {GIT_PATH}, and something names {path}"
        problems.append(lost(where, why, f"Write {GIT_PATH}, or a path relative to it."))


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
