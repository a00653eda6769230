"""Phases: the table of moves, the summary of the first API, and the end of a job's time."""

from __future__ import annotations

from itertools import product

import pytest

from astrago_trainer.core.lifecycle import (
    MEANINGS,
    MOVES,
    TERMINAL,
    Phase,
    can_move,
    is_expired,
    is_terminal,
    next_phase,
    seed_state,
)

ALL_PAIRS = list(product(Phase, Phase))


def test_the_phases_are_those_of_the_design() -> None:
    assert [str(phase) for phase in Phase] == [
        "Queued",
        "Pending",
        "Pulling",
        "Initializing",
        "Running",
        "Restarting",
        "Suspended",
        "Complete",
        "Failed",
        "Deleting",
    ]


def test_every_phase_has_moves_and_a_meaning() -> None:
    assert set(MOVES) == set(MEANINGS) == set(Phase)


@pytest.mark.parametrize(("before", "after"), ALL_PAIRS)
def test_the_next_phase_is_always_a_legal_move(before: Phase, after: Phase) -> None:
    assert can_move(before, next_phase(before, after))


@pytest.mark.parametrize(("before", "after"), ALL_PAIRS)
def test_nothing_but_deletion_follows_the_end(before: Phase, after: Phase) -> None:
    if before in TERMINAL:
        expected = Phase.DELETING if after is Phase.DELETING else before
        assert next_phase(before, after) is expected


@pytest.mark.parametrize("observed", Phase)
def test_a_job_that_is_being_deleted_stays_so(observed: Phase) -> None:
    assert next_phase(Phase.DELETING, observed) is Phase.DELETING


@pytest.mark.parametrize("observed", Phase)
def test_the_first_observation_is_taken_as_it_is(observed: Phase) -> None:
    assert next_phase(None, observed) is observed


@pytest.mark.parametrize(
    ("current", "observed", "expected"),
    [
        pytest.param(Phase.RUNNING, Phase.PENDING, Phase.RESTARTING, id="pods wait again"),
        pytest.param(Phase.RUNNING, Phase.PULLING, Phase.RESTARTING, id="another node pulls"),
        pytest.param(Phase.RUNNING, Phase.INITIALIZING, Phase.RESTARTING, id="init runs again"),
        pytest.param(Phase.RESTARTING, Phase.PENDING, Phase.RESTARTING, id="restart goes on"),
        pytest.param(Phase.RESTARTING, Phase.RUNNING, Phase.RUNNING, id="restart is over"),
        pytest.param(Phase.RUNNING, Phase.QUEUED, Phase.QUEUED, id="preempted by a queue"),
        pytest.param(Phase.SUSPENDED, Phase.PENDING, Phase.PENDING, id="resumed"),
        pytest.param(Phase.QUEUED, Phase.COMPLETE, Phase.COMPLETE, id="all steps were missed"),
        pytest.param(Phase.COMPLETE, Phase.RUNNING, Phase.COMPLETE, id="stale answer"),
        pytest.param(Phase.FAILED, Phase.COMPLETE, Phase.FAILED, id="one end only"),
    ],
)
def test_observations_are_read_in_the_light_of_the_past(
    current: Phase, observed: Phase, expected: Phase
) -> None:
    assert next_phase(current, observed) is expected


@pytest.mark.req("M24", "M131")
def test_the_seeds_know_three_states() -> None:
    assert {phase: seed_state(phase) for phase in Phase} == {
        **dict.fromkeys(Phase, "Running"),
        Phase.COMPLETE: "Complete",
        Phase.FAILED: "Failed",
    }


@pytest.mark.req("M131")
def test_a_finished_job_keeps_its_state_while_it_is_deleted() -> None:
    assert seed_state(Phase.DELETING, outcome=Phase.COMPLETE) == "Complete"
    assert seed_state(Phase.DELETING, outcome=Phase.FAILED) == "Failed"


def test_terminal_phases_are_complete_and_failed() -> None:
    assert [phase for phase in Phase if is_terminal(phase)] == [Phase.COMPLETE, Phase.FAILED]


@pytest.mark.req("X9", "M134")
@pytest.mark.parametrize(
    ("finished_at", "ttl_seconds", "now", "expected"),
    [
        pytest.param(100.0, 86_400, 86_499.9, False, id="a moment before"),
        pytest.param(100.0, 86_400, 86_500.0, True, id="to the second"),
        pytest.param(100.0, 0, 100.0, True, id="at once"),
        pytest.param(None, 0, 1e12, False, id="has not ended"),
        pytest.param(100.0, None, 1e12, False, id="no limit"),
        pytest.param(100.0, 60, 50.0, False, id="clock went backwards"),
    ],
)
def test_a_job_expires_when_its_time_after_the_end_is_over(
    finished_at: float | None, ttl_seconds: int | None, now: float, expected: bool
) -> None:
    assert is_expired(finished_at, ttl_seconds, now) is expected
