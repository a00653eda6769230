"""From a decision and what was seen to one guarded change of the store: values, events, attempts, pods, deliveries."""

from __future__ import annotations

from dataclasses import replace

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import Ended, Observation, Pod
from astrago_trainer.service.decide import MOST_MESSAGE, MOST_REASON, Decision, clipped, ends_of
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
    ends = _ends(job, after, seen, time)
    is_seen = seen is not None or is_terminal(Phase(after.phase))
    return Change(
        job,
        decision.values,
        _numbered(job, [*_told_by_engine(job, seen), *_told_by_us(decision, time)]),
        attempts=_attempts(job, after, ends) if is_seen else (),
        pods=pods,
        deliveries=told_of(job, after, ends, targets, time),
    )


def _told_by_engine(job: Job, seen: Observation | None) -> list[Event]:
    if seen is None:
        return []
    new = [each for each in seen.events if each.number > job.engine_events]
    return [
        Event(
            0,
            each.time,
            job.engine,
            clipped(each.reason, MOST_REASON),
            clipped(each.message, MOST_MESSAGE),
        )
        for each in new[-_MOST_EVENTS_AT_ONCE:]
    ]


def _told_by_us(decision: Decision, time: float) -> list[Event]:
    return [
        Event(0, time if note.time is None else note.time, SYSTEM.name, note.reason, note.message)
        for note in decision.notes
    ]


def _numbered(job: Job, events: list[Event]) -> tuple[Event, ...]:
    return tuple(event._replace(number=job.events + place) for place, event in enumerate(events))


def _attempts(job: Job, after: Job, ends: list[Ended]) -> tuple[Attempt, ...]:
    """The attempt that goes on, and those before it that have ended; when one began is written once."""
    if after.run != job.run:
        return ()
    rows, began = [], after.started_at
    for end in ends:
        why = (end.phase.value, end.reason, end.message)
        rows.append(Attempt(job.run, end.attempt, *why, started_at=began, ended_at=end.time))
        began = end.time
    ended = after.finished_at if is_terminal(Phase(after.phase)) else None
    why = (after.phase, after.reason, after.message)
    rows.append(Attempt(after.run, after.attempt, *why, started_at=began, ended_at=ended))
    return tuple(rows)


def _ends(job: Job, after: Job, seen: Observation | None, time: float) -> list[Ended]:
    """Of attempts that are over by now. One whose restart was watched has ended when that was seen: clocks differ."""
    if seen is None or after.run != job.run or after.attempt == job.attempt:
        return []
    found = {job.attempt: Ended(job.attempt, time, job.reason, job.message)}
    for end in ends_of(job, seen):
        reason, message = clipped(end.reason, MOST_REASON), clipped(end.message, MOST_MESSAGE)
        found[end.attempt] = replace(end, reason=reason, message=message)
    if job.phase == Phase.RESTARTING:
        found[job.attempt] = replace(found[job.attempt], time=time)
    return list(found.values())


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
            clipped(pod.reason, MOST_MESSAGE),
            pod.node,
            pod.address,
        )
        for pod in seen.pods
        if pod not in before
    )
