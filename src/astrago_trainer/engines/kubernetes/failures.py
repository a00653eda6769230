"""Why containers ended badly, in words. Pure."""

from __future__ import annotations

import signal

from msgspec import Struct

from astrago_trainer.core.diagnosis.last_words import last_words
from astrago_trainer.engines.kubernetes.objects import ContainerStatus, Pod, Terminated
from astrago_trainer.engines.kubernetes.pods import attempt_of, has_ended, label_of, name_of

_TOLD_TO_END = frozenset({143, 137})
"""SIGTERM and SIGKILL: what the healthy ranks end with after another one has failed."""

_NODE_IS_GONE = frozenset({"DeletionByTaintManager", "DeletionByPodGC"})
"""A node that does not answer for long, and one that was deleted."""


class Failure(Struct, frozen=True):
    """One container that ended badly, once."""

    key: str
    """Names it for good: the pod's uid, the container, its number of restarts."""
    attempt: int
    time: float
    code: int
    reason: str
    """A word for programs: `OOMKilled`, `Error`, `InitContainerFailed`."""
    message: str
    is_aftermath: bool = False
    """Ended by Kubernetes while its pod was being removed: a consequence, not a cause."""
    said: str = ""
    """Its own last words."""
    pod: str = ""
    """Its host name, by which its log is found."""
    container: str = ""

    def told(self, remark: str = "") -> str:
        """All of it, the words of the training last, because they may be many lines."""
        return f"{self.message}{remark}" + (f": {self.said}" if self.said else "")


def failures_of(pod: Pod) -> list[Failure]:
    """Of the pod's containers, in place restarts too, as far as its status still shows them."""
    found: list[Failure] = []
    is_going = pod.metadata.deletion_timestamp is not None
    groups = (
        (pod.status.init_container_statuses, True),
        (pod.status.container_statuses, False),
    )
    for statuses, is_init in groups:
        for status in statuses:
            for state, count in (
                (status.last_state.terminated, status.restart_count - 1),
                (status.state.terminated, status.restart_count),
            ):
                if state is not None and state.exit_code != 0:
                    found.append(_failure(pod, status, state, count, is_init, is_going))
    # One that is taken off a silent node never tells how it ended, and may lie there for hours.
    is_over = pod.status.phase == "Failed" or is_going
    if is_over and not found and (words := lost_words(pod)):
        reason, message = words
        key = f"{pod.metadata.uid}//{reason}"
        found.append(Failure(key, attempt_of(pod), _now_of(pod), -1, reason, message))
    return found


def deletion_of(pod: Pod) -> Failure | None:
    """Somebody deletes it while it runs, or before it could; its containers have not ended yet."""
    deleted = _deleted_at(pod)
    if deleted is None or has_ended(pod) or lost_words(pod):
        return None
    if any(each.state.terminated is not None for each in pod.status.container_statuses):
        return None
    message = f"the pod of {label_of(pod)} was deleted"
    return Failure(
        f"{pod.metadata.uid}//deleted", attempt_of(pod), deleted, -1, "PodDeleted", message
    )


def first_cause(failures: list[Failure], attempt: int) -> Failure | None:
    """What began the end of an attempt: the earliest failure that is not the aftermath of another.

    The kubelet's times are whole seconds: among equals, one that was not told to end comes first, then the one that was
    noticed first.
    """
    of_attempt = [each for each in failures if each.attempt == attempt]
    return min(
        of_attempt,
        key=lambda each: (each.is_aftermath, int(each.time), each.code in _TOLD_TO_END),
        default=None,
    )


def lost_words(pod: Pod) -> tuple[str, str] | None:
    """A pod that was taken away rather than failing by itself."""
    who = label_of(pod)
    if pod.status.reason == "Evicted":
        return "Evicted", f"{who} was evicted from node {pod.spec.node_name}: {pod.status.message}"
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget" and condition.is_true:
            word = "NodeLost" if condition.reason in _NODE_IS_GONE else condition.reason
            return word, f"{who} was taken off node {pod.spec.node_name}: {condition.message}"
    if pod.status.reason in ("NodeLost", "NodeShutdown", "Terminated", "Shutdown"):
        return (
            "NodeLost",
            f"{who} went with its node {pod.spec.node_name}: {pod.status.message or pod.status.reason}",
        )
    if pod.status.reason == "DeadlineExceeded":
        return "DeadlineExceeded", f"{who} ran longer than its deadline allows"
    return None


def exit_words(code: int) -> str:
    """`exit code 1`; a signal by its name as well."""
    if code > 128:
        try:
            return f"exit code {code} ({signal.Signals(code - 128).name})"
        except ValueError:
            pass
    return f"exit code {code}"


def _failure(
    pod: Pod,
    status: ContainerStatus,
    state: Terminated,
    count: int,
    is_init: bool,
    is_going: bool,
) -> Failure:
    lost = lost_words(pod)
    reason, text = _words(pod, status.name, state, is_init)
    is_told = state.exit_code in _TOLD_TO_END and state.reason != "OOMKilled"
    if lost is not None and is_told:
        reason, text = lost[0], f"{lost[1]}; {text}"
    elif is_going and is_told:
        reason, text = "PodDeleted", f"the pod of {label_of(pod)} was deleted: {text}"
    time = state.finished_at.timestamp() if state.finished_at else _now_of(pod)
    deleted = _deleted_at(pod)
    return Failure(
        f"{pod.metadata.uid}/{status.name}/{count}",
        attempt_of(pod),
        time,
        state.exit_code,
        reason,
        text,
        # A training may answer the signal with any code; one that ended before it was told to is no aftermath.
        is_aftermath=lost is None
        and state.reason != "OOMKilled"
        and deleted is not None
        and (is_told or time >= deleted),
        said=last_words(state.message),
        pod=name_of(pod),
        container=status.name,
    )


def _words(pod: Pod, container: str, state: Terminated, is_init: bool) -> tuple[str, str]:
    who = label_of(pod)
    if state.reason == "OOMKilled":
        limit = _limit(pod, container)
        room = f"its limit of {limit}" if limit else "what its node has"
        return "OOMKilled", f"{who} used more memory than {room} and was killed"
    if is_init:
        return (
            "InitContainerFailed",
            f"init container {container} of {who} ended with {exit_words(state.exit_code)}",
        )
    if state.reason in ("ContainerCannotRun", "StartError", "RunContainerError"):
        return state.reason, f"container {container} of {who} could not be started"
    place = "" if container == "node" else f"container {container} of "
    return state.reason or "Error", f"{place}{who} ended with {exit_words(state.exit_code)}"


def _limit(pod: Pod, container: str) -> str:
    for each in (*pod.spec.containers, *pod.spec.init_containers):
        if each.name == container:
            return str(each.resources.limits.get("memory", ""))
    return ""


def _deleted_at(pod: Pod) -> float | None:
    meta = pod.metadata
    if meta.deletion_timestamp is None:
        return None
    return meta.deletion_timestamp.timestamp() - meta.deletion_grace_period_seconds


def _now_of(pod: Pod) -> float:
    """The best time there is when the kubelet gave none."""
    times = [
        each.last_transition_time.timestamp()
        for each in pod.status.conditions
        if each.last_transition_time is not None
    ]
    return max(times, default=0.0)
