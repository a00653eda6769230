"""What can be seen only with the runtime at hand: clashes, limits of Trainer, things it lacks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.names import MAX_JOB_NAME, max_trainjob_name
from astrago_trainer.core.platform import SYSTEM_PATH, Platform, SystemScripts, TrainerVersion
from astrago_trainer.core.render.pods import GIT_CONTAINER
from astrago_trainer.core.render.runtime import NODE, RuntimeView
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.core.spec.text import MAX_ARGUMENT_BYTES, byte_length, normal_path

Json = dict[str, Any]

MAX_OBJECT_BYTES = 1_000_000
"""etcd takes 1.5 MiB; the API server adds its own record of who set each field."""


def check_rendered(
    spec: JobSpec,
    runtime: RuntimeView,
    platform: Platform,
    *,
    trainjob: Json,
    is_own: bool,
    starts_processes: bool,
    scripts: SystemScripts | None,
) -> tuple[Problem, ...]:
    """Errors and warnings about this request on this runtime."""
    return (
        *_check_runtime(spec, runtime, is_own=is_own),
        *_check_processes(spec, runtime, starts_processes=starts_processes),
        *_check_name(spec, runtime, trainjob["metadata"]["name"]),
        *_check_git(spec, runtime, platform),
        *_check_volumes(spec, runtime, scripts),
        *_check_launcher(spec, runtime),
        *_check_gpus(spec, runtime, platform.trainer_version, trainjob),
        *_check_sizes(spec, platform, trainjob),
    )


def _check_runtime(spec: JobSpec, runtime: RuntimeView, *, is_own: bool) -> Iterator[Problem]:
    if not any(job.ancestor == "trainer" and job.container(NODE) for job in runtime.jobs):
        yield Problem(
            "runtime",
            "FieldValueInvalid",
            f"{runtime.name} has no trainer step with a container called {NODE}: the job's image, "
            "command and nodes would be ignored.",
            "Take another runtime.",
        )
    if spec.framework == "horovod" and runtime.policy != "mpi":
        yield Problem(
            "runtime",
            "FieldValueInvalid",
            f"horovod needs a runtime with an MPI policy; {runtime.name} has none.",
            "Take an MPI runtime, such as horovod-runtime.",
        )
    if spec.framework == "pytorch" and runtime.policy == "plain":
        yield Problem(
            "runtime",
            "FieldValueInvalid",
            f"{runtime.name} has no torch policy, so nodes are not told their rank.",
            "Take a runtime for PyTorch.",
            severity="warning",
        )
    if is_own and runtime.name.startswith("torchtune-"):
        yield Problem(
            "max_restarts",
            "FieldValueForbidden",
            f"Trainer reads the model from the name {runtime.name}, so a job cannot have its own "
            "copy of this runtime.",
            "Leave max_restarts out.",
        )


def _check_processes(
    spec: JobSpec, runtime: RuntimeView, *, starts_processes: bool
) -> Iterator[Problem]:
    wanted = spec.processes_per_node
    if runtime.policy == "torch" and wanted not in (None, 1) and not starts_processes:
        yield Problem(
            "processes_per_node",
            "FieldValueInvalid",
            f"the command starts one process on each node; {wanted} would be claimed.",
            "Start the script with torchrun, or leave the number out.",
            severity="warning",
        )


def _check_name(spec: JobSpec, runtime: RuntimeView, name: str) -> Iterator[Problem]:
    limit = min(MAX_JOB_NAME, max_trainjob_name(runtime.pods(spec.nodes)))
    if len(name) > limit:
        yield Problem(
            "name",
            "FieldValueTooLong",
            f"must have at most {limit} characters with {spec.nodes} nodes on {runtime.name}, for "
            f"the names of its pods; found {len(name)}: {name!r}.",
            "Take a shorter name.",
        )


def _check_git(spec: JobSpec, runtime: RuntimeView, platform: Platform) -> Iterator[Problem]:
    if spec.code is None or spec.code.git is None:
        return
    if any(job.container(GIT_CONTAINER, kind="initContainers") for job in runtime.training_jobs):
        return
    able = platform.git_runtimes.get(spec.framework)
    yield Problem(
        "code.git",
        "FieldValueForbidden",
        f"{runtime.name} has no init container {GIT_CONTAINER} that would fetch the code.",
        f"Take the runtime {able}." if able else "Post the code as files.",
    )


def _check_volumes(
    spec: JobSpec, runtime: RuntimeView, scripts: SystemScripts | None
) -> Iterator[Problem]:
    """A volume laid over another would keep both sources, and Kubernetes refuses that."""
    names, paths = _taken(runtime, scripts)
    for index, volume in enumerate(spec.volumes):
        path = normal_path(volume.mount_path)
        if volume.name in names:
            yield Problem(
                f"volumes[{index}].name",
                "FieldValueDuplicate",
                f"{names[volume.name]} has a volume {volume.name!r} already.",
                "Take another name.",
            )
        if path in paths:
            yield Problem(
                f"volumes[{index}].mount_path",
                "FieldValueDuplicate",
                f"{paths[path]} uses {path} already.",
                "Mount it somewhere else.",
            )


def _taken(
    runtime: RuntimeView, scripts: SystemScripts | None
) -> tuple[dict[str, str], dict[str, str]]:
    """Names and mount paths of volumes that are not the user's, with who has them."""
    names, paths = {"kubeflow-trainer-token": "Trainer"}, {}
    if runtime.policy == "mpi":
        names |= {"mpi-ssh-auth": "Trainer", "mpi-hostfile": "Trainer"}
        paths["/etc/mpi"] = "Trainer"
    if scripts is not None:
        names[scripts.volume], paths[SYSTEM_PATH] = "the platform", "the platform"
    for job in runtime.training_jobs:
        names |= dict.fromkeys(job.volume_names(), runtime.name)
        paths |= {normal_path(path): runtime.name for path in job.mounts()}
    return names, paths


def _check_launcher(spec: JobSpec, runtime: RuntimeView) -> Iterator[Problem]:
    if runtime.policy != "mpi" or not runtime.has_launcher_as_node:
        return
    if spec.nodes == 1:
        yield Problem(
            "nodes",
            "FieldValueInvalid",
            f"{runtime.name} always has a worker beside the launcher: 1 node gives two pods.",
            "Ask for 2 nodes to make that plain.",
            severity="warning",
        )
    if spec.launcher is not None:
        yield Problem(
            "launcher",
            "FieldValueInvalid",
            f"{runtime.name} runs the launcher as one of the nodes; it gets a node's resources.",
            "Leave it out.",
            severity="warning",
        )


def _check_gpus(
    spec: JobSpec, runtime: RuntimeView, version: TrainerVersion, trainjob: Json
) -> Iterator[Problem]:
    """Trainer 2.3 keeps what the job does not set; before, setting one replaced all."""
    replaces = "resourcesPerNode" in trainjob["spec"]["trainer"] and version != "2.3"
    if spec.resources.gpus or replaces:
        return
    for job in runtime.training_jobs:
        limits = ((job.container(NODE) or {}).get("resources") or {}).get("limits") or {}
        found = sorted(name for name in limits if "gpu" in name.lower())
        if found:
            yield Problem(
                "resources.gpus",
                "FieldValueInvalid",
                f"{runtime.name} asks for {found[0]} itself; 0 does not take that back.",
                "Take a runtime without GPUs.",
                severity="warning",
            )
            return


def _check_sizes(spec: JobSpec, platform: Platform, trainjob: Json) -> Iterator[Problem]:
    trainer, version = trainjob["spec"]["trainer"], platform.trainer_version
    script = trainer["command"][2]
    if byte_length(script) > MAX_ARGUMENT_BYTES:
        yield _too_long("command", f"{MAX_ARGUMENT_BYTES} bytes", f"{byte_length(script)}")
    elif version == "2.2" and len(script) > 65_536:
        yield _too_long("command", "65536 characters (Trainer 2.2)", f"{len(script)}")
    arguments = trainer.get("args", ())
    field = "argv" if spec.argv else "args"
    if version != "2.1" and len(arguments) > 128:
        yield _too_long(field, f"127 entries (Trainer {version})", f"{len(arguments) - 1}")
    if version == "2.2" and any(len(argument) > 65_536 for argument in arguments):
        yield _too_long(field, "65536 characters each (Trainer 2.2)", "a longer one")
    variables = trainer.get("env", ())
    if version != "2.1" and len(variables) > 128:
        most = 128 - (len(variables) - len(spec.env))
        yield _too_long("env", f"{most} entries (Trainer {version})", f"{len(spec.env)}")
    size = byte_length(json.dumps(trainjob, ensure_ascii=False))
    if size > MAX_OBJECT_BYTES:
        yield _too_long("", f"{MAX_OBJECT_BYTES} bytes as a TrainJob", f"{size}")


def _too_long(path: str, most: str, found: str) -> Problem:
    return Problem(
        path,
        "FieldValueTooLong",
        f"must have at most {most}, with what the platform adds; found {found}.",
        "Move the text into the code, a ConfigMap or a volume.",
    )
