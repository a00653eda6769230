"""Who a pod is within its job, and where it stands. Pure."""

from __future__ import annotations

from astrago_trainer.engines import base
from astrago_trainer.engines.base import PodPhase
from astrago_trainer.engines.kubernetes.objects import ContainerStatus, Pod
from astrago_trainer.engines.kubernetes.resources import JOBSET_NAME

_REPLICATED = "jobset.sigs.k8s.io/replicatedjob-name"
_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
_ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
_INDEX = "batch.kubernetes.io/job-completion-index"


def jobset_of(pod: Pod) -> str:
    return pod.metadata.labels.get(JOBSET_NAME, "")


def group_of(pod: Pod) -> str:
    """Its replicated job: `node`, `launcher`."""
    return pod.metadata.labels.get(_REPLICATED, "")


def index_of(pod: Pod) -> int:
    return int(pod.metadata.labels.get(_INDEX, "0"))


def attempt_of(pod: Pod) -> int:
    return int(pod.metadata.labels.get(_ATTEMPT, "0"))


def name_of(pod: Pod) -> str:
    """Its host name: the same for every pod that stands in for this rank, as on the local engine."""
    job = pod.metadata.labels.get(_JOB_INDEX, "0")
    return f"{jobset_of(pod)}-{group_of(pod)}-{job}-{index_of(pod)}"


def label_of(pod: Pod) -> str:
    """For sentences."""
    group = group_of(pod)
    return f"rank {index_of(pod)}" if group == "node" else f"pod {index_of(pod)} of {group}"


def is_current(pod: Pod, attempt: int) -> bool:
    return attempt_of(pod) == attempt and pod.metadata.deletion_timestamp is None


def phase_of(pod: Pod) -> PodPhase:
    if pod.status.phase == "Succeeded":
        return PodPhase.SUCCEEDED
    if pod.status.phase == "Failed":
        return PodPhase.FAILED
    if any(each.state.running is not None for each in pod.status.container_statuses):
        return PodPhase.RUNNING
    if pod.spec.init_containers and any(
        each.state.running is not None or each.state.terminated is not None
        for each in pod.status.init_container_statuses
    ):
        return PodPhase.INITIALIZING
    return PodPhase.PENDING


def seen_pod(pod: Pod, reason: str) -> base.Pod:
    return base.Pod(
        name_of(pod),
        group_of(pod),
        index_of(pod),
        phase_of(pod),
        sum(each.restart_count for each in statuses_of(pod)),
        _exit_code(pod),
        reason,
    )


def statuses_of(pod: Pod) -> list[ContainerStatus]:
    return [*pod.status.init_container_statuses, *pod.status.container_statuses]


def _exit_code(pod: Pod) -> int | None:
    """Of the first container that failed, else 0 when all have ended."""
    ended = [each.state.terminated for each in statuses_of(pod)]
    failed = [each for each in ended if each is not None and each.exit_code != 0]
    if failed:
        return min(
            failed, key=lambda each: each.finished_at.timestamp() if each.finished_at else 0.0
        ).exit_code
    return 0 if pod.status.phase == "Succeeded" else None
