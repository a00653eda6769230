"""What every engine can do, whoever asks: apply, observe, stop.

An engine runs *effective objects*: what `core.preview` shows is what it is given. Every method may be called again
after a crash of the caller; a failed training is an observation with a reason, never an exception. What an engine
cannot do it does not declare, and nobody calls it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.core.lifecycle import Phase

Json = Mapping[str, Any]


class Ability(StrEnum):
    """What not every engine has; asked before the call."""

    SUSPEND = "suspend"
    NODES = "nodes"
    """`ListsNodes`."""
    NAMESPACES = "namespaces"
    """`MakesNamespaces`: a tenant needs something outside the database before its first job."""
    QUOTA = "quota"
    """`CountsQuota`: a namespace has ceilings, and somebody counts what is used of them."""


@dataclass(frozen=True, slots=True)
class Handle:
    """Names a job for an engine, for good. Plain data: it is stored as JSON and outlives every process."""

    namespace: str
    name: str
    uid: str
    """Of this job alone: a later job of the same name has another one, and is never taken for this one."""


@dataclass(frozen=True, slots=True)
class Effective:
    """What is to run."""

    job_set: Json
    """With its defaults, as the preview shows it."""
    objects: tuple[Json, ...] = ()
    """What was rendered: ConfigMaps and Secrets that its pods refer to, a runtime of its own, the TrainJob.

    A cluster is given these and makes the JobSet itself; on one machine the JobSet is run, and only what pods refer to
    is looked up here.
    """
    suspend: bool = False
    deadline_seconds: int | None = None
    beside: tuple[Json, ...] = ()
    """What the operator makes beside the JobSet: host file and keys of an MPI job. A cluster's makes them itself."""


class PodPhase(StrEnum):
    PENDING = "Pending"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of the current attempt."""

    name: str
    job: str
    """Its replicated job: `node`, `launcher`."""
    index: int
    phase: PodPhase
    restarts: int = 0
    """Of containers in place."""
    exit_code: int | None = None
    """Of the first container that failed, else 0 when all ended; 128 + n for a signal."""
    reason: str = ""
    node: str | None = None
    """The machine it was given; None before that."""
    address: str | None = None
    """Where the other pods reach it; None before it has one."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job, in the order it happened."""

    number: int
    time: float
    """Seconds since 1970."""
    reason: str
    """A word for programs, as Kubernetes has them: `Started`, `BackoffLimitExceeded`."""
    message: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How an earlier attempt ended."""

    attempt: int
    time: float
    """Seconds since 1970."""
    reason: str
    message: str
    phase: Phase = Phase.FAILED
    """`Suspended` where people ended it."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What an engine sees of a job now."""

    phase: Phase | None
    """None when the engine has no such job: it never had, or it is gone."""
    reason: str = ""
    message: str = ""
    attempt: int = 0
    restarts: int = 0
    """After failures: an attempt that began because people resumed the job is none of them."""
    max_restarts: int = 0
    started_at: float | None = None
    ended_at: float | None = None
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = field(default=(), repr=False)
    ended: tuple[Ended, ...] = ()
    """The newest attempts before this one, in their order: whoever looks late learns here why there is another."""

    @property
    def is_gone(self) -> bool:
        return self.phase is None


GONE = Observation(None)

SQUEEZED = "Squeezed"
"""The reason of a job that runs with less than it asked for."""
TOO_LARGE = "TooLarge"
ENVIRONMENT_FAILED = "EnvironmentFailed"
"""The environment of the job could not be installed."""
REQUIREMENTS_FAILED = "the requirements of the job cannot be installed"
"""How its message begins where the requirements themselves are the cause."""
"""The reason of a job that was refused because it asks for more than there is."""


@dataclass(frozen=True, slots=True)
class Amounts:
    """What is counted of a node."""

    cpu: float = 0.0
    """Cores."""
    memory: int = 0
    """Bytes."""
    gpus: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(self.cpu + other.cpu, self.memory + other.memory, self.gpus + other.gpus)

    def __sub__(self, other: Amounts) -> Amounts:
        """What is left; never less than nothing."""
        return Amounts(
            max(self.cpu - other.cpu, 0.0),
            max(self.memory - other.memory, 0),
            max(self.gpus - other.gpus, 0),
        )


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What a job asks for, and an engine that cannot grow has not."""

    asked: Amounts
    """For each node: the limits, as people think of a job's size, else the requests."""
    nodes: int
    has: Amounts
    """All there is."""
    is_refused: bool
    """Else the job runs with what there is."""

    def __str__(self) -> str:
        """One sentence for events and messages."""
        many = f" per node on {self.nodes} nodes" if self.nodes > 1 else ""
        if self.is_refused:
            ends = "too small"
        elif self.asked.gpus and not self.has.gpus:
            ends = "runs on CPU"
        else:
            ends = "runs with what there is"
        return (
            f"asked for {_listed(self.asked, is_request=True)}{many}; "
            f"this machine has {_listed(self.has, is_request=False)}: {ends}"
        )


def _listed(amounts: Amounts, *, is_request: bool) -> str:
    """`4 CPU, 16Gi and 1 GPU`; a request names only what it asks for."""
    parts = [
        (amounts.cpu, f"{amounts.cpu:.4g} CPU"),
        (amounts.memory, _memory(amounts.memory)),
        (amounts.gpus, f"{amounts.gpus or 'no'} GPU"),
    ]
    shown = [text for amount, text in parts if amount or not is_request]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def _memory(size: int) -> str:
    """As Kubernetes writes it, without needless digits."""
    unit, name = (2**30, "Gi") if size >= 2**30 else (2**20, "Mi")
    return f"{size / unit:.0f}{name}" if size >= 10 * unit else f"{size / unit:.2g}{name}"


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What one job has of a node."""

    namespace: str
    job: str
    pods: int
    amounts: Amounts


@dataclass(frozen=True, slots=True)
class Node:
    """A machine that jobs run on. Unknown texts are empty."""

    name: str
    is_ready: bool
    capacity: Amounts
    """What pods can have of it."""
    used: Amounts
    """What is promised to pods, those of jobs and others."""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    """`on-demand`, `spot`."""
    architecture: str = ""
    os_image: str = ""
    gpu_type: str = ""
    remarks: tuple[str, ...] = ()
    """What keeps pods away: taints, `unschedulable`."""
    shares: tuple[NodeShare, ...] = ()

    @property
    def free(self) -> Amounts:
        return self.capacity - self.used


@dataclass(frozen=True, slots=True)
class Quota:
    """A ceiling of a namespace, and what is used of it now; quantities as Kubernetes writes them."""

    resource: str
    """`requests.cpu`, `requests.nvidia.com/gpu`, `pods`."""
    hard: str
    used: str


class Engine(Protocol):
    """Runs effective objects."""

    name: ClassVar[str]
    abilities: frozenset[Ability]

    async def apply(self, handle: Handle, effective: Effective) -> None:
        """Makes sure that this job runs as told; the same call twice makes no second job.

        With `suspend` set its pods go and the job stays; without it, they come again.
        """
        ...

    async def observe(self, handle: Handle) -> Observation:
        """What is known of the job; a job that is not there is an answer, not an error."""
        ...

    async def stop(self, handle: Handle) -> None:
        """Ends the job and forgets it, with the grace its pods are given; stopping what is gone is fine.

        Returns when nothing of it runs any more. Its logs stay: they are history, and not the engine's to remove.
        """
        ...

    def changes(self) -> AsyncIterator[Handle]:
        """Names every job of which something may have changed, from the first step on; not what is so already.

        One name may stand for several changes. Who was not there for a while has to look at all jobs once.
        """
        ...

    def logs(self, handle: Handle) -> Path:
        """The folder that `astrago_trainer.logs` reads; it need not be there yet."""
        ...


@runtime_checkable
class ListsNodes(Protocol):
    """An engine with the ability `nodes`."""

    async def nodes(self) -> list[Node]:
        """As they are now, by name."""
        ...


@runtime_checkable
class IsLimited(Protocol):
    """An engine that knows which jobs it can never hold."""

    def shortfall(self, job_set: Json) -> Shortfall | None:
        """What the effective JobSet asks for beyond all that there is; None when it fits."""
        ...


@runtime_checkable
class KeepsClaims(Protocol):
    """An engine whose claims are folders of this machine; checkpoints without a volume are kept beside them."""

    def claims(self, namespace: str) -> Path:
        """A folder for each claim of a namespace."""
        ...


@runtime_checkable
class HasRuntimes(Protocol):
    """An engine whose runtimes are installed somewhere; others run what the catalogue has."""

    def runtimes(self) -> Mapping[str, Mapping[str, Any]] | None:
        """Manifests by name, as installed now; the same object until it changes. None while that is not known."""
        ...


@dataclass(frozen=True, slots=True)
class FoundNamespace:
    """A namespace that is there."""

    labels: Mapping[str, str]
    is_tenants: bool = False
    """It was made for a tenant of this platform, or handed over to it."""
    is_leaving: bool = False
    """It is being removed."""


@runtime_checkable
class MakesNamespaces(Protocol):
    """An engine with the ability `namespaces`."""

    async def make_namespace(self, namespace: str) -> None:
        """Makes sure that the tenant's namespace is there with all a tenant needs; the same call twice is fine.

        Raises EngineRejected for one that exists and is somebody else's.
        """
        ...

    async def find_namespace(self, namespace: str) -> FoundNamespace | None:
        """One that exists, of any owner; raises EngineRejected where this engine cannot run jobs in it."""
        ...

    async def adopt_namespace(self, namespace: str) -> None:
        """Makes sure that jobs can run in a namespace that somebody else made; nothing else in it changes.

        Raises EngineRejected, with what to do, where the cluster does not allow it.
        """
        ...


@runtime_checkable
class CountsQuota(Protocol):
    """An engine with the ability `quota`."""

    async def quota(self, namespace: str) -> list[Quota]:
        """One for each resource that has a ceiling, by name; none for a namespace that is not there."""
        ...


class EngineError(AstragoError):
    """An engine could not do its work; cut by what the caller does next."""


class EngineUnavailable(EngineError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """Not now: try again later."""


class EngineRejected(EngineError):  # noqa: N818
    """Never: the message is for the user."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        """`reason` is a code, where there is a more telling one than that the engine refused."""
        super().__init__(message)
        self.reason = reason
