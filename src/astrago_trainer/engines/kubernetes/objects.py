"""The fields of Kubernetes' objects that the engine looks at, and no others.

Decoded straight from the answer: what is not named here (managedFields, templates, volumes) is skipped by the decoder
and never becomes a Python object. `gc=False`, because none of them refers back: ten thousand of them cost the garbage
collector nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import Struct, field

from astrago_trainer.engines.kubernetes.resources import JOB_UID, JOBSET_NAME, SUSPENDED_BY_US


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


class LabelledMeta(Meta, frozen=True):
    """With labels that nobody has agreed on before."""

    labels: dict[str, str] = {}


class TrainJobLabels(_Part, frozen=True):
    job_uid: str = field(default="", name=JOB_UID)
    queue: str | None = field(default=None, name="kueue.x-k8s.io/queue-name")


class TrainJobMarks(_Part, frozen=True):
    suspended_by_us: str = field(default="", name=SUSPENDED_BY_US)


class TrainJobMeta(Meta, frozen=True):
    labels: TrainJobLabels = TrainJobLabels()
    annotations: TrainJobMarks = TrainJobMarks()


class MemberLabels(_Part, frozen=True):
    """What JobSet writes on its Jobs and their pods."""

    job_set: str = field(default="", name=JOBSET_NAME)
    group: str = field(default="", name="jobset.sigs.k8s.io/replicatedjob-name")
    """The replicated job: `node`, `launcher`."""
    job_index: str = field(default="0", name="jobset.sigs.k8s.io/job-index")
    attempt: str = field(default="0", name="jobset.sigs.k8s.io/restart-attempt")
    index: str = field(default="0", name="batch.kubernetes.io/job-completion-index")


class MemberMeta(Meta, frozen=True):
    labels: MemberLabels = MemberLabels()


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
    metadata: TrainJobMeta
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
    metadata: MemberMeta
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
    pod_ip: str = field(default="", name="podIP")


class Pod(_Part, frozen=True):
    metadata: MemberMeta
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
    metadata: LabelledMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class QuotaSpec(_Part, frozen=True):
    scopes: list[str] = []
    scope_selector: dict[str, Any] | None = None


class QuotaStatus(_Part, frozen=True):
    hard: dict[str, str] = {}
    used: dict[str, str] = {}


class ResourceQuota(_Part, frozen=True):
    metadata: Meta
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class ClusterRuntime(_Part, frozen=True):
    """Whole, because a preview needs all of it; there are few."""

    metadata: LabelledMeta
    spec: dict[str, Any] = {}


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
