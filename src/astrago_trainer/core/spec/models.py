"""JobSpec: what a user asks for, in the user's words.

Frozen, and unknown fields are refused: a typo must not start a job without its volumes. One
description per field feeds OpenAPI, the command line, the form and the documents. What needs the
platform or a runtime is checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from astrago_trainer.core.platform import Framework
from astrago_trainer.core.spec import rules
from astrago_trainer.core.spec.base import Model, Rules
from astrago_trainer.core.spec.text import (
    AbsolutePath,
    Argument,
    Branch,
    BytesText,
    Count,
    DataKey,
    Entrypoint,
    EnvName,
    GitUrl,
    Image,
    JobName,
    LabelKey,
    LabelValue,
    MountPath,
    Namespace,
    ObjectName,
    PositiveQuantityText,
    Processes,
    RelativePath,
    Requirement,
    ShellText,
    Text,
    UserId,
    VolumeName,
    requirement_lines,
)


class Amount(Model):
    """How much of one resource a node gets. A bare number or text stands for the limit."""

    request: PositiveQuantityText | None = Field(
        None, description="What is reserved on the node. Equals the limit when left out."
    )
    limit: PositiveQuantityText | None = Field(
        None, description="What is never exceeded. Without it the node's free rest may be used."
    )

    RULES: ClassVar[Rules] = rules.AMOUNT

    @model_validator(mode="before")
    @classmethod
    def _bare_value_is_the_limit(cls, value: Any) -> Any:
        return value if isinstance(value, Mapping | Amount) else {"limit": value}


class LauncherResources(Model):
    """Resources of the pod that starts an MPI job."""

    cpu: Amount = Field(Amount(), description="CPU cores of the launcher.")
    memory: Amount = Field(Amount(), description="Memory of the launcher.")


class Resources(Model):
    """Resources of each node."""

    cpu: Amount = Field(Amount(), description="CPU cores per node, for example 4 or 500m.")
    memory: Amount = Field(Amount(), description="Memory per node, for example 16Gi.")
    gpus: Annotated[Count, Field(ge=0, le=1024)] = Field(
        0, description="GPUs per node; 0 asks for none."
    )
    gpu_resource: LabelKey = Field(
        "nvidia.com/gpu", description="The resource that the cluster counts GPUs by."
    )


class KeyRef(Model):
    """One entry of a Secret or ConfigMap in the job's namespace."""

    name: ObjectName = Field(description="Name of the Secret or ConfigMap.")
    key: DataKey = Field(description="Key of the entry.")


class EnvVar(Model):
    """An environment variable: exactly one of value, secret and config_map."""

    name: EnvName = Field(description="Name of the variable.")
    value: Text | None = Field(
        None, description="Its value, taken as it is: nothing in it is expanded."
    )
    secret: KeyRef | None = Field(None, description="Take the value from this Secret.")
    config_map: KeyRef | None = Field(None, description="Take the value from this ConfigMap.")

    RULES: ClassVar[Rules] = rules.ENV_VAR


class EmptyDir(Model):
    """Scratch space that goes with the pod."""

    medium: Literal["", "Memory"] = Field("", description="Memory keeps it in RAM.")
    size: BytesText | None = Field(None, description="At most this much, e.g. 10Gi.")


class Volume(Model):
    """A volume of one kind (claim, empty_dir, config_map, secret, host_path) and its place."""

    name: VolumeName = Field(description="Name of the volume inside the pod.")
    mount_path: MountPath = Field(description="Where the training sees it, for example /data.")
    read_only: bool = Field(False, strict=True, description="Mount it so that nothing is written.")
    sub_path: RelativePath | None = Field(
        None, description="Mount only this folder or file of the volume."
    )
    claim: ObjectName | None = Field(None, description="A PersistentVolumeClaim by name.")
    empty_dir: EmptyDir | None = Field(None, description="Scratch space.")
    config_map: ObjectName | None = Field(None, description="A ConfigMap by name.")
    secret: ObjectName | None = Field(None, description="A Secret by name.")
    host_path: AbsolutePath | None = Field(
        None, description="A folder of the node; refused unless the administrator allows it."
    )

    RULES: ClassVar[Rules] = rules.VOLUME


class GitSource(Model):
    """Code that an init container clones."""

    url: GitUrl = Field(description="Address of the repository, https or ssh.")
    branch: Branch | None = Field(
        None, description="Branch or tag; the repository's default branch when left out."
    )


class Code(Model):
    """The user's code: exactly one of inline, files and git."""

    inline: Text | None = Field(None, description="One script, as text.")
    files: dict[RelativePath, Text] | None = Field(
        None, description="Several files: relative path -> text."
    )
    git: GitSource | None = Field(None, description="A git repository.")
    entrypoint: Entrypoint = Field(
        "train.py", description="The file to run when the request has no command."
    )

    RULES: ClassVar[Rules] = rules.CODE


class Toleration(Model):
    """Lets pods onto nodes with a taint."""

    key: LabelKey = Field(description="Key of the taint, for example nvidia.com/gpu.")
    operator: Literal["Exists", "Equal"] = Field(
        "Exists", description="Exists: any value of the taint; Equal: only this value."
    )
    value: LabelValue | None = Field(None, description="Value of the taint, with Equal.")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        None, description="Effect of the taint; all effects when left out."
    )
    seconds: Annotated[Count, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="With NoExecute: how long a pod may stay."
    )

    RULES: ClassVar[Rules] = rules.TOLERATION


class JobSpec(Model):
    """What a user asks for: one distributed training run."""

    name: JobName | None = Field(
        None, description="Name of the job; made from user and time when left out."
    )
    user: UserId = Field(description="Who asks; begins the names of the job's objects.")
    namespace: Namespace = Field(description="The user's namespace.")
    framework: Framework = Field(description="pytorch, tensorflow or horovod (MPI).")
    runtime: ObjectName | None = Field(
        None, description="Training runtime; the framework's default when left out."
    )
    image: Image | None = Field(
        None, description="Container image; the platform's or the runtime's when left out."
    )
    nodes: Annotated[Count, Field(ge=1, le=2**31 - 1)] = Field(
        1, description="How many nodes (pods) train together."
    )
    processes_per_node: Processes | None = Field(
        None,
        description="Processes on each node: a number, or auto, cpu, gpu (Trainer 2.1). Left out: "
        "one for plain python; torchrun decides for itself.",
    )
    resources: Resources = Field(Resources(), description="CPU, memory and GPUs of each node.")
    launcher: LauncherResources | None = Field(
        None, description="CPU and memory of the launcher; horovod only."
    )
    shared_memory: BytesText | None = Field(
        None, description="Size of /dev/shm, e.g. 8Gi, for data loaders; counts as memory."
    )
    env: tuple[EnvVar, ...] = Field((), description="Environment variables of the training.")
    volumes: tuple[Volume, ...] = Field((), description="Volumes for data, models, scratch.")
    code: Code | None = Field(
        None, description="The code to run; left out when the image holds it."
    )
    command: ShellText | None = Field(
        None, description="Shell text, run as it is; the posted script is run when left out."
    )
    argv: tuple[Argument, ...] = Field(
        (), description="Program and arguments, run without a shell; instead of command."
    )
    args: tuple[Argument, ...] = Field(
        (), description="Arguments of the posted script, when there is no command or argv."
    )
    requirements: Annotated[
        tuple[Requirement, ...], BeforeValidator(requirement_lines), Field(max_length=500)
    ] = Field(
        (),
        description="Python packages to install before the training: a list, or the content of a requirements file.",
        json_schema_extra={"examples": [["numpy>=2", "einops"]]},
    )
    working_dir: AbsolutePath | None = Field(
        None, description="Folder to run in; /workspace/code for code from git, else the image's."
    )
    checkpoints: MountPath | None = Field(
        None,
        description="Folder for checkpoints, on a volume that all nodes share; the code finds it as "
        "ASTRAGO_CHECKPOINT_DIR.",
    )
    resume_from: AbsolutePath | None = Field(
        None,
        description="A checkpoint, or a folder with checkpoints, of an earlier job to begin with; "
        "the code finds it as ASTRAGO_RESUME_FROM.",
    )
    max_restarts: Annotated[Count, Field(ge=0, le=10_000)] | None = Field(
        None, description="How often all nodes start again after a failure; else the runtime's."
    )
    ttl_seconds: Annotated[Count, Field(ge=0, le=2**31 - 1)] | None = Field(
        None, description="Remove the job this long after its end; the platform's time if left out."
    )
    active_deadline_seconds: Annotated[Count, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="End the job after this time, waiting included (Trainer 2.2 and later)."
    )
    node_selector: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels a node must have."
    )
    tolerations: tuple[Toleration, ...] = Field((), description="Taints the pods may meet.")
    labels: dict[LabelKey, LabelValue] = Field(
        default_factory=dict, description="Labels of the job and its pods."
    )
    annotations: dict[LabelKey, Text] = Field(
        default_factory=dict, description="Annotations of the job and its pods."
    )
    suspend: bool = Field(False, strict=True, description="Create it stopped; resume starts it.")

    RULES: ClassVar[Rules] = rules.JOB
