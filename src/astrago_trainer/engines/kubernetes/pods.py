"""Who a pod is within its job, and where it stands. Pure."""

from __future__ import annotations

from astrago_trainer.engines import base
from astrago_trainer.engines.base import PodPhase
from astrago_trainer.engines.kubernetes.objects import ContainerStatus, Pod


def jobset_of(pod: Pod) -> str:
    return pod.metadata.labels.job_set


def group_of(pod: Pod) -> str:
    """Its replicated job: `node`, `launcher`."""
    return pod.metadata.labels.group


def index_of(pod: Pod) -> int:
    return int(pod.metadata.labels.index)


def attempt_of(pod: Pod) -> int:
    return int(pod.metadata.labels.attempt)


def name_of(pod: Pod) -> str:
    """Its host name: the same for every pod that stands in for this rank, as on the local engine."""
    labels = pod.metadata.labels
    return f"{labels.job_set}-{labels.group}-{labels.job_index}-{labels.index}"


def label_of(pod: Pod) -> str:
    """For sentences."""
    group = group_of(pod)
    return f"rank {index_of(pod)}" if group == "node" else f"pod {index_of(pod)} of {group}"


def is_current(pod: Pod, attempt: int) -> bool:
    return attempt_of(pod) == attempt and pod.metadata.deletion_timestamp is None


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


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
        pod.spec.node_name or None,
        pod.status.pod_ip or None,
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
