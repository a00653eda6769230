"""What one look at a job adds to its history."""

from __future__ import annotations

import json

import pytest

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Ended, Observation
from astrago_trainer.notify.notices import Webhook
from astrago_trainer.service.decide import decide
from astrago_trainer.service.history import make_change
from astrago_trainer.store.jobs import Attempt, Job

NOW = 100.0
RUNNING = Job(
    1, "uid", "team", "job", "ann", "pytorch", "rt", 2, 0, "fake", None,
    ttl_seconds=None, max_restarts=5, created_at=1.0, started_at=2.0, phase="Running", is_handed=True,
)  # fmt: skip
BROKE = Ended(0, 7.0, "Error", "rank 1 broke")


def change_by(job: Job, seen: Observation):
    found = make_change(
        job,
        decide(job, seen, NOW),
        seen,
        known_pods=(),
        time=NOW,
        targets=lambda _: [Webhook(url="https://hooks.example/1")],
    )
    assert found is not None
    return found


def test_attempts_that_nobody_saw_are_written_with_their_times_and_causes():
    ended = (BROKE, Ended(1, 8.0, "OOMKilled", "rank 0 used too much"))

    change = change_by(RUNNING, Observation(Phase.RUNNING, attempt=2, ended=ended))

    assert change.attempts == (
        Attempt(1, 0, "Failed", "Error", "rank 1 broke", 2.0, 7.0),
        Attempt(1, 1, "Failed", "OOMKilled", "rank 0 used too much", 7.0, 8.0),
        Attempt(1, 2, "Running", "", "", 8.0, None),
    )
    assert [(each.time, each.reason) for each in change.events] == [
        (7.0, "Restarting"),
        (8.0, "Restarting"),
        (NOW, "Running"),
    ]


def test_an_attempt_whose_restart_was_watched_keeps_its_cause():
    """The next one tells that it starts; that is no reason why the one before has ended."""
    job = RUNNING._replace(phase="Restarting", reason="Error", message="rank 1 broke; restart 1")
    starting = Observation(Phase.PENDING, "Starting", "attempt 1 starts", attempt=1, ended=(BROKE,))

    assert change_by(job, starting).attempts == (
        Attempt(1, 0, "Failed", "Error", "rank 1 broke", 2.0, NOW),
        Attempt(1, 1, "Restarting", "Starting", "attempt 1 starts", NOW, None),
    )


def test_without_a_word_of_the_engine_the_last_that_was_known_stands():
    job = RUNNING._replace(phase="Restarting", reason="Error", message="rank 1 broke; restart 1")

    assert change_by(job, Observation(Phase.RUNNING, attempt=1)).attempts[0] == Attempt(
        1, 0, "Failed", "Error", "rank 1 broke; restart 1", 2.0, NOW
    )


@pytest.mark.parametrize("phase", ["Running", "Restarting"])
def test_a_notification_of_a_restart_names_its_cause(phase):
    seen = Observation(Phase.RUNNING, attempt=1, restarts=1, ended=(BROKE,))

    (delivery,) = change_by(RUNNING._replace(phase=phase), seen).deliveries

    notice = json.loads(delivery.body)["notice"]
    assert (notice["kind"], notice["reason"], notice["message"]) == (
        "restarted",
        "Error",
        "rank 1 broke",
    )


def test_what_an_engine_says_of_an_end_is_kept_within_bounds_wherever_it_goes():
    long = Ended(0, 7.0, "E" * 999, "\0" + "x" * 9999)

    change = change_by(RUNNING, Observation(Phase.RUNNING, attempt=1, restarts=1, ended=(long,)))

    (delivery,) = change.deliveries
    told = json.loads(delivery.body)["notice"]
    for reason, message in (change.attempts[0][3:5], (told["reason"], told["message"])):
        assert (len(reason), len(message)) == (200, 2000)
        assert message.startswith("\N{REPLACEMENT CHARACTER}x")


def test_a_resumption_is_no_restart_that_people_are_told_of():
    suspended = Ended(0, 7.0, "Suspended", "suspended on request", Phase.SUSPENDED)
    seen = Observation(Phase.RUNNING, attempt=1, ended=(suspended,))

    change = change_by(RUNNING._replace(phase="Suspended"), seen)

    assert change.deliveries == ()
    assert change.attempts[0].phase == "Suspended"


def test_a_job_that_was_lost_is_told_so():
    seen = Observation(None)

    (delivery,) = change_by(RUNNING._replace(attempt=1), seen).deliveries

    assert json.loads(delivery.body)["notice"]["reason"] == "LostByEngine"
