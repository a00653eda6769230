"""From a decision and what was seen to one guarded change of the store: values, events, attempts, pods, deliveries."""

from __future__ import annotations

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import Observation, Pod
from astrago_trainer.service.decide import Decision, clipped
from astrago_trainer.service.identity import SYSTEM
from astrago_trainer.service.outbox import Targets, told_of
from astrago_trainer.store.jobs import Attempt, Change, Event, Job, PodRow

_MOST_EVENTS_AT_ONCE = 100
"""Of one observation; a job that restarted a thousand times while nobody looked tells its last hundred."""


def make_change(
    job: Job,
    decision: Decision,
    seen: Observation | None,
    *,
    known_pods: tuple[Pod, ...],
    time: float,
    targets: Targets,
) -> Change | None:
    """None when nothing is new."""
    after = job._replace(**decision.values)
    pods = _pods(after, seen, known_pods)
    if not decision.values and not pods and not decision.notes:
        return None
    return Change(
        job,
        decision.values,
        _numbered(job, [*_told_by_engine(job, seen), *_told_by_us(decision, time)]),
        attempts=_attempts(job, after, seen, time),
        pods=pods,
        deliveries=told_of(job, after, targets, time),
    )


def _told_by_engine(job: Job, seen: Observation | None) -> list[Event]:
    if seen is None:
        return []
    new = [each for each in seen.events if each.number > job.engine_events]
    return [
        Event(0, each.time, job.engine, clipped(each.reason, 200), clipped(each.message, 2000))
        for each in new[-_MOST_EVENTS_AT_ONCE:]
    ]


def _told_by_us(decision: Decision, time: float) -> list[Event]:
    return [Event(0, time, SYSTEM.name, note.reason, note.message) for note in decision.notes]


def _numbered(job: Job, events: list[Event]) -> tuple[Event, ...]:
    return tuple(event._replace(number=job.events + place) for place, event in enumerate(events))


def _attempts(job: Job, after: Job, seen: Observation | None, time: float) -> tuple[Attempt, ...]:
    """The attempt that goes on, and the one before it that has ended; when one began is written once."""
    is_over = is_terminal(Phase(after.phase))
    if after.run != job.run or (seen is None and not is_over):
        return ()
    rows = []
    if after.attempt > job.attempt:
        why = (Phase.FAILED.value, after.reason, after.message)
        rows.append(Attempt(job.run, job.attempt, *why, started_at=time, ended_at=time))
    began = after.started_at if after.attempt == 0 else time
    ended = after.finished_at if is_over else None
    why = (after.phase, after.reason, after.message)
    rows.append(Attempt(after.run, after.attempt, *why, started_at=began, ended_at=ended))
    return tuple(rows)


def _pods(after: Job, seen: Observation | None, known: tuple[Pod, ...]) -> tuple[PodRow, ...]:
    """Those that are not as they were."""
    if seen is None:
        return ()
    before = set(known)
    return tuple(
        PodRow(
            after.run,
            pod.name,
            seen.attempt,
            pod.job,
            pod.index,
            pod.phase.value,
            pod.restarts,
            pod.exit_code,
            clipped(pod.reason, 2000),
            pod.node,
            pod.address,
        )
        for pod in seen.pods
        if pod not in before
    )
