"""Jobs of the Training Operator v1 (PyTorchJob, TFJob, MPIJob) to a job file.

They give each role a pod template of its own; here all nodes are alike. So the template of the first role is taken,
and where another one differs that is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from astrago_trainer.core.convert import pods
from astrago_trainer.core.convert.code import take_code
from astrago_trainer.core.convert.converted import Converted, Manifest, Path, lost
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.platform import Framework

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Kind:
    framework: Framework
    replicas: str
    """The field of `spec` with the roles."""
    roles: tuple[str, ...]
    """Those whose pods train, the one whose template is taken first."""
    container: str
    """The one that trains."""


_KINDS = {
    "PyTorchJob": _Kind("pytorch", "pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
    "TFJob": _Kind("tensorflow", "tfReplicaSpecs", ("Chief", "Master", "Worker"), "tensorflow"),
    "MPIJob": _Kind("horovod", "mpiReplicaSpecs", ("Worker",), "mpi"),
}
LEGACY_KINDS = frozenset(_KINDS)
_LAUNCHER = "Launcher"
_OPERATORS_OWN = ("pytorchjob-port", "tfjob-port")
"""Names of the port that v1 opens by itself; so does the Trainer."""


def legacy_to_job(
    manifest_: Mapping[str, Any], beside: Sequence[Mapping[str, Any]] = ()
) -> Converted:
    """The kind must be one of LEGACY_KINDS; `beside` are the ConfigMaps of the same file."""
    kind = _KINDS[manifest_["kind"]]
    manifest = Manifest(manifest_)
    problems: list[Problem] = []
    for name in ("apiVersion", "kind"):
        manifest.take(name)
    roles = [role for role in kind.roles if manifest.mapping("spec", kind.replicas, role)]
    made = [_role(manifest, ("spec", kind.replicas, role), kind, problems) for role in roles]
    job: Json = {
        "name": manifest.take("metadata", "name"),
        "namespace": manifest.take("metadata", "namespace"),
        "framework": kind.framework,
        "nodes": sum(each.pop("nodes") for each in made) or None,
        **pods.names(manifest, ("metadata",)),
        **(_merged(made[0], {}) if made else {}),
        **_run_policy(manifest, problems),
    }
    for role, other in zip(roles[1:], made[1:], strict=True):
        problems += _differences(("spec", kind.replicas, role), made[0], other, roles[0])
    if kind.framework == "horovod":
        _add_launcher(manifest, kind, job, problems)
    job["processes_per_node"] = _processes(manifest, kind)
    if "command" not in job and "argv" not in job:
        problems.append(
            lost(
                ("spec", kind.replicas, roles[0] if roles else kind.roles[0]),
                "a job says what it runs; the command of the image is not known here",
                "Write command into the job file.",
            )
        )
    take_code(job, beside, problems)
    return Converted(
        {name: value for name, value in job.items() if value not in (None, {}, [])},
        (*problems, *_softened(manifest.left())),
    )


def _role(manifest: Manifest, at: Path, kind: _Kind, problems: list[Problem]) -> Json:
    """What one role says, as fields of a job."""
    replicas = manifest.see(*at, "replicas")
    if replicas is None or isinstance(replicas, int):
        manifest.take(*at, "replicas")
    policy = manifest.take(*at, "restartPolicy")
    if policy in ("Always", "OnFailure", "ExitCode"):
        problems.append(
            lost(
                (*at, "restartPolicy"),
                f"{policy} restarts single pods; here all nodes start again together",
                "Set max_restarts.",
                "warning",
            )
        )
    spec: Path = (*at, "template", "spec")
    manifest.take(*spec, "restartPolicy")
    place = _container(manifest, spec, kind.container)
    made: Json = {
        "nodes": replicas if isinstance(replicas, int) else 1,
        **pods.names(manifest, (*at, "template", "metadata")),
        **pods.placement(manifest, spec),
    }
    if place is None:
        return made
    manifest.take(*place, "name")
    _take_ports(manifest, place)
    return {
        **made,
        "image": manifest.take(*place, "image"),
        "working_dir": manifest.take(*place, "workingDir"),
        **pods.program(manifest, place, problems),
        "env": pods.variables(manifest, (*place, "env"), problems),
        "resources": pods.resources(manifest, (*place, "resources")),
        "volumes": list(pods.volumes(manifest, (*spec, "volumes"), (*place, "volumeMounts"))),
    }


def _container(manifest: Manifest, spec: Path, name: str) -> Path | None:
    """The one of that name, else the first."""
    found = manifest.entries(*spec, "containers")
    named = [index for index, each in found if each.get("name") == name]
    if not found:
        return None
    return (*spec, "containers", (named or [found[0][0]])[0])


def _take_ports(manifest: Manifest, place: Path) -> None:
    for index, port in manifest.entries(*place, "ports"):
        if port.get("name") in _OPERATORS_OWN:
            manifest.take(*place, "ports", index)


def _merged(first: Json, base: Json) -> Json:
    return {**base, **{name: value for name, value in first.items() if value not in (None, {}, [])}}


def _differences(at: Path, first: Json, other: Json, taken: str) -> list[Problem]:
    """Fields in which a role is not like the one that is taken."""
    return [
        lost((*at, "template"), f"its {name} is not that of {taken}, which all nodes get")
        for name in sorted(first.keys() | other.keys())
        if (first.get(name) or None) != (other.get(name) or None)
    ]


def _run_policy(manifest: Manifest, problems: list[Problem]) -> Json:
    """Under `runPolicy`, or, in older versions, right in `spec`."""
    made: Json = {}
    for at in (("spec", "runPolicy"), ("spec",)):
        for theirs, ours in (
            ("ttlSecondsAfterFinished", "ttl_seconds"),
            ("activeDeadlineSeconds", "active_deadline_seconds"),
            ("backoffLimit", "max_restarts"),
            ("suspend", "suspend"),
        ):
            value = manifest.take(*at, theirs)
            if value not in (None, False):
                made.setdefault(ours, value)
        policy = manifest.take(*at, "cleanPodPolicy")
        if policy not in (None, "None"):
            problems.append(
                lost(
                    (*at, "cleanPodPolicy"),
                    f"{policy} removes pods when the job ends; here they end by themselves, and logs are kept",
                    severity="warning",
                )
            )
    return made


def _processes(manifest: Manifest, kind: _Kind) -> Any:
    field = "slotsPerWorker" if kind.framework == "horovod" else "nprocPerNode"
    value = manifest.take("spec", field)
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _add_launcher(manifest: Manifest, kind: _Kind, job: Json, problems: list[Problem]) -> None:
    """The launcher says what runs; its pod is small, and otherwise like the workers'."""
    if manifest.see("spec", "mpiImplementation") in (None, "OpenMPI"):
        manifest.take("spec", "mpiImplementation")
    at: Path = ("spec", kind.replicas, _LAUNCHER)
    if not manifest.see(*at):
        return
    launcher = _role(manifest, at, kind, problems)
    launcher.pop("nodes")
    own = launcher.pop("resources", {})
    job.pop("command", None)
    job.pop("argv", None)
    for name in ("command", "argv"):
        if name in launcher:
            job[name] = launcher.pop(name)
    if own:
        job["launcher"] = {name: own[name] for name in ("cpu", "memory") if name in own}
    shared = ("env", "volumes", "working_dir")
    for name in shared:  # a launcher often has these alone; the workers then get them too
        if not job.get(name):
            job[name] = launcher.get(name)
    workers = {name: job.get(name) for name in launcher}
    problems += _differences(at, workers, launcher, "Worker")


def _softened(left: list[Problem]) -> list[Problem]:
    """Of the platform's business, or of a scheduler's: the job trains without it."""
    soft = ("schedulingPolicy", "imagePullPolicy", "terminationGracePeriodSeconds", "].ports")
    return [
        Problem(each.path, each.code, each.message, each.remedy, "warning")
        if any(word in each.path for word in soft)
        else each
        for each in left
    ]
