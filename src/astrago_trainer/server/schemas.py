"""What answers and small bodies look like: the models behind OpenAPI.

Answers about jobs are written from the board's JSON and not from these; a test holds the two to each other.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from astrago_trainer.core.spec.base import Model
from astrago_trainer.core.spec.text import Count, Text
from astrago_trainer.service.identity import Role

Time = Annotated[
    str, Field(examples=["2026-11-15T12:00:00.000Z"], json_schema_extra={"format": "date-time"})
]

_JOB = {
    "name": "hello",
    "namespace": "user-123",
    "uid": "5d2c0c8f1b7e4a6d9f30",
    "owner": "user123",
    "framework": "pytorch",
    "runtime": "pytorch-simple",
    "nodes": 2,
    "gpus_per_node": 0,
    "engine": "local",
    "phase": "Running",
    "meaning": "the training runs on all nodes",
    "state": "Running",
    "reason": "",
    "message": "",
    "run": 1,
    "attempt": 0,
    "restarts": 0,
    "max_restarts": 0,
    "is_suspended": False,
    "is_deleting": False,
    "is_expired": False,
    "ttl_seconds": 86400,
    "created_at": "2026-11-15T12:00:00.000Z",
    "started_at": "2026-11-15T12:00:01.000Z",
    "finished_at": None,
    "cloned_from": {"name": "first", "uid": "0b7e4a6d9f305d2c0c8f"},
    "version": 4,
}


def _example(**fields: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [fields]})


class OriginalBody(BaseModel):
    """The job that another one was cloned from; it may be gone, and its name may mean another one by now."""

    name: str
    uid: str


class Job(BaseModel):
    """A job; the same in a list, in a stream and alone."""

    model_config = _example(**_JOB)

    name: str
    namespace: str
    uid: str
    owner: str
    framework: str
    runtime: str
    nodes: int
    gpus_per_node: int
    engine: str
    phase: Literal[
        "Queued", "Pending", "Pulling", "Initializing", "Running",
        "Restarting", "Suspended", "Complete", "Failed", "Deleting",
    ]  # fmt: skip
    meaning: str
    state: Literal["Running", "Complete", "Failed"]
    reason: str
    message: str
    run: int
    attempt: int
    restarts: int
    max_restarts: int
    is_suspended: bool
    is_deleting: bool
    is_expired: bool
    ttl_seconds: int | None
    created_at: Time
    started_at: Time | None
    finished_at: Time | None
    cloned_from: OriginalBody | None
    version: int


class JobPage(BaseModel):
    """A page of jobs, newest first."""

    model_config = _example(items=[_JOB], next_page_token="5bkXv3OQmJm1yqkTq5dD3FvYc2E")  # noqa: S106 - no secret

    items: list[Job]
    next_page_token: str | None


class FieldError(BaseModel):
    """One thing that is wrong."""

    path: str
    code: str
    message: str
    remedy: str


class ProblemBody(BaseModel):
    """RFC 9457."""

    model_config = _example(
        type="about:blank",
        title="Not Found",
        status=404,
        code="not-found",
        detail="there is no job 'hello' in the namespace 'user-123'.",
        request_id="1f0c9a52e8b7d364",
    )

    type: str
    title: str
    status: int
    code: str
    detail: str
    request_id: str
    errors: list[FieldError] = []
    ability: str = ""


class FrameworkError(BaseModel):
    loc: list[str | int]
    msg: str
    type: str


class FirstProblem(BaseModel):
    """A problem of the first API: `detail` is a list for a body that breaks rules."""

    model_config = _example(
        type="about:blank",
        title="Not Found",
        status=404,
        code="not-found",
        detail="there is no job 'user123-job-20251105130000' in the namespace 'user-123'.",
        request_id="1f0c9a52e8b7d364",
    )

    type: str
    title: str
    status: int
    code: str
    detail: str | list[FrameworkError]
    request_id: str
    errors: list[FieldError] = []
    ability: str = ""


class FirstWarning(BaseModel):
    """A field of a request that was ignored (`field-ignored`) or converted (`value-converted`)."""

    path: str
    code: str
    message: str


class FirstCreated(BaseModel):
    """M22, M55. `warnings` is there only when something was ignored or converted, or is more than the machine has."""

    model_config = _example(
        status="success",
        trainjob_name="user123-job-20251105130000",
        namespace="user-123",
        created_at="2025-11-05T13:00:00Z",
    )

    status: Literal["success"]
    trainjob_name: str
    namespace: str
    created_at: str
    warnings: list[FirstWarning] = []


class FirstStatus(BaseModel):
    """M23."""

    model_config = _example(
        trainjob_name="user123-job-20251105130000",
        namespace="user-123",
        state="Complete",
        message="jobset completed successfully",
        created_at="2025-11-05T13:00:00Z",
        completed_at="2025-11-05T13:10:00Z",
        phase="Complete",
        reason="AllJobsCompleted",
    )

    trainjob_name: str
    namespace: str
    state: Literal["Running", "Complete", "Failed"]
    message: str
    created_at: str
    completed_at: str | None
    phase: str
    reason: str


class FirstLogs(BaseModel):
    """M25."""

    model_config = _example(
        trainjob_name="user123-job-20251105130000",
        namespace="user-123",
        worker=0,
        logs="Epoch 1/3\nEpoch 2/3\n",
    )

    trainjob_name: str
    namespace: str
    worker: int
    logs: str


class FirstDeleted(BaseModel):
    """M27."""

    model_config = _example(
        status="success", trainjob_name="user123-job-20251105130000", namespace="user-123"
    )

    status: Literal["success"]
    trainjob_name: str
    namespace: str


class AmountsBody(BaseModel):
    cpu: float
    """Cores."""
    memory: int
    """Bytes."""
    gpus: int


class ShortfallBody(BaseModel):
    """What a job asks for, and the machine has not."""

    asked: AmountsBody
    """Of each node."""
    nodes: int
    has: AmountsBody
    """All there is."""
    is_refused: bool
    """Else the job runs with what there is."""
    message: str


class PreviewFinding(FieldError):  # noqa: N818 - a model, no exception
    severity: Literal["error", "warning"]


class PreviewBody(BaseModel):
    """What a submit would lead to."""

    model_config = _example(
        version="2.1",
        is_refused=False,
        objects=[{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}],
        problems=[],
        provenance={"/0/spec/replicatedJobs/0/template/spec/completions": "form: nodes"},
        shortfall=None,
    )

    version: str
    is_refused: bool
    objects: list[dict[str, Any]]
    problems: list[PreviewFinding]
    provenance: dict[str, str]
    shortfall: ShortfallBody | None


class Retold(BaseModel):
    """A job told again for another door; the text can be pasted as it is."""

    model_config = _example(
        form="cli",
        text="astrago apply --server http://127.0.0.1:8000 --namespace user-123 -f - <<'EOF'\n"
        "framework: pytorch\ncommand: echo hello\nEOF\n",
    )

    form: Literal["cli", "curl", "python", "trainjob"]
    text: str


class EventBody(BaseModel):
    number: int
    time: Time
    actor: str
    reason: str
    message: str


class Events(BaseModel):
    """The history of a job, oldest first."""

    model_config = _example(
        items=[
            {
                "number": 0,
                "time": "2026-11-15T12:00:00.000Z",
                "actor": "user123",
                "reason": "Accepted",
                "message": "the request is stored and will be run",
            }
        ],
        next_after=None,
    )

    items: list[EventBody]
    next_after: int | None


class ProgressBody(BaseModel):
    fraction: float | None
    remaining_seconds: float | None


SeriesBody = dict[str, list[tuple[int, float, float]]]


class RankSeries(BaseModel):
    rank: int
    series: SeriesBody


class Metrics(BaseModel):
    """Series of numbers: [step, seconds since 1970, value] each.

    `ranks` are those that have numbers. `series` are of the rank that was asked for, or of rank 0 where all were:
    those of the others are in `other_ranks` then.
    """

    model_config = _example(
        run=1,
        progress={"fraction": 0.5, "remaining_seconds": 12.0},
        ranks=[0, 1],
        series={"loss": [[10, 1763208000.0, 0.31]]},
        other_ranks=[{"rank": 1, "series": {"loss": [[10, 1763208000.2, 0.33]]}}],
    )

    run: int
    progress: ProgressBody | None
    ranks: list[int]
    series: SeriesBody
    other_ranks: list[RankSeries]


class PodBody(BaseModel):
    name: str
    replicated_job: str
    index: int
    rank: int
    run: int
    attempt: int
    phase: str
    restarts: int
    exit_code: int | None
    reason: str
    node: str | None
    """The last that is known, also when the pod is gone; so is the address."""
    address: str | None


class Pods(BaseModel):
    """The pods of the newest attempt."""

    model_config = _example(
        items=[
            {
                "name": "hello-node-0-0",
                "replicated_job": "node",
                "index": 0,
                "rank": 0,
                "run": 1,
                "attempt": 0,
                "phase": "Running",
                "restarts": 0,
                "exit_code": None,
                "reason": "",
                "node": "node-1",
                "address": "10.42.0.17",
            }
        ]
    )

    items: list[PodBody]


class DroppedPart(BaseModel):
    """How much of a log is no longer there."""

    bytes: int
    lines: int


class LogLine(BaseModel):
    attempt: int
    rank: int
    offset: int
    next: int
    time: float
    text: str
    ended: bool
    cut: bool
    """It is longer, and this is its beginning."""
    dropped: DroppedPart | None
    """Set for the line that stands for a part of the log that was dropped, because the log was over its limit."""


class LogAttempt(BaseModel):
    attempt: int
    first: int
    """The number of its first line."""
    total: int


class LogWindow(BaseModel):
    """Some of the lines, by their number in the order of time."""

    model_config = _example(
        run=1,
        total=1000000,
        first=0,
        at=None,
        until="0:0:6",
        is_over=True,
        ranks=[0],
        containers=["node"],
        attempts=[{"attempt": 0, "first": 0, "total": 1000000}],
        items=[
            {
                "attempt": 0,
                "rank": 0,
                "offset": 0,
                "next": 6,
                "time": 1763208000.0,
                "text": "hello",
                "ended": True,
                "cut": False,
                "dropped": None,
            }
        ],
    )

    run: int
    total: int
    first: int
    """The number of the first of the items, from 0."""
    at: int | None
    """The number of the line that was asked for by its place."""
    until: str
    """Where counting stopped: send it back to count the same lines again, or as a cursor to hear what came later."""
    is_over: bool
    """Nothing more will come."""
    ranks: list[int]
    containers: list[str]
    attempts: list[LogAttempt]
    items: list[LogLine]


class LogHit(BaseModel):
    line: int
    attempt: int
    rank: int
    offset: int


class LogHits(BaseModel):
    """Lines in which something was found, by their number."""

    model_config = _example(
        items=[{"line": 12, "attempt": 0, "rank": 1, "offset": 480}], is_whole=True
    )

    items: list[LogHit]
    is_whole: bool
    """False: there may be more; the search stopped at its limit of hits or of time."""


class Cause(BaseModel):
    pod: str
    rank: int
    exit_code: int | None
    reason: str


class AttemptBody(BaseModel):
    run: int
    attempt: int
    phase: str
    reason: str
    message: str
    started_at: Time | None
    ended_at: Time | None


class Explanation(BaseModel):
    """What the state of a job means, why it is so, and what to do next."""

    model_config = _example(
        name="hello",
        namespace="user-123",
        phase="Failed",
        meaning="ended without success; it will not be tried again",
        summary="Failed: ended without success. BackoffLimitExceeded: rank 1 exited with 1.",
        reason="BackoffLimitExceeded",
        message="rank 1 exited with 1",
        causes=[{"pod": "hello-node-0-1", "rank": 1, "exit_code": 1, "reason": "Error"}],
        attempts=[],
        events=[],
        next_steps=["astrago logs hello --namespace user-123 --rank 1 --tail 50"],
        shortfall=None,
    )

    name: str
    namespace: str
    phase: str
    meaning: str
    summary: str
    reason: str
    message: str
    causes: list[Cause]
    attempts: list[AttemptBody]
    events: list[EventBody]
    next_steps: list[str]
    shortfall: ShortfallBody | None


class CheckpointBody(BaseModel):
    step: int
    path: str
    state: str
    bytes: int | None
    created_at: Time | None


class Checkpoints(BaseModel):
    """Newest first."""

    model_config = _example(
        directory="/checkpoints",
        items=[
            {
                "step": 100,
                "path": "/checkpoints/step-000000100",
                "state": "complete",
                "bytes": 4096,
                "created_at": "2026-11-15T12:00:00.000Z",
            }
        ],
        note="",
    )

    directory: str | None
    items: list[CheckpointBody]
    note: str


class Manifest(BaseModel):
    """What was asked for, rendered, and is run."""

    model_config = _example(
        digest="9f86d081884c7d65",
        spec={"framework": "pytorch"},
        runtime={},
        objects=[],
        effective=[],
        provenance={"/0/spec/replicatedJobs/0/template/spec/completions": "form: nodes"},
        original=None,
    )

    digest: str
    spec: dict[str, Any]
    runtime: dict[str, Any]
    objects: list[dict[str, Any]]
    effective: list[dict[str, Any]]
    provenance: dict[str, str]
    """JSON pointer of each leaf of `effective` -> who set it; empty where that cannot be told any more."""
    original: dict[str, Any] | None
    """What the job asked for that this one was cloned from, whether or not that one is still there."""


class RuntimeBody(BaseModel):
    name: str
    framework: str
    summary: str
    about: str
    nodes: int
    image: str


_RUNTIME = {
    "name": "pytorch-simple",
    "framework": "torch",
    "summary": "PyTorch on several nodes.",
    "about": "PyTorch on several nodes.",
    "nodes": 1,
    "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
}


class Runtimes(BaseModel):
    model_config = _example(items=[_RUNTIME])

    items: list[RuntimeBody]


class RuntimeWithManifest(RuntimeBody):
    model_config = _example(**_RUNTIME, manifest={"kind": "ClusterTrainingRuntime"})

    manifest: dict[str, Any]


class PresetBody(BaseModel):
    name: str
    gpus: int
    cpu: str
    memory: str


class FrameworkBody(BaseModel):
    name: Literal["pytorch", "tensorflow", "horovod"]
    runtime: str
    """What a job without one runs on."""
    image: str
    """What a job without one runs."""
    images: list[str]
    """What the administrator offers beside it."""


class Offers(BaseModel):
    """What a form for a new job begins with."""

    model_config = _example(
        presets=[{"name": "small", "gpus": 1, "cpu": "4", "memory": "16Gi"}],
        frameworks=[
            {
                "name": "pytorch",
                "runtime": "pytorch-simple",
                "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
                "images": ["pytorch/pytorch:2.8.0-cuda12.6-cudnn9-runtime"],
            }
        ],
        trainer_version="2.1",
        max_nodes=1000,
        max_gpus_per_node=64,
        default_ttl_seconds=86400,
        default_max_restarts=3,
        sample={"framework": "pytorch", "nodes": 2, "code": {"inline": "print('hello')\n"}},
    )

    presets: list[PresetBody]
    """Sizes of a node, by name."""
    frameworks: list[FrameworkBody]
    trainer_version: str
    max_nodes: int
    max_gpus_per_node: int
    default_ttl_seconds: int
    default_max_restarts: int | None
    """None leaves it to the runtime."""
    sample: dict[str, Any]
    """A request that runs anywhere."""


class NodeJob(AmountsBody):
    """What a job has of a node; those of other tenants are one entry without their names."""

    namespace: str | None
    name: str
    pods: int


_AMOUNTS = {"cpu": 8.0, "memory": 34359738368, "gpus": 1}
_NODE = {
    "name": "node-1",
    "ready": True,
    "instance_type": "g6e.48xlarge",
    "zone": "ap-northeast-2a",
    "capacity_type": "on-demand",
    "architecture": "amd64",
    "os_image": "Debian GNU/Linux 12",
    "gpu_type": "",
    "gpus": 1,
    "capacity": _AMOUNTS,
    "used": {"cpu": 0.0, "memory": 0, "gpus": 0},
    "free": _AMOUNTS,
    "remarks": [],
    "jobs": [],
}


class NodeBody(BaseModel):
    model_config = _example(**_NODE)

    name: str
    ready: bool
    instance_type: str
    zone: str
    capacity_type: str
    architecture: str
    os_image: str
    gpu_type: str
    gpus: int | None
    """None where a node has none."""
    capacity: AmountsBody
    used: AmountsBody
    free: AmountsBody
    remarks: list[str]
    """What keeps pods away."""
    jobs: list[NodeJob]


class Nodes(BaseModel):
    """The machines that jobs run on."""

    model_config = _example(items=[_NODE])

    items: list[NodeBody]


class Images(BaseModel):
    """Of earlier jobs; at most 20."""

    model_config = _example(items=["registry.example.com/team/train:2"])

    items: list[str]


class QuotaBody(BaseModel):
    """A ceiling; quantities as Kubernetes writes them."""

    resource: str
    """`requests.cpu`, `requests.nvidia.com/gpu`, `pods`."""
    hard: str
    used: str


class QuotaList(BaseModel):
    model_config = _example(
        items=[{"resource": "requests.nvidia.com/gpu", "hard": "8", "used": "3"}]
    )

    items: list[QuotaBody]


_DISK = {
    "total_bytes": 2 << 40,
    "free_bytes": 300 << 20,
    "reserve_bytes": 256 << 20,
    "alarm": "DiskNearlyFull",
}


class DiskBody(BaseModel):
    """The disk of the data folder."""

    model_config = _example(**_DISK)

    total_bytes: int
    free_bytes: int
    reserve_bytes: int
    """Free space below which no log is written."""
    alarm: Literal["DiskNearlyFull", "LogsNotWritten", "DiskFull"] | None
    """DiskNearlyFull: free some space. LogsNotWritten: output of jobs is dropped and counted.
    DiskFull: no job is accepted; deletion works."""


class WhoAmI(BaseModel):
    model_config = _example(
        name="user123",
        is_administrator=False,
        roles={"user-123": "administrator"},
        backend=[],
        namespaces=["user-123"],
        default_namespace="user-123",
        authentication="tokens",
        engine="local",
        abilities=["suspend"],
        version="0.1.0",
        sign_up="off",
        disk=None,
    )

    name: str
    is_administrator: bool
    roles: dict[str, str]
    backend: list[str]
    """Of a backend: names and patterns of the namespaces in which it acts for any user."""
    namespaces: list[str]
    """Tenants' namespaces in which the caller may run jobs, by name; at most 100."""
    default_namespace: str | None
    """Where jobs go when no namespace is named; null: it must be named."""
    authentication: Literal["off", "tokens", "tokens and oidc"]
    engine: str
    abilities: list[str]
    version: str
    sign_up: Literal["off", "open"]
    disk: DiskBody | None
    """For administrators."""


class OidcClient(BaseModel):
    """What a public client of OpenID Connect needs; it has no secret, and proves itself by PKCE."""

    issuer: str
    client_id: str


class SignIn(BaseModel):
    """How somebody can come in."""

    model_config = _example(
        sign_up="off", oidc={"issuer": "https://login.example.com", "client_id": "astrago"}
    )

    sign_up: Literal["off", "open"]
    oidc: OidcClient | None


class SecretToken(BaseModel):
    id: str
    secret: str
    expires_at: Time | None


_SECRET = {"id": "8c1f…", "secret": "astrago_…", "expires_at": None}


class SignedUp(BaseModel):
    """The token's secret is shown this once."""

    model_config = _example(user="user123", namespace="user-123", token=_SECRET)

    user: str
    namespace: str
    token: SecretToken


class NewToken(SecretToken):
    model_config = _example(**_SECRET, user="user123", label="laptop")

    user: str
    label: str


class TokenBody(BaseModel):
    id: str
    user: str
    label: str
    created_at: Time
    expires_at: Time | None
    revoked_at: Time | None


class TokenList(BaseModel):
    model_config = _example(
        items=[
            {
                "id": "8c1f…",
                "user": "user123",
                "label": "laptop",
                "created_at": "2026-11-15T12:00:00.000Z",
                "expires_at": None,
                "revoked_at": None,
            }
        ]
    )

    items: list[TokenBody]


class TenantBody(BaseModel):
    model_config = _example(
        namespace="team-a",
        title="Team A",
        created_at="2026-11-15T12:00:00.000Z",
        is_adopted=False,
    )

    namespace: str
    title: str
    created_at: Time
    is_adopted: bool
    """Whether the cluster had the namespace before; what it holds is its owner's."""


class TenantList(BaseModel):
    model_config = _example(
        items=[
            {
                "namespace": "team-a",
                "title": "Team A",
                "created_at": "2026-11-15T12:00:00.000Z",
                "is_adopted": False,
            }
        ],
        quota={"requests.cpu": "64", "requests.nvidia.com/gpu": "8"},
    )

    items: list[TenantBody]
    quota: dict[str, str]
    """What each may ask for at most, as `spec.hard` of its ResourceQuota; empty: no ceiling."""


class MemberBody(BaseModel):
    model_config = _example(namespace="team-a", user="user123", role="member")

    namespace: str
    user: str
    role: Role


class MemberList(BaseModel):
    items: list[MemberBody]


_INVITATION = {
    "namespace": "team-a",
    "user": "user123",
    "role": "member",
    "invited_by": "kim",
    "created_at": "2026-11-15T12:00:00.000Z",
    "expires_at": "2026-11-29T12:00:00.000Z",
}


class InvitationBody(BaseModel):
    model_config = _example(**_INVITATION)

    namespace: str
    user: str
    """Whether there is such a user is not told."""
    role: Role
    invited_by: str
    created_at: Time
    expires_at: Time


class InvitationList(BaseModel):
    model_config = _example(items=[_INVITATION])

    items: list[InvitationBody]


class UserBody(BaseModel):
    model_config = _example(name="user123", is_administrator=False)

    name: str
    is_administrator: bool


class UserWithRoles(UserBody):
    model_config = _example(
        name="user123",
        is_administrator=False,
        is_disabled=False,
        issuer="",
        roles={"user-123": "administrator"},
        backend=[],
    )

    is_disabled: bool
    issuer: str
    """Who verifies the user: empty for tokens of this server, the URL of an OpenID Connect issuer, or `*` until
    somebody of an issuer with this name signs in."""
    roles: dict[str, str]
    backend: list[str]
    """Of a backend: names and patterns of the namespaces in which it acts for any user."""


class BackendBody(BaseModel):
    """A user that acts for others."""

    model_config = _example(name="portal", namespaces=["user-*"])

    name: str
    namespaces: list[str]


class UserList(BaseModel):
    items: list[UserWithRoles]


class AuditBody(BaseModel):
    number: int
    time: Time
    actor: str
    namespace: str
    action: str
    object: str
    uid: str
    result: str
    detail: str
    request_id: str


class AuditPage(BaseModel):
    """Newest first."""

    items: list[AuditBody]
    next_before: int | None


class Health(BaseModel):
    model_config = _example(status="ok", version="0.1.0")

    status: Literal["ok"]
    version: str


class Ready(BaseModel):
    model_config = _example(status="ready", jobs=12, disk=_DISK)

    status: Literal["ready"]
    jobs: int
    disk: DiskBody | None
    """None where the file system does not say."""


class TrainerStatus(BaseModel):
    """What a training reports, as the Trainer's own server takes it."""

    model_config = _example(
        trainerStatus={
            "progressPercentage": 45,
            "estimatedRemainingSeconds": 120,
            "metrics": [{"name": "loss", "value": "0.5"}],
            "lastUpdatedTime": "2026-01-31T12:00:00Z",
        }
    )

    trainerStatus: dict[str, Any] | None = None  # noqa: N815


# --- bodies of requests


class SignUp(Model):
    """`POST /api/v1/signup`."""

    user: Text | None = Field(
        None, description="Name of the user; that of the token when left out.", examples=["user123"]
    )
    title: Text = Field("", description="What the namespace is called.", max_length=200)


class TokenRequest(Model):
    """`POST /api/v1/tokens`."""

    user: Text | None = Field(None, description="Whose it will be; one's own when left out.")
    label: Text = Field("", description="To tell it from others.", max_length=200)
    seconds: Annotated[Count, Field(ge=1, le=10 * 366 * 86400)] | None = Field(
        None, description="How long it works; for ever when left out.", examples=[86400]
    )


class TenantRequest(Model):
    """`POST /api/v1/tenants`."""

    namespace: Text = Field(description="Name of the namespace.", examples=["team-a"])
    title: Text = Field("", description="What it is called.", max_length=200)


class MemberRequest(Model):
    """`PUT /api/v1/tenants/{namespace}/members/{user}`."""

    role: Literal["viewer", "member", "administrator"] = Field(
        description="What the user may do there."
    )


class InvitationRequest(Model):
    """`POST /api/v1/tenants/{namespace}/invitations`."""

    user: Text = Field(description="Who is invited.", examples=["user123"], max_length=200)
    role: Literal["viewer", "member", "administrator"] = Field(
        "member", description="What the user may do there."
    )


class BackendRequest(Model):
    """`PUT /api/v1/backends/{user}`."""

    namespaces: tuple[Text, ...] = Field(
        description="Where it acts for any user: names of namespaces, and patterns.",
        examples=[["user-*", "team-a"]],
    )


class UserRequest(Model):
    """`POST /api/v1/users`."""

    name: Text = Field(description="Name of the user.", examples=["user123"])
    is_administrator: bool = Field(False, strict=True, description="Of the whole installation.")
