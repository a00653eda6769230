"""What is to be done with a job: a function of what is wished, what is known and what is seen. No I/O.

| the job                         | what is seen          | step                                                      |
| ------------------------------- | --------------------- | --------------------------------------------------------- |
| is to be deleted                | not asked             | REMOVE: stop it, then logs and rows go                    |
| is to run anew                  | not asked             | RENEW: stop it, then the next run begins                  |
| is over, its time too           | not asked             | REAP: stop it, the history stays                          |
| is over                         | not asked             | WAIT                                                      |
| was not handed to the engine    | not asked             | APPLY: the engine takes it, once, however often it is told |
| runs, or should                 | not asked yet         | LOOK                                                      |
| was handed over                 | gone                  | RENEW while restarts are left, else it has failed         |
| is to be suspended, or resumed  | it is not             | APPLY                                                     |
| as wished                       | anything              | WAIT, and note what is seen                               |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from astrago_trainer.core.lifecycle import Phase, is_expired, is_terminal, next_phase
from astrago_trainer.engines.base import Ended, Observation
from astrago_trainer.store.jobs import Job

LOST = "LostByEngine"
REJECTED = "Rejected"
UNAVAILABLE = "EngineUnavailable"

MOST_MESSAGE = 2000
MOST_REASON = 200
"""Characters of what engines say that are kept."""


class Step(StrEnum):
    """The one thing to do next."""

    WAIT = "wait"
    LOOK = "look"
    APPLY = "apply"
    REMOVE = "remove"
    RENEW = "renew"
    REAP = "reap"


@dataclass(frozen=True, slots=True)
class Note:
    """For the history."""

    reason: str
    message: str
    time: float | None = None
    """None: now."""


@dataclass(frozen=True, slots=True)
class Decision:
    """A step, and what changes: at once with WAIT, after it was done with the others."""

    step: Step
    values: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def needs_care(job: Job, now: float) -> bool:
    """Whether anything is to be done or watched."""
    return decide(job, None, now).step is not Step.WAIT


def decide(job: Job, seen: Observation | None, now: float) -> Decision:
    """The next step; `seen` is None before the engine was asked, `now` is of the steady clock."""
    if job.is_deleting:
        return Decision(Step.REMOVE)
    if job.wanted_run > job.run:
        return _run_anew(job)
    if is_terminal(Phase(job.phase)):
        return _after_the_end(job, now)
    if not job.is_handed and (seen is None or seen.is_gone):
        return Decision(Step.APPLY)
    if seen is None:
        return Decision(Step.LOOK)
    if seen.phase is None:
        return _lost(job, now)
    is_over = is_terminal(seen.phase)
    is_as_wished = is_over or job.is_suspended == (seen.phase is Phase.SUSPENDED)
    return _noted(job, seen, now, Step.WAIT if is_as_wished else Step.APPLY)


def decide_rejected(job: Job, why: str, now: float, reason: str = "") -> Decision:
    """The engine will never take it: the message is the user's to read."""
    return _failed(job, reason or REJECTED, why, now)


def decide_unavailable(job: Job, why: str) -> Decision:
    """The engine does not answer; told once, because it is asked again and again."""
    if is_terminal(Phase(job.phase)) or job.reason == UNAVAILABLE:
        return Decision(Step.WAIT)
    values = {"reason": UNAVAILABLE, "message": clipped(why, MOST_MESSAGE)}
    return Decision(Step.WAIT, values, (Note(UNAVAILABLE, values["message"]),))


def _run_anew(job: Job) -> Decision:
    """Asked for by people: counting begins again."""
    note = Note("RunBegins", f"run {job.wanted_run} of the same request begins")
    return Decision(
        Step.RENEW,
        {**_fresh(job.wanted_run), "phase": Phase.PENDING.value, "lost": 0, "restarts": 0},
        (note,),
    )


def _lost(job: Job, now: float) -> Decision:
    what = f"the {job.engine} engine no longer has the job, though nobody here ended it"
    if job.restarts >= job.max_restarts:
        return _failed(job, LOST, f"{what}; its {job.max_restarts} restarts are used up", now)
    again = job.restarts + 1
    message = f"{what}; it starts again, restart {again} of {job.max_restarts}"
    phase = next_phase(Phase(job.phase), Phase.RESTARTING)
    return Decision(
        Step.RENEW,
        {
            **_fresh(job.run + 1),
            "phase": phase.value,
            "reason": LOST,
            "message": message,
            "lost": again,
            "restarts": again,
            "started_at": job.started_at,
        },
        (Note(LOST, message),),
    )


def _fresh(run: int) -> dict[str, Any]:
    """A run that the engine does not know yet."""
    return {
        "run": run,
        "wanted_run": run,
        "attempt": 0,
        "outcome": None,
        "reason": "",
        "message": "",
        "is_handed": False,
        "is_reaped": False,
        "engine_events": -1,
        "started_at": None,
        "finished_at": None,
        "settled_at": None,
    }


def _after_the_end(job: Job, now: float) -> Decision:
    if job.is_reaped or not is_expired(job.settled_at, job.ttl_seconds, now):
        return Decision(Step.WAIT)
    message = f"{job.ttl_seconds} s after its end; logs, events and the effective objects are kept"
    return Decision(Step.REAP, {"is_reaped": True}, (Note("Expired", message),))


def _failed(job: Job, reason: str, message: str, now: float) -> Decision:
    failed = Phase.FAILED.value
    values = {
        "phase": failed,
        "outcome": failed,
        "reason": reason,
        "message": clipped(message, MOST_MESSAGE),
        "finished_at": now,
        "settled_at": now,
    }
    return Decision(Step.WAIT, values, (Note(failed, f"{reason}: {values['message']}"),))


def _noted(job: Job, seen: Observation, now: float, step: Step) -> Decision:
    """What of the observation is new; a phase only moves forward, whatever a stale answer says."""
    assert seen.phase is not None
    before, after = Phase(job.phase), next_phase(Phase(job.phase), seen.phase)
    is_believed = after is seen.phase or after is Phase.RESTARTING
    found: dict[str, Any] = {"is_handed": True}
    if is_believed:
        found |= {
            "phase": after.value,
            "reason": clipped(seen.reason, MOST_REASON),
            "message": clipped(seen.message, MOST_MESSAGE),
            "attempt": max(job.attempt, seen.attempt),
            "restarts": max(job.restarts, job.lost + seen.restarts),
            "max_restarts": max(job.max_restarts, seen.max_restarts),
            "started_at": job.started_at if job.started_at is not None else seen.started_at,
        }
    if is_terminal(after):
        finished = seen.ended_at if seen.ended_at is not None else now
        found |= {"outcome": after.value, "finished_at": finished, "settled_at": now}
    if seen.events:
        found["engine_events"] = max(job.engine_events, seen.events[-1].number)
    values = {name: value for name, value in found.items() if getattr(job, name) != value}
    missed = _missed_restarts(job, seen) if is_believed else ()
    before = Phase.RESTARTING if missed else before
    notes = (_move(before, after, seen.reason, seen.message),) if after is not before else ()
    return Decision(step, values, (*missed, *notes))


def ends_of(job: Job, seen: Observation) -> list[Ended]:
    """How the attempts ended that were under way or to come when the job was last looked at."""
    return [each for each in seen.ended if job.attempt <= each.attempt < seen.attempt]


def _missed_restarts(job: Job, seen: Observation) -> tuple[Note, ...]:
    """Those that came between two looks: the next attempt had begun when we looked again."""
    before, notes = Phase(job.phase), []
    for end in ends_of(job, seen):
        is_known = end.attempt == job.attempt and before is Phase.RESTARTING
        if end.phase is Phase.FAILED and not is_known:
            told = _move(before, Phase.RESTARTING, end.reason, end.message)
            notes.append(replace(told, time=end.time))
            before = Phase.RESTARTING
    return tuple(notes)


def _move(before: Phase, after: Phase, reason: str, message: str) -> Note:
    why = ": ".join(part for part in (reason, message) if part)
    return Note(after.value, clipped(f"was {before}" + (f"; {why}" if why else ""), MOST_MESSAGE))


def clipped(text: str, most: int) -> str:
    """As much as is kept; the zero character is refused by PostgreSQL."""
    text = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return text if len(text) <= most else f"{text[: most - 1]}…"
