"""Answers of several servers are those that a single job would give, whatever fails on the way."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tests.service import process_histories
from tests.service.histories import check_histories
from tests.service.linear import Operation, State, is_linearizable

JOB = State("a", False, False)
SUSPENDED = JOB._replace(is_suspended=True)
CREATED = Operation("create", 0, 1, JOB)
KEYED = replace(CREATED, key="k")


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_every_history_has_an_order(tmp_path, database, request):
    url = None if database == "sqlite" else request.getfixturevalue("postgres")
    found = asyncio.run(check_histories(tmp_path, url, 15, seed=1))

    assert found["wrong"] == []
    assert found["unanswered"] > 0, "something failed on the way"


def test_servers_that_are_killed_and_paused_answer_as_one(tmp_path):
    table = asyncio.run(process_histories.check_histories(tmp_path / "data", None, 12, seed=1))

    assert table.failed == 0, "\n".join(table.lines)


@pytest.mark.parametrize(
    "history",
    [
        [CREATED, Operation("suspend", 2, 3, SUSPENDED), Operation("resume", 4, 5, JOB)],
        # At once: either may come first.
        [CREATED, Operation("suspend", 2, 5, SUSPENDED), Operation("resume", 3, 4, JOB)],
        [CREATED, Operation("suspend", 2, 5, SUSPENDED), Operation("get", 3, 4, JOB)],
        # Without an answer it may have been done, later, or never.
        [CREATED, Operation("suspend", 2, None), Operation("get", 3, 4, SUSPENDED)],
        [CREATED, Operation("suspend", 2, None), Operation("get", 3, 4, JOB)],
        [
            CREATED,
            Operation("delete", 2, 3, JOB._replace(is_deleting=True)),
            Operation("get", 4, 5, "missing"),
        ],
        # A key gets the first answer again, also when the job is suspended or gone.
        [KEYED, Operation("suspend", 2, 3, SUSPENDED), replace(KEYED, asked=4, answered_at=5)],
        [
            KEYED,
            Operation("delete", 2, 3, JOB._replace(is_deleting=True)),
            Operation("list", 4, 5, "missing"),
            replace(KEYED, asked=6, answered_at=7),
        ],
        [
            Operation("create", 0, None, key="k"),
            Operation("get", 1, 2, JOB),
            replace(KEYED, asked=3, answered_at=4),
        ],
        # A second restart before the first has begun changes nothing.
        [
            CREATED,
            Operation("restart", 2, 3, JOB),
            Operation("suspend", 4, 5, SUSPENDED),
            Operation("restart", 6, 7, SUSPENDED),
        ],
    ],
)
def test_answers_that_one_job_could_give_are_right(history):
    assert is_linearizable(history)


@pytest.mark.parametrize(
    "history",
    [
        # As it was: made at one server, and unknown at the other.
        [CREATED, Operation("delete", 2, 3, "missing")],
        # Suspended here, resumed there, and suspended still.
        [
            CREATED,
            Operation("suspend", 2, 3, SUSPENDED),
            Operation("resume", 4, 5, JOB),
            Operation("get", 6, 7, SUSPENDED),
        ],
        [CREATED, Operation("create", 2, 3, State("b", False, False))],
        [CREATED, Operation("get", 2, 3, State("b", False, False))],
        [CREATED, Operation("suspend", 2, 3, JOB)],
        [
            CREATED,
            Operation("delete", 2, 3, JOB._replace(is_deleting=True)),
            Operation("get", 4, 5, "missing"),
            Operation("get", 6, 7, JOB._replace(is_deleting=True)),
        ],
        # One key, two jobs; and a list that is behind.
        [KEYED, replace(KEYED, asked=2, answered_at=3, answer=State("b", False, False))],
        [KEYED, replace(KEYED, asked=2, answered_at=3, answer="taken")],
        [CREATED, Operation("list", 2, 3, "missing")],
        [CREATED, Operation("suspend", 2, 3, SUSPENDED), Operation("list", 4, 5, JOB)],
    ],
)
def test_answers_that_no_job_could_give_are_wrong(history):
    assert not is_linearizable(history)
