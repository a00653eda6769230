"""The fields of Kubernetes' objects that the engine looks at, and no others.

Decoded straight from the answer: what is not named here (managedFields, templates, volumes) is skipped by the decoder
and never becomes a Python object. `gc=False`, because none of them refers back: ten thousand of them cost the garbage
collector nothing.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class _Part(Struct, rename="camel", gc=False, frozen=True):
    """What all have in common: the API's spelling."""


class Meta(_Part, frozen=True):
    name: str
    uid: str = ""
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    """When it has to be gone: its grace after it was deleted."""
    deletion_grace_period_seconds: int = 0
    labels: dict[str, str] = {}


class JobMeta(Meta, frozen=True):
    annotations: dict[str, str] = {}


class Condition(_Part, frozen=True):
    type: str
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None

    @property
    def is_true(self) -> bool:
        return self.status == "True"


class TrainJobSpec(_Part, frozen=True):
    suspend: bool = False


class Conditions(_Part, frozen=True):
    conditions: list[Condition] = []


class TrainJob(_Part, frozen=True):
    metadata: JobMeta
    spec: TrainJobSpec = TrainJobSpec()
    status: Conditions = Conditions()


class JobSpec(_Part, frozen=True):
    parallelism: int = 1


class JobTemplate(_Part, frozen=True):
    spec: JobSpec = JobSpec()


class DependsOn(_Part, frozen=True):
    name: str


class ReplicatedJob(_Part, frozen=True):
    name: str
    replicas: int = 1
    template: JobTemplate = JobTemplate()
    depends_on: list[DependsOn] = []


class FailurePolicy(_Part, frozen=True):
    max_restarts: int = 0


class JobSetSpec(_Part, frozen=True):
    replicated_jobs: list[ReplicatedJob] = []
    failure_policy: FailurePolicy | None = None


class JobSetStatus(_Part, frozen=True):
    conditions: list[Condition] = []
    restarts: int = 0


class JobSet(_Part, frozen=True):
    metadata: Meta
    spec: JobSetSpec = JobSetSpec()
    status: JobSetStatus = JobSetStatus()


class Job(_Part, frozen=True):
    metadata: Meta
    status: Conditions = Conditions()


class Waiting(_Part, frozen=True):
    reason: str = ""
    message: str = ""


class Running(_Part, frozen=True):
    started_at: datetime | None = None


class Terminated(_Part, frozen=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class State(_Part, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Part, frozen=True):
    name: str
    restart_count: int = 0
    state: State = State()
    last_state: State = State()


class Resources(_Part, frozen=True):
    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}


class Container(_Part, frozen=True):
    name: str
    image: str = ""
    resources: Resources = Resources()


class PodSpec(_Part, frozen=True):
    node_name: str = ""
    restart_policy: str = "Always"
    containers: list[Container] = []
    init_containers: list[Container] = []


class PodStatus(_Part, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(_Part, frozen=True):
    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Placed(_Part, frozen=True):
    """What a pod that is nobody's job takes of its node."""

    node_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []


class OtherPod(_Part, frozen=True):
    metadata: Meta
    spec: Placed = Placed()


class Taint(_Part, frozen=True):
    key: str
    value: str = ""
    effect: str = ""


class NodeSpec(_Part, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeSystem(_Part, frozen=True):
    architecture: str = ""
    os_image: str = ""


class NodeStatus(_Part, frozen=True):
    capacity: dict[str, str | int] = {}
    allocatable: dict[str, str | int] = {}
    conditions: list[Condition] = []
    node_info: NodeSystem = NodeSystem()


class Node(_Part, frozen=True):
    metadata: Meta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class About(_Part, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""


class Series(_Part, frozen=True):
    last_observed_time: datetime | None = None


class ClusterEvent(_Part, frozen=True):
    metadata: Meta
    involved_object: About = About()
    reason: str = ""
    message: str = ""
    type: str = ""
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    series: Series | None = None

    @property
    def time(self) -> datetime | None:
        """When it was last seen; which of the fields is set depends on who wrote it."""
        newest = self.series.last_observed_time if self.series is not None else None
        return newest or self.last_timestamp or self.event_time or self.metadata.creation_timestamp
