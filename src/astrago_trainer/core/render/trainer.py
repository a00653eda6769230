"""The `spec.trainer` of a TrainJob: image, nodes, processes, command, variables, resources."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.platform import PLATFORM, Platform
from astrago_trainer.core.render.command import (
    CHECKPOINT_DIR,
    WORKING_DIR,
    Command,
    literal,
    working_dir,
)
from astrago_trainer.core.render.draft import Draft, Path
from astrago_trainer.core.render.pods import tensorflow_variables
from astrago_trainer.core.render.reporting import status_variables
from astrago_trainer.core.render.resources import resources_of
from astrago_trainer.core.render.runtime import NODE, RuntimeView, objects_in
from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]

RESTART_LABEL = "jobset.sigs.k8s.io/restart-attempt"
"""Of every pod: how often the whole group has started before."""

_TRAINER: Path = ("spec", "trainer")


def put_trainer(
    draft: Draft, spec: JobSpec, view: RuntimeView, platform: Platform, *, command: Command
) -> None:
    """Fill in what reaches the container `node` of the trainer step."""
    container = _trainer_container(view)
    image = image_of(spec, view, platform)
    if image is not None:
        draft.put((*_TRAINER, "image"), image, "image" if spec.image is not None else "")
    draft.put((*_TRAINER, "numNodes"), spec.nodes, "nodes")
    processes = _processes(spec, view, platform, command)
    if processes is not None:
        source = "processes_per_node" if processes == spec.processes_per_node else ""
        draft.put((*_TRAINER, "numProcPerNode"), processes, source)
    _put_env(draft, spec, view, container)
    _put_reporting(draft, spec, platform)
    _put_command(draft, spec, container, command)
    _put_resources(draft, spec, view, container)


def image_of(spec: JobSpec, view: RuntimeView, platform: Platform) -> str | None:
    """The platform's image belongs to its default runtime; other runtimes bring their own."""
    if spec.image is not None or view.name != platform.default_runtimes[spec.framework]:
        return spec.image
    return platform.default_images.get(spec.framework)


def _processes(
    spec: JobSpec, view: RuntimeView, platform: Platform, command: Command
) -> int | str | None:
    """Plain python is one process, and PET_NPROC_PER_NODE must not claim more (X7)."""
    wanted = spec.processes_per_node
    if view.policy == "mpi":
        return wanted if isinstance(wanted, int) else max(spec.resources.gpus, 1)
    if view.policy == "plain":
        return None
    if isinstance(wanted, str):
        return wanted if platform.trainer_version == "2.1" else None
    return wanted if wanted is not None or command.starts_processes else 1


def _trainer_container(view: RuntimeView) -> Json:
    for job in view.training_jobs:
        if job.ancestor == "trainer":
            return job.container(NODE) or {}
    return {}


def _put_resources(draft: Draft, spec: JobSpec, view: RuntimeView, container: Json) -> None:
    found = container.get("resources")
    base = found if isinstance(found, dict) else {}
    if view.policy != "mpi" or view.has_launcher_as_node:
        resources = resources_of(spec.resources, "resources", base)
    elif spec.launcher is not None:  # the trainer step is the launcher; workers: see `owned`
        resources = resources_of(spec.launcher, "launcher", base)
    else:
        return
    draft.graft((*_TRAINER, "resourcesPerNode"), resources)


def _put_command(draft: Draft, spec: JobSpec, container: Json, command: Command) -> None:
    names = _variables(spec, container)
    script = literal(command.script, names)
    draft.put((*_TRAINER, "command"), ["bash", "-c"])
    draft.put((*_TRAINER, "command", 2), script, command.source)
    if command.arguments:
        draft.put((*_TRAINER, "args", 0), "bash")
        field = "argv" if spec.argv else "args"
        for index, argument in enumerate(command.arguments):
            text = literal(argument, names)
            draft.put((*_TRAINER, "args", index + 1), text, f"{field}[{index}]")
    elif container.get("args"):
        draft.put((*_TRAINER, "args"), [])  # or the runtime's would stay (trap 12)


def _put_env(draft: Draft, spec: JobSpec, view: RuntimeView, container: Json) -> None:
    """User variables first, then the platform's (M20, X5, X6)."""
    names = _variables(spec, container)
    place: Path = (*_TRAINER, "env")
    for index, env in enumerate(spec.env):
        entry: Path = (*place, index)
        draft.put((*entry, "name"), env.name, f"env[{index}].name")
        if env.value is not None:
            draft.put((*entry, "value"), literal(env.value, names), f"env[{index}].value")
        for field, kind, ref in (
            ("secret", "secretKeyRef", env.secret),
            ("config_map", "configMapKeyRef", env.config_map),
        ):
            if ref is not None:
                found = {"name": ref.name, "key": ref.key}
                draft.put((*entry, "valueFrom", kind), found, f"env[{index}].{field}")
    own: list[tuple[str, str, str]] = []
    if spec.framework == "tensorflow" and view.policy != "torch":
        own += [(name, value, "nodes") for name, value in tensorflow_variables(spec).items()]
    folder = working_dir(spec)
    if folder is not None:
        source = "working_dir" if spec.working_dir is not None else ""
        own.append((WORKING_DIR, literal(folder, names), source))
    for name, path, source in (
        (CHECKPOINT_DIR, spec.checkpoints, "checkpoints"),
        ("ASTRAGO_RESUME_FROM", spec.resume_from, "resume_from"),
    ):
        if path is not None:
            own.append((name, literal(path, names), source))
    for name, value, source in own:
        draft.put((*place, draft.count(place)), {"name": name, "value": value}, source)
    if spec.checkpoints is not None:
        # Which attempt saved a checkpoint is told in it; the launcher counts restarts by it.
        reference = {"fieldPath": f"metadata.labels['{RESTART_LABEL}']"}
        attempt = {"name": "ASTRAGO_ATTEMPT", "valueFrom": {"fieldRef": reference}}
        draft.put((*place, draft.count(place)), attempt, "checkpoints")


def _put_reporting(draft: Draft, spec: JobSpec, platform: Platform) -> None:
    """The Trainer's own variables, so that transformers and the Kubeflow SDK report to us unchanged."""
    if not platform.progress_server:
        return
    place: Path = (*_TRAINER, "env")
    variables = status_variables(
        platform.progress_server,
        spec.namespace,
        draft.value["metadata"]["name"],
        ca_file=platform.progress_ca_file,
    )
    for name, value in variables.items():
        draft.put((*place, draft.count(place)), {"name": name, "value": value}, PLATFORM)


def _variables(spec: JobSpec, container: Json) -> set[str]:
    """Names Kubernetes would expand; those of the platform and of Trainer are all in capitals."""
    own = {str(each.get("name")) for each in objects_in(container, "env")}
    return own | {env.name for env in spec.env}
