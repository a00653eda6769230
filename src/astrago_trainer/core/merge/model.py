"""The working state of one merge: what was read, and the pods taking shape.

`Job` and `CompiledRuntime` are what the controller would have in memory after reading both objects. `Plan` is the
template under construction: the phases change its dicts in place, which are copies, never the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.defaults import with_defaults
from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.merge.schema import Mismatch, check, settler, struct

Json = dict[str, Any]

GROUP = "trainer.kubeflow.org"
API_VERSION = f"{GROUP}/v1alpha1"
ANCESTOR_LABEL = f"{GROUP}/trainjob-ancestor-step"
TRAINER = "trainer"
NODE = "node"
LAUNCHER = "launcher"
DATASET_INITIALIZER = "dataset-initializer"
MODEL_INITIALIZER = "model-initializer"
PORT = 29500
COMPLETION_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"

VERSIONS = ("2.1", "2.2", "2.3")


class ControllerFailure(Exception):  # noqa: N818 - an outcome of the controller, not an error of ours
    """The controller's own code crashes or gives up on this input; the text says on what."""


class NotSupported(Exception):  # noqa: N818
    """The input uses a part of the operator that this preview does not reproduce."""


class CompiledRuntime(NamedTuple):
    """A runtime in the form the merge works on; it can be kept and used for any number of TrainJobs."""

    version: str
    kind: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    ml_policy: Json | None
    pod_group_policy: Json | None
    spec: Json
    problems: tuple[Problem, ...] = ()
    origins: Origins | None = None
    """Marks of what the API server filled in."""

    def policy(self, name: str) -> Json | None:
        """The block of one framework in `mlPolicy`, if it is there."""
        return None if self.ml_policy is None else self.ml_policy.get(name)


class Job(NamedTuple):
    """A TrainJob as the controller reads it: settled, but with empty lists kept apart from missing ones."""

    name: str
    namespace: str
    uid: str
    runtime_ref: Json
    trainer: Json | None
    initializer: Json | None
    overrides: list[Json]
    labels: Json
    annotations: Json
    suspend: bool | None
    problems: tuple[Problem, ...] = ()

    @property
    def command(self) -> list[str] | None:
        """`spec.trainer.command`; an empty list is not the same as none."""
        return None if self.trainer is None else self.trainer.get("command")


@dataclass(slots=True)
class PodSet:
    """The pods of one replicated job."""

    name: str
    ancestor: str | None
    count: int
    job: Json
    pod: Json
    template: Json
    rewritten: bool = False
    """Whether a patch was applied to it, which prints and reads the template once more."""

    def container(self, name: str) -> Json | None:
        """The first container of that name."""
        return next((c for c in self.pod.get("containers", ()) if c["name"] == name), None)


@dataclass(slots=True)
class Plan:
    """Everything the phases read and change."""

    version: str
    runtime: CompiledRuntime
    job: Job
    origins: Origins
    spec: Json
    pod_sets: list[PodSet]
    labels: Json
    annotations: Json
    pod_labels: Json = field(default_factory=dict)
    pod_annotations: Json = field(default_factory=dict)
    command: list[str] | None = None
    """The trainer's command once a plugin has lengthened it (torchtune)."""

    def trainer_set(self) -> PodSet | None:
        """The first pod set that `spec.trainer` is meant for."""
        return next((ps for ps in self.pod_sets if ps.ancestor == TRAINER), None)

    def named(self, name: str) -> PodSet | None:
        """The first pod set of that name."""
        return next((ps for ps in self.pod_sets if ps.name == name), None)

    def trainer_container(self) -> Json | None:
        """The container that the ML plugins and `spec.trainer` configure."""
        pods = self.trainer_set()
        return None if pods is None else pods.container(NODE)

    def endpoints(self, pods: PodSet) -> Iterator[str]:
        """The DNS names of the pods, in rank order."""
        network = self.spec.get("network", {})
        subdomain = network.get("subdomain", self.job.name)
        replicas = pods.job.get("replicas", 1) if self.version == "2.3" else 1
        for replica in range(replicas):
            for index in range(pods.count):
                yield f"{self.job.name}-{pods.name}-{replica}-{index}.{subdomain}"


def owner_reference(job: Job) -> Json:
    """What ties an object to its TrainJob."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def compile_runtime(
    runtime: Mapping[str, Any], version: str, *, defaults: bool = False
) -> CompiledRuntime:
    """The runtime in the form the merge works on; what does not fit the API types is told in `problems`.

    With `defaults` it is taken from a file rather than from a cluster, and the CRD's defaults are filled in.
    """
    if version not in VERSIONS:
        raise ValueError(f"Trainer {version!r} is not known; known are {', '.join(VERSIONS)}")
    try:
        settled = settler(f"struct:{GROUP_TYPES}.TrainingRuntimeSpec", version)(
            _given(runtime, "spec")
        )
        metadata = settler("struct:meta.v1.ObjectMeta", version)(_given(runtime, "metadata"))
    except Mismatch:
        problems = _misfits(runtime, "ClusterTrainingRuntime", version)
        return CompiledRuntime(version, "", "", "", {}, {}, None, None, {}, problems)
    origins = Origins() if defaults else None
    if origins is not None:
        settled = with_defaults(
            settled, f"struct:{GROUP_TYPES}.TrainingRuntimeSpec", version, origins
        )
    template = settled.get("template", {})
    template_metadata = template.get("metadata", {})
    return CompiledRuntime(
        version=version,
        kind="TrainingRuntime"
        if runtime.get("kind") == "TrainingRuntime"
        else "ClusterTrainingRuntime",
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        labels=template_metadata.get("labels", {}),
        annotations=template_metadata.get("annotations", {}),
        ml_policy=settled.get("mlPolicy"),
        pod_group_policy=settled.get("podGroupPolicy"),
        spec=template.get("spec", {}),
        origins=origins,
    )


def read_job(trainjob: Mapping[str, Any], version: str) -> Job:
    """The TrainJob as the controller reads it; what does not fit the API types is told in `problems`."""
    try:
        return _read_job(trainjob, version)
    except (Mismatch, AttributeError, TypeError):
        return Job(
            "", "", "", {}, None, None, [], {}, {}, None, _misfits(trainjob, "TrainJob", version)
        )


def _read_job(trainjob: Mapping[str, Any], version: str) -> Job:
    spec = _given(trainjob, "spec")
    metadata = settler("struct:meta.v1.ObjectMeta", version)(_given(trainjob, "metadata"))
    read = {
        name: settle(value)
        for name, settle in _spec_settlers(version).items()
        if (value := spec.get(name)) is not None
    }
    trainer = read.get("trainer")
    if trainer is not None:
        _keep_empty(spec["trainer"], trainer, ("command", "args"))
        if "resourcesPerNode" in trainer:
            amounts = spec["trainer"]["resourcesPerNode"]
            _keep_empty(amounts, trainer["resourcesPerNode"], ("limits", "requests"))
    return Job(
        name=metadata.get("name", ""),
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        runtime_ref=read.get("runtimeRef", {}),
        trainer=trainer,
        initializer=read.get("initializer"),
        overrides=read.get(OVERRIDES[version], []),
        labels=read.get("labels", {}),
        annotations=read.get("annotations", {}),
        suspend=read.get("suspend"),
    )


@cache
def _spec_settlers(version: str) -> dict[str, Callable[[Any], Any]]:
    """How each field of a TrainJob's spec is read; overrides are patches and read as such."""
    fields = struct(f"{GROUP_TYPES}.TrainJobSpec", version)
    patches = OVERRIDES[version]
    return {
        name: settler(field.kind, version, as_patch=name == patches)
        for name, field in fields.items()
    }


def _misfits(manifest: Mapping[str, Any], kind: str, version: str) -> tuple[Problem, ...]:
    problems, _ = check(manifest, f"struct:{GROUP_TYPES}.{kind}", version)
    return tuple(problems) or (
        Problem("", "FieldValueTypeInvalid", f"this does not fit the types of a {kind}."),
    )


def _given(manifest: Mapping[str, Any], name: str) -> Any:
    value = manifest.get(name)
    return {} if value is None else value


def _keep_empty(raw: Mapping[str, Any], settled: Json, names: tuple[str, ...]) -> None:
    """An empty list or mapping that was written down replaces what the runtime says, so it must not vanish."""
    for name in names:
        value = raw.get(name)
        if name not in settled and value is not None:
            settled[name] = value.copy()


GROUP_TYPES = "trainer.v1alpha1"
OVERRIDES = {
    "2.1": "podTemplateOverrides",
    "2.2": "runtimePatches",
    "2.3": "runtimePatches",
}
"""The field of a TrainJob that changes the runtime's template, by version."""


def override_origin(version: str, index: int) -> Origin:
    """The origin of everything the n-th override sets."""
    return Origin(f"override {index}", f"spec.{OVERRIDES[version]}[{index}]")
