"""Deciding: a table of what is known and seen, and laws that hold for anything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from astrago_trainer.core.lifecycle import Phase, can_move, is_terminal
from astrago_trainer.engines.base import GONE, Ended, Event, Observation
from astrago_trainer.service.decide import (
    LOST,
    REJECTED,
    UNAVAILABLE,
    Decision,
    Note,
    Step,
    decide,
    decide_rejected,
    decide_unavailable,
    needs_care,
)
from astrago_trainer.store.jobs import Job

NOW = 1000.0
NEW = Job(
    1, "uid", "team", "job", "ann", "pytorch", "rt", 2, 0, "fake", None, ttl_seconds=60,
    max_restarts=2, created_at=1.0,
)  # fmt: skip
RUNNING = NEW._replace(phase="Running", is_handed=True)
OVER = RUNNING._replace(phase="Complete", outcome="Complete", settled_at=NOW, finished_at=NOW)
SEEN = Observation(Phase.RUNNING)

TABLE = {
    "to be deleted": (RUNNING._replace(is_deleting=True, phase="Deleting"), None, "remove"),
    "to be deleted, although lost": (RUNNING._replace(is_deleting=True), GONE, "remove"),
    "to be deleted before it was handed over": (NEW._replace(is_deleting=True), None, "remove"),
    "to run anew": (RUNNING._replace(wanted_run=2), None, "renew"),
    "over, to run anew": (OVER._replace(wanted_run=2), None, "renew"),
    "over": (OVER, None, "wait"),
    "over, and its time too": (OVER._replace(settled_at=NOW - 60), None, "reap"),
    "over for long, and the engine has forgotten it": (
        OVER._replace(settled_at=NOW - 60, is_reaped=True), None, "wait",
    ),
    "over, without a limit": (OVER._replace(settled_at=0, ttl_seconds=None), None, "wait"),
    "over, by a clock that was set back": (OVER._replace(settled_at=NOW + 3600), None, "wait"),
    "new": (NEW, None, "apply"),
    "new, after a crash: the engine has it": (NEW, SEEN, "wait"),
    "new, and the engine has lost it at once": (NEW, GONE, "apply"),
    "running, not looked at": (RUNNING, None, "look"),
    "running": (RUNNING, SEEN, "wait"),
    "lost": (RUNNING, GONE, "renew"),
    "lost too often": (RUNNING._replace(restarts=2), GONE, "wait"),
    "to be suspended": (RUNNING._replace(is_suspended=True), SEEN, "apply"),
    "suspended": (RUNNING._replace(is_suspended=True), Observation(Phase.SUSPENDED), "wait"),
    "to be resumed": (
        RUNNING._replace(phase="Suspended"), Observation(Phase.SUSPENDED), "apply",
    ),
    "to be suspended, but it has ended": (
        RUNNING._replace(is_suspended=True), Observation(Phase.COMPLETE), "wait",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_the_table(case):
    job, seen, step = TABLE[case]

    assert decide(job, seen, NOW).step == step


def test_what_is_seen_is_noted_once():
    seen = Observation(
        Phase.RUNNING, "Started", "all pods run", attempt=1, restarts=1, started_at=5.0,
        events=(Event(0, 5.0, "Started", ""), Event(3, 6.0, "PodFailed", "")),
    )  # fmt: skip

    first = decide(NEW, seen, NOW)
    again = decide(NEW._replace(**first.values), seen, NOW)

    assert first == Decision(
        Step.WAIT,
        {
            "is_handed": True,
            "phase": "Running",
            "reason": "Started",
            "message": "all pods run",
            "attempt": 1,
            "restarts": 1,
            "started_at": 5.0,
            "engine_events": 3,
        },
        (Note("Running", "was Pending; Started: all pods run"),),
    )
    assert again == Decision(Step.WAIT)


def test_a_restart_that_came_between_two_looks_is_told_with_its_cause():
    ended = (Ended(0, 7.0, "Error", "rank 1 broke"), Ended(1, 8.0, "Error", "rank 0 broke"))
    seen = Observation(Phase.RUNNING, attempt=2, ended=ended)

    assert decide(RUNNING, seen, NOW).notes == (
        Note("Restarting", "was Running; Error: rank 1 broke", 7.0),
        Note("Restarting", "was Restarting; Error: rank 0 broke", 8.0),
        Note("Running", "was Restarting"),
    )


def test_a_restart_that_was_watched_is_told_once():
    ended = (Ended(0, 7.0, "Error", "rank 1 broke"),)
    seen = Observation(Phase.RUNNING, attempt=1, ended=ended)

    decision = decide(RUNNING._replace(phase="Restarting"), seen, NOW)
    assert decision.notes == (Note("Running", "was Restarting"),)


def test_a_resumption_is_no_restart():
    ended = (Ended(0, 7.0, "Suspended", "", Phase.SUSPENDED),)
    seen = Observation(Phase.RUNNING, attempt=1, ended=ended)

    decision = decide(RUNNING._replace(phase="Suspended"), seen, NOW)
    assert decision.notes == (Note("Running", "was Suspended"),)
    assert "restarts" not in decision.values


def test_an_end_has_its_time_and_outcome():
    decision = decide(RUNNING, Observation(Phase.FAILED, "Exit1", "rank 1", ended_at=990.0), NOW)

    assert decision.values == {
        "phase": "Failed",
        "outcome": "Failed",
        "reason": "Exit1",
        "message": "rank 1",
        "finished_at": 990.0,
        "settled_at": NOW,
    }


def test_a_lost_job_is_explained_and_begins_a_run_of_its_own():
    decision = decide(RUNNING._replace(restarts=1, attempt=1, started_at=5.0), GONE, NOW)

    assert decision.step is Step.RENEW
    after = RUNNING._replace(**decision.values)
    assert (after.run, after.wanted_run, after.phase, after.is_handed) == (
        2,
        2,
        "Restarting",
        False,
    )
    assert (after.restarts, after.lost, after.attempt) == (2, 2, 0)
    assert decision.notes == (
        Note(
            LOST,
            "the fake engine no longer has the job, though nobody here ended it; it starts again, "
            "restart 2 of 2",
        ),
    )


def test_a_job_that_was_lost_too_often_has_failed_and_says_so():
    decision = decide(RUNNING._replace(max_restarts=0), GONE, NOW)

    assert decision.values["phase"] == "Failed"
    assert decision.values["message"].endswith("its 0 restarts are used up")


def test_a_rejected_job_has_failed_with_the_reason():
    decision = decide_rejected(NEW, "no such image\0", NOW)

    assert (decision.values["phase"], decision.values["reason"]) == ("Failed", REJECTED)
    assert decision.values["message"] == "no such image\N{REPLACEMENT CHARACTER}"


def test_an_engine_that_does_not_answer_is_told_of_once():
    first = decide_unavailable(RUNNING, "connection refused")
    again = decide_unavailable(RUNNING._replace(**first.values), "connection refused")

    assert first.values == {"reason": UNAVAILABLE, "message": "connection refused"}
    assert again == Decision(Step.WAIT)
    assert decide_unavailable(OVER, "connection refused") == Decision(Step.WAIT)


phases = some.sampled_from([phase.value for phase in Phase if phase is not Phase.DELETING])
some_jobs = some.builds(
    NEW._replace,
    phase=phases,
    is_deleting=some.booleans(),
    is_suspended=some.booleans(),
    is_handed=some.booleans(),
    is_reaped=some.booleans(),
    run=some.just(1),
    wanted_run=some.sampled_from([1, 1, 1, 2]),
    restarts=some.integers(0, 3),
    attempt=some.integers(0, 3),
    max_restarts=some.integers(0, 3),
    settled_at=some.none() | some.floats(0, 2 * NOW),
    ttl_seconds=some.none() | some.integers(0, 2000),
)
some_observations = some.just(GONE) | some.builds(
    Observation,
    phase=some.sampled_from([phase for phase in Phase if phase is not Phase.DELETING]),
    reason=some.text(max_size=5),
    message=some.text(max_size=5),
    attempt=some.integers(0, 5),
    restarts=some.integers(0, 5),
    ended_at=some.none() | some.floats(0, NOW),
)


@settings(max_examples=300, deadline=None)
@given(some_jobs, some.none() | some_observations)
def test_laws_of_a_decision(job, seen):
    decision = decide(job, seen, NOW)
    after = job._replace(**decision.values)

    if after.run == job.run:
        assert can_move(Phase(job.phase), Phase(after.phase)), "states only move forward"
        if is_terminal(Phase(job.phase)):
            assert after.phase == job.phase, "an end is an end"
        assert after.attempt >= job.attempt
        assert after.restarts >= job.restarts or job.wanted_run > job.run
    else:
        assert decision.step is Step.RENEW, "a run begins after the last one was stopped"
        assert not after.is_handed
    if job.is_deleting:
        assert decision == Decision(Step.REMOVE), "nothing comes before a deletion"
    if decision.step is Step.RENEW and job.wanted_run == job.run:
        assert job.restarts < job.max_restarts, "within its limit"
    if decision.step in (Step.WAIT, Step.LOOK) and after.phase != job.phase:
        assert decision.notes, "each change of state is told"
    if decision.step is Step.APPLY and seen is not None and seen.phase is not None:
        assert job.is_suspended != (seen.phase is Phase.SUSPENDED)


@settings(max_examples=200, deadline=None)
@given(some_jobs, some_observations)
def test_deciding_again_on_the_same_changes_nothing(job, seen):
    job = job._replace(ttl_seconds=None)  # a time of nothing is over at once
    decision = decide(job, seen, NOW)
    if decision.step is not Step.WAIT:
        return

    assert decide(job._replace(**decision.values), seen, NOW) == Decision(Step.WAIT)


@settings(max_examples=200, deadline=None)
@given(some_jobs, some.lists(some_observations, max_size=12))
def test_whatever_an_engine_says_the_story_goes_forward_and_restarts_are_counted(job, story):
    job = job._replace(is_deleting=False, phase="Pending", restarts=0, attempt=0, lost=0)
    runs = 1
    for seen in story:
        seen = replace(seen, max_restarts=0)
        decision = decide(job, seen, NOW)
        if decision.step is Step.RENEW and job.wanted_run == job.run:
            runs += 1
        after = job._replace(**decision.values)
        if is_terminal(Phase(job.phase)) and after.run == job.run:
            assert after.phase == job.phase
        job = after
    assert runs - 1 <= job.max_restarts


def test_care_is_needed_as_long_as_something_may_happen():
    needed = [needs_care(job, NOW) for job in (NEW, RUNNING, OVER, OVER._replace(wanted_run=2))]

    assert needed == [True, True, False, True]
