"""Objects of one job find each other, in whatever order their watches bring them."""

from __future__ import annotations

import asyncio

import pytest
from tests.engines.kubernetes.cases import condition, ended, event, job_set, pod, trainjob

from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.kubernetes.board import Board
from astrago_trainer.engines.kubernetes.failures import first_cause

HANDLE = Handle("team", "job", "u")


@pytest.fixture
def told():
    return []


@pytest.fixture
def board(tmp_path, told):
    return Board(lambda handle: tmp_path / handle.uid, lambda _, handle: told.append(handle))


def test_a_job_is_found_by_its_uid_and_not_by_its_name_alone(board):
    board.take_trainjob(trainjob(), False)
    assert board.find(HANDLE) is not None
    assert board.find(Handle("team", "job", "another")) is None


def test_an_event_and_a_failure_that_come_before_their_job_are_not_lost(board):
    board.take_event(event("FailedCreate", "quota", kind="Job", name="job-node-0"), False)
    board.take_pod(pod(1, ended(3), phase="Failed"), False)
    board.take_trainjob(trainjob(), False)

    journal = board.journal(HANDLE)
    assert {each.reason for each in journal.events} == {"FailedCreate", "Error"}
    assert [each.message for each in journal.failures] == ["rank 1 ended with exit code 3"]


def test_events_of_others_and_of_an_earlier_job_of_this_name_are_left_out(board):
    board.take_trainjob(trainjob(metadata={"creationTimestamp": "2026-01-01T00:01:00Z"}), False)
    board.take_event(event("Old", "before it was made", second=2), False)
    board.take_event(event("Other", "of another", name="jobless", second=90), False)
    board.take_event(event("New", "of this one", second=90), False)
    assert [each.reason for each in board.journal(HANDLE).events] == ["New"]


def test_who_listens_hears_of_the_end_and_nothing_is_left(board, told):
    board.take_trainjob(trainjob(), False)
    board.take_job_set(job_set(), False)
    told.clear()
    board.take_trainjob(trainjob(), True)
    assert told == [HANDLE]
    board.take_job_set(job_set(), True)
    assert board.get(("team", "job")).is_empty


def test_waiting_ends_with_the_change_that_was_waited_for(board):
    async def scenario():
        waiting = asyncio.create_task(
            board.until(("team", "job"), lambda found: found.trainjob is not None, 30)
        )
        await asyncio.sleep(0)
        board.take_trainjob(trainjob(), False)
        return await waiting, await board.until(("team", "other"), lambda _: False, 0.01)

    assert asyncio.run(scenario()) == (True, False)


def test_of_pods_that_go_in_one_second_the_deleted_one_is_the_cause(board):
    board.take_trainjob(trainjob(), False)
    for rank in (0, 1):
        board.take_pod(pod(rank), False)

    board.take_pod(pod(1, is_going=True), False)
    board.take_pod(pod(0, is_going=True), False)
    for rank in (
        0,
        1,
    ):  # both answer the signal alike, and the kubelet tells of the other one first
        board.take_pod(pod(rank, ended(1, 5), is_going=True), False)

    cause = first_cause(board.journal(HANDLE).failures, 0)
    assert (cause.reason, cause.message) == ("PodDeleted", "the pod of rank 1 was deleted")


@pytest.mark.parametrize(
    ("job", "others"),
    [
        (trainjob(suspend=True), []),
        (trainjob(condition("Complete")), []),
        (trainjob(), [pod(0, ended(0), phase="Succeeded", group="launcher")]),
        (trainjob(), [pod(0, ended(1), phase="Failed")]),
    ],
    ids=["suspended", "over", "its launcher has ended", "another has failed"],
)
def test_pods_that_the_operator_deletes_for_a_reason_are_no_cause(board, job, others):
    board.take_trainjob(job, False)
    for each in others:
        board.take_pod(each, False)

    board.take_pod(pod(1, is_going=True), False)

    assert "PodDeleted" not in [each.reason for each in board.journal(HANDLE).failures]
