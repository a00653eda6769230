"""Rules of a request that depend on the platform: ceilings, permissions, the Trainer's version."""

from __future__ import annotations

from collections.abc import Iterator

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import Platform
from astrago_trainer.core.quantity import Quantity
from astrago_trainer.core.spec.models import Amount, JobSpec
from astrago_trainer.core.spec.text import git_scheme, normal_path

_FINEST_CPU = -3
_FINEST_MEMORY = 0
"""Powers of ten below which Kubernetes would round."""

CHECKPOINTS_LOST = "checkpoints-go-with-the-pod"
"""True of a cluster; an engine that keeps such folders itself does not say it."""


def check_job_spec(spec: JobSpec, platform: Platform) -> tuple[Problem, ...]:
    """All that this platform refuses about `spec` (errors) or that will surprise (warnings)."""
    return (
        *_check_size(spec, platform),
        *_check_host_paths(spec, platform),
        *_check_git(spec, platform),
        *_check_trainer_version(spec, platform),
        *_check_processes(spec),
        *_check_shared_memory(spec),
        *_check_checkpoints(spec),
    )


def _check_size(spec: JobSpec, platform: Platform) -> Iterator[Problem]:
    for path, value, most in (
        ("nodes", spec.nodes, platform.max_nodes),
        ("resources.gpus", spec.resources.gpus, platform.max_gpus_per_node),
    ):
        if value > most:
            yield _too_much(path, str(value), str(most))
    amounts = [
        ("resources.cpu", spec.resources.cpu, platform.max_cpu_per_node, _FINEST_CPU),
        ("resources.memory", spec.resources.memory, platform.max_memory_per_node, _FINEST_MEMORY),
    ]
    if spec.launcher is not None:
        amounts += [
            ("launcher.cpu", spec.launcher.cpu, platform.max_cpu_per_node, _FINEST_CPU),
            ("launcher.memory", spec.launcher.memory, platform.max_memory_per_node, _FINEST_MEMORY),
        ]
    for path, amount, ceiling, finest in amounts:
        yield from _check_amount(path, amount, ceiling, finest)


def _check_amount(path: str, amount: Amount, ceiling: str, finest: int) -> Iterator[Problem]:
    for field, text in (("request", amount.request), ("limit", amount.limit)):
        if text is None:
            continue
        if Quantity.parse(text) > Quantity.parse(ceiling):
            yield _too_much(f"{path}.{field}", text, ceiling)
        if Quantity.parse(text).is_finer_than(finest):
            unit = "1m, a thousandth of a core" if finest else "one byte"
            yield Problem(
                f"{path}.{field}",
                "FieldValueInvalid",
                f"must be counted in steps of {unit}; found {text}.",
                "Round it up; did you mean a larger suffix?",
            )


def _too_much(path: str, found: str, most: str) -> Problem:
    return Problem(
        path,
        "FieldValueInvalid",
        f"must be at most {most} on this platform; found {found}.",
        "Ask for less, or ask the administrator to raise the ceiling.",
    )


def _check_host_paths(spec: JobSpec, platform: Platform) -> Iterator[Problem]:
    for index, volume in enumerate(spec.volumes):
        if volume.host_path is None:
            continue
        path = normal_path(volume.host_path)
        prefixes = [normal_path(prefix) for prefix in platform.allowed_host_paths]
        if any(path == prefix or path.startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes):
            continue
        yield Problem(
            f"volumes[{index}].host_path",
            "FieldValueForbidden",
            f"folders of the nodes are off limits here; found {path}.",
            f"Use a claim, or a path below {', '.join(prefixes)}." if prefixes else "Use a claim.",
        )


def _check_git(spec: JobSpec, platform: Platform) -> Iterator[Problem]:
    if spec.code is None or spec.code.git is None:
        return
    scheme = git_scheme(spec.code.git.url)
    if scheme not in platform.git_schemes:
        yield Problem(
            "code.git.url",
            "FieldValueNotSupported",
            f"must use {' or '.join(sorted(platform.git_schemes))}; found {scheme}.",
        )


def _check_trainer_version(spec: JobSpec, platform: Platform) -> Iterator[Problem]:
    version = platform.trainer_version
    if spec.active_deadline_seconds is not None and version == "2.1":
        yield Problem(
            "active_deadline_seconds",
            "FieldValueForbidden",
            "Trainer 2.1 has no deadline for a job; it came with 2.2.",
            "Leave it out, or stop the job by hand.",
        )
    if (
        isinstance(spec.processes_per_node, str)
        and version != "2.1"
        and spec.framework != "horovod"
    ):
        is_default = spec.processes_per_node == "auto"
        yield Problem(
            "processes_per_node",
            "FieldValueNotSupported",
            f"Trainer {version} takes a number only; found {spec.processes_per_node}.",
            "Leave it out: that is what it does then." if is_default else "Give the number.",
            severity="warning" if is_default else "error",
        )


def _check_checkpoints(spec: JobSpec) -> Iterator[Problem]:
    """A checkpoint is worth what is left of it when a pod goes, and every rank has to see it."""
    if spec.checkpoints is None:
        return
    folder = f"{normal_path(spec.checkpoints).rstrip('/')}/"
    around = [
        volume
        for volume in spec.volumes
        if folder.startswith(f"{normal_path(volume.mount_path).rstrip('/')}/")
    ]
    volume = max(around, key=lambda each: len(normal_path(each.mount_path)), default=None)
    if volume is None or volume.empty_dir is not None:
        found = "no volume is there" if volume is None else f"{volume.name} is an empty_dir"
        yield Problem(
            "checkpoints",
            CHECKPOINTS_LOST if volume is None else "FieldValueInvalid",
            f"{spec.checkpoints} goes with the pod, and other nodes do not see it: {found}.",
            "Mount a claim there.",
            severity="warning",
        )
    elif volume.read_only or volume.config_map is not None or volume.secret is not None:
        yield Problem(
            "checkpoints",
            "FieldValueInvalid",
            f"nothing can be written to {spec.checkpoints}: volume {volume.name} is read-only.",
            "Mount a claim there, without read_only.",
        )


def _check_processes(spec: JobSpec) -> Iterator[Problem]:
    if spec.framework == "horovod" and isinstance(spec.processes_per_node, str):
        yield Problem(
            "processes_per_node",
            "FieldValueNotSupported",
            f"must be a number for MPI; found {spec.processes_per_node}.",
            "Leave it out for one process per GPU.",
        )
    if spec.framework == "tensorflow" and spec.processes_per_node not in (None, 1):
        yield Problem(
            "processes_per_node",
            "FieldValueInvalid",
            "TensorFlow runs one process on each node, for all its GPUs; this is not used.",
            "Leave it out.",
            severity="warning",
        )


def _check_shared_memory(spec: JobSpec) -> Iterator[Problem]:
    limit = spec.resources.memory.limit
    if spec.shared_memory is None or limit is None:
        return
    if Quantity.parse(spec.shared_memory) > Quantity.parse(limit):
        yield Problem(
            "shared_memory",
            "FieldValueInvalid",
            f"counts as memory of the node: {spec.shared_memory} does not fit its limit {limit}.",
            "Raise the memory limit or lower shared_memory.",
            severity="warning",
        )
