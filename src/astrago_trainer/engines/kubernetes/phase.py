"""From the cached objects of a job to what is told of it. Pure: the same objects and time give the same answer.

TrainJob conditions know only the end and suspension (operator.md); everything before is read off the JobSet, its pods
and the events about them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines import base
from astrago_trainer.engines.base import Observation, PodPhase
from astrago_trainer.engines.kubernetes.absence import NONE, Absence, with_absence
from astrago_trainer.engines.kubernetes.failures import (
    Failure,
    failures_of,
    first_cause,
    lost_words,
)
from astrago_trainer.engines.kubernetes.objects import (
    ClusterEvent,
    Condition,
    Job,
    JobSet,
    JobSetSpec,
    JobSetStatus,
    JobSpec,
    JobTemplate,
    Meta,
    Pod,
    ReplicatedJob,
    TrainJob,
)
from astrago_trainer.engines.kubernetes.pods import (
    attempt_of,
    group_of,
    has_ended,
    index_of,
    is_current,
    phase_of,
    seen_pod,
)
from astrago_trainer.engines.kubernetes.waiting import Why, why_not_created, why_pod_waits

CONTROLLER_SECONDS = 10.0
"""Operators make the next object within a second; after this time they are thought to be down."""
MOST_ENDED = 10
"""Earlier attempts of which it is told how they ended."""
_FOR_PODS = frozenset({"FailedJobs", "ReachedMaxRestarts", "FailJobSetFailurePolicyAction"})
"""JobSet's words for a failure that some pod is the cause of, while no such pod has been seen."""
_PATIENT = (Phase.QUEUED, Phase.PENDING, Phase.PULLING, Phase.INITIALIZING, Phase.RESTARTING)
"""From what is furthest from running on; the job is where its last pod is."""


@dataclass(slots=True)
class JobObjects:
    """What the cluster has of one job."""

    trainjob: TrainJob | None = None
    job_set: JobSet | None = None
    jobs: dict[str, Job] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    events: dict[str, ClusterEvent] = field(default_factory=dict)

    def events_about(self, pod: Pod) -> list[ClusterEvent]:
        if not self.events:  # a job of a thousand pods that runs well is looked at often
            return []
        uid = pod.metadata.uid
        return [each for each in self.events.values() if each.involved_object.uid == uid]

    @property
    def is_empty(self) -> bool:
        return self.trainjob is None and self.job_set is None and not self.jobs and not self.pods


def observe(
    objects: JobObjects,
    *,
    failures: Sequence[Failure] = (),
    events: tuple[base.Event, ...] = (),
    absent: Mapping[str, Absence] = NONE,
    now: float,
) -> Observation:
    """`failures`: all that were ever seen of this job, for pods go and take their exit codes with them.

    `absent`: nodes under its pods that do not answer or are gone.
    """
    trainjob = objects.trainjob
    if trainjob is None:
        return base.GONE
    if objects.job_set is None and objects.pods:
        objects = replace(objects, job_set=_guessed(objects))
    job_set = objects.job_set
    known = _since_resumption(_all_failures(objects, failures), job_set)
    attempt = max((each.attempt for each in known), default=0)
    if job_set is not None:  # a deadline takes the JobSet away, and its count with it
        attempt = job_set.status.restarts
    pods = _shown_pods(objects, attempt)
    why = _why(objects, trainjob, attempt, known, now)
    if not is_terminal(why.phase):
        why = with_absence(why, objects.pods.values(), absent)
    return Observation(
        why.phase,
        why.reason,
        why.message,
        attempt=attempt,
        restarts=attempt,
        max_restarts=_max_restarts(job_set),
        started_at=_started(objects),
        ended_at=_ended(trainjob),
        pods=tuple(seen_pod(pod, _pod_reason(pod, objects, absent)) for pod in pods),
        events=events,
        ended=_earlier(known, attempt),
    )


def is_ahead_of_pods(objects: JobObjects, seen: Observation) -> bool:
    """Whether the end of the job is known here before that of its pods: each kind comes on a watch of its own.

    What a pod wrote, and what it failed of, is looked for when the pod is seen. Of a failure the cause is enough: the
    other pods are being removed, and may never have begun.
    """
    if seen.phase is not Phase.COMPLETE:
        return seen.reason in _FOR_PODS
    pods = [pod for pod in objects.pods.values() if is_current(pod, seen.attempt)]
    return not seen.pods or not all(has_ended(pod) for pod in pods)


def _why(
    objects: JobObjects, trainjob: TrainJob, attempt: int, failures: list[Failure], now: float
) -> Why:
    conditions = {each.type: each for each in trainjob.status.conditions if each.is_true}
    if "Complete" in conditions:
        return Why(Phase.COMPLETE, conditions["Complete"].reason, conditions["Complete"].message)
    if "Failed" in conditions:
        return _failed(objects, conditions["Failed"], attempt, failures)
    if trainjob.metadata.deletion_timestamp is not None:
        return Why(Phase.DELETING, "Deleting", "its pods end, then its objects go")
    if trainjob.spec.suspend:
        queue = trainjob.metadata.labels.queue
        if queue is not None and not _is_suspended_by_us(trainjob):
            return Why(Phase.QUEUED, "InQueue", f"waits for its turn in the queue {queue}")
        return _suspended(objects)
    if objects.job_set is None:
        return _before_job_set(objects, trainjob, now)
    return _under_way(objects, objects.job_set, attempt, failures, now)


def _suspended(objects: JobObjects) -> Why:
    """Only when nothing of it runs any more: whoever suspends a job wants its room."""
    left = [pod for pod in objects.pods.values() if not has_ended(pod)]
    if not left:
        return Why(Phase.SUSPENDED, "Suspended", "suspended on request")
    is_up = any(phase_of(pod) is PodPhase.RUNNING for pod in left)
    return Why(
        Phase.RUNNING if is_up else Phase.PENDING,
        "Suspending",
        f"is being suspended; {len(left)} of its pods have not ended yet",
    )


def _is_suspended_by_us(trainjob: TrainJob) -> bool:
    return trainjob.metadata.annotations.suspended_by_us == "true"


def _failed(
    objects: JobObjects, condition: Condition, attempt: int, failures: list[Failure]
) -> Why:
    if condition.reason == "DeadlineExceeded":
        return Why(Phase.FAILED, "DeadlineExceeded", "the job took longer than its deadline allows")
    job_words = _failed_job(objects)
    cause = first_cause(failures, attempt)
    if job_words is not None and job_words.reason == "DeadlineExceeded":
        return Why(Phase.FAILED, *job_words[1:])
    if cause is None:
        return Why(Phase.FAILED, condition.reason, condition.message)
    allowed = _max_restarts(objects.job_set)
    used = f"; all {allowed} restarts are used up" if allowed and attempt >= allowed else ""
    return Why(Phase.FAILED, cause.reason, cause.told(used))


def _failed_job(objects: JobObjects) -> Why | None:
    for job in objects.jobs.values():
        for condition in job.status.conditions:
            if condition.type == "Failed" and condition.is_true:
                return Why(Phase.FAILED, condition.reason, condition.message)
    return None


def _before_job_set(objects: JobObjects, trainjob: TrainJob, now: float) -> Why:
    refused = why_not_created(objects.events.values())
    if refused is not None:
        return refused
    return _waits_for("Trainer", "its JobSet", trainjob.metadata.creation_timestamp, now)


def _waits_for(controller: str, what: str, since: datetime | None, now: float) -> Why:
    waited = now - since.timestamp() if since is not None else 0.0
    if waited < CONTROLLER_SECONDS:
        return Why(Phase.PENDING, "Accepted", f"accepted; {controller} makes {what}")
    return Why(
        Phase.QUEUED,
        "ControllerNotResponding",
        f"accepted, but the {controller} controller has not made {what} in {waited:.0f} s: it may be down. "
        "The job starts by itself when it is back",
    )


def _under_way(
    objects: JobObjects, job_set: JobSet, attempt: int, failures: list[Failure], now: float
) -> Why:
    pods = [pod for pod in objects.pods.values() if is_current(pod, attempt)]
    cause = first_cause(failures, attempt)
    restarting = _restarting(job_set, attempt, failures)
    starters = _starters(job_set)
    trainers = [pod for pod in pods if group_of(pod) not in starters]
    expected = sum(
        each.replicas * each.template.spec.parallelism
        for each in job_set.spec.replicated_jobs
        if each.name not in starters
    )
    if cause is not None and not _is_replaced_alone(pods):
        if attempt < _max_restarts(job_set):
            return Why(Phase.RESTARTING, cause.reason, cause.told("; all ranks start again"))
        phase = Phase.INITIALIZING if cause.reason == "InitContainerFailed" else Phase.RUNNING
        return Why(phase, cause.reason, cause.told("; the job is about to fail"))
    up = [pod for pod in trainers if phase_of(pod) in (PodPhase.RUNNING, PodPhase.SUCCEEDED)]
    if len(up) >= expected and any(phase_of(pod) is PodPhase.RUNNING for pod in up):
        return Why(Phase.RUNNING)
    if len(up) >= expected:
        return Why(Phase.RUNNING, "Ended", "all ranks have ended; the operator notes it")
    found = _why_not_all(objects, pods, starters, len(trainers) < expected, job_set, now)
    if restarting is not None and found.phase in (Phase.PENDING, Phase.INITIALIZING):
        words = f"{restarting.message}; {found.message}" if found.message else restarting.message
        return Why(Phase.RESTARTING, restarting.reason, words)
    return found


def _why_not_all(
    objects: JobObjects,
    pods: list[Pod],
    starters: set[str],
    is_incomplete: bool,
    job_set: JobSet,
    now: float,
) -> Why:
    """Of the pods that do not run, the one that is furthest from it."""
    waiting = [
        why_pod_waits(pod, objects.events_about(pod))
        for pod in sorted(pods, key=index_of)
        if phase_of(pod) in (PodPhase.PENDING, PodPhase.INITIALIZING)
    ]
    if waiting:
        return min(waiting, key=lambda why: _PATIENT.index(why.phase))
    if any(group_of(pod) in starters and phase_of(pod) is PodPhase.RUNNING for pod in pods):
        return Why(Phase.INITIALIZING, "Preparing", "model or data set are being fetched")
    if is_incomplete and (refused := why_not_created(objects.events.values())) is not None:
        return refused
    if not objects.jobs:
        return _waits_for("JobSet", "its Jobs", job_set.metadata.creation_timestamp, now)
    return Why(Phase.PENDING, "PodsAreMade", "its pods are being made")


def _starters(job_set: JobSet) -> set[str]:
    """Replicated jobs that others wait for: initializers."""
    return {each.name for job in job_set.spec.replicated_jobs for each in job.depends_on}


def _restarting(job_set: JobSet, attempt: int, failures: list[Failure]) -> Why | None:
    """What the present attempt follows; None for the first one."""
    if attempt == 0:
        return None
    used = f"restart {attempt} of {_max_restarts(job_set)}"
    before = first_cause(failures, attempt - 1)
    if before is None:
        return Why(Phase.RESTARTING, "Restarting", used)
    return Why(Phase.RESTARTING, before.reason, f"{used} after {before.message}")


def _earlier(failures: list[Failure], attempt: int) -> tuple[base.Ended, ...]:
    """How the attempts before this one ended, as far as their failures were seen."""
    causes = (first_cause(failures, each) for each in range(max(0, attempt - MOST_ENDED), attempt))
    return tuple(
        base.Ended(each.attempt, each.time, each.reason, each.told())
        for each in causes
        if each is not None
    )


def _is_replaced_alone(pods: list[Pod]) -> bool:
    """Whether a failed container or pod starts again by itself, while the group goes on."""
    return any(pod.spec.restart_policy != "Never" for pod in pods)


def _all_failures(objects: JobObjects, past: Sequence[Failure]) -> list[Failure]:
    """In the order in which they were noticed: the kubelet's times are whole seconds, and many ranks fail in one."""
    known = {each.key: each for each in past}
    for pod in objects.pods.values():
        for each in failures_of(pod):
            # The first word about a failure counts: later the pod is being removed, and all looks like aftermath.
            known.setdefault(each.key, each)
    return list(known.values())


def _guessed(objects: JobObjects) -> JobSet:
    """What its pods tell of a JobSet that is not to be seen: not yet, or never with the role of M33 alone."""
    groups = Counter(
        group_of(pod) for pod in objects.pods.values() if pod.metadata.deletion_timestamp is None
    )
    jobs = [
        ReplicatedJob(name, template=JobTemplate(JobSpec(count))) for name, count in groups.items()
    ]
    restarts = max((attempt_of(pod) for pod in objects.pods.values()), default=0)
    trainjob = objects.trainjob
    meta: Meta = Meta("") if trainjob is None else trainjob.metadata
    return JobSet(meta, JobSetSpec(jobs), JobSetStatus(restarts=restarts))


def _since_resumption(failures: list[Failure], job_set: JobSet | None) -> list[Failure]:
    """A suspension ends containers as well, within the attempt that goes on after it: no cause of anything."""
    for condition in () if job_set is None else job_set.status.conditions:
        resumed = condition.last_transition_time
        if condition.type == "Suspended" and not condition.is_true and resumed is not None:
            return [each for each in failures if each.time > resumed.timestamp()]
    return failures


def _shown_pods(objects: JobObjects, attempt: int) -> list[Pod]:
    """Of the current attempt, one for each rank: the newest, rather than one that is going."""
    newest: dict[tuple[str, int], Pod] = {}
    for pod in sorted(
        objects.pods.values(),
        key=lambda pod: (
            pod.metadata.deletion_timestamp is None,
            str(pod.metadata.creation_timestamp),
        ),
    ):
        if attempt_of(pod) == attempt:
            newest[group_of(pod), index_of(pod)] = pod
    return sorted(newest.values(), key=lambda pod: (group_of(pod), index_of(pod)))


def _pod_reason(pod: Pod, objects: JobObjects, absent: Mapping[str, Absence]) -> str:
    phase = phase_of(pod)
    absence = absent.get(pod.spec.node_name)
    if absence is not None and not has_ended(pod):
        return f"node {pod.spec.node_name} {absence.words}"
    if phase in (PodPhase.PENDING, PodPhase.INITIALIZING):
        return why_pod_waits(pod, objects.events_about(pod)).message
    failed = failures_of(pod)
    if failed:
        return failed[0].told()
    lost = lost_words(pod)
    return lost[1] if lost is not None else ""


def _max_restarts(job_set: JobSet | None) -> int:
    if job_set is None or job_set.spec.failure_policy is None:
        return 0
    return job_set.spec.failure_policy.max_restarts


def _started(objects: JobObjects) -> float | None:
    """When the first container that is still known began."""
    times = [
        state.started_at.timestamp()
        for pod in objects.pods.values()
        for status in pod.status.container_statuses
        for state in (status.state.running, status.state.terminated, status.last_state.terminated)
        if state is not None and state.started_at is not None
    ]
    return min(times, default=None)


def _ended(trainjob: TrainJob) -> float | None:
    for condition in trainjob.status.conditions:
        if condition.type in ("Complete", "Failed") and condition.is_true:
            time = condition.last_transition_time
            return time.timestamp() if time is not None else None
    return None
