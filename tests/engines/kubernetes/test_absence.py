"""What is told of jobs whose nodes fall silent or go: their pods say nothing of it."""

from __future__ import annotations

import msgspec
import pytest
from tests.engines.kubernetes.cases import NOW, condition, job_set, objects, pod, trainjob

from astrago_trainer.engines.kubernetes.absence import absence_of, absences, is_stranded
from astrago_trainer.engines.kubernetes.objects import Node
from astrago_trainer.engines.kubernetes.phase import observe


def node(name="n1", status="True", message=""):
    conditions = [condition("DiskPressure"), condition("Ready", "Why", message, status)]
    return msgspec.convert({"metadata": {"name": name}, "status": {"conditions": conditions}}, Node)


def told(seen, *nodes):
    known = {each.metadata.name: each for each in nodes}
    return observe(seen, absent=absences(seen.pods.values(), known.get), now=NOW)


def test_a_node_that_is_ready_or_new_is_not_absent():
    assert absence_of(node()) is None
    assert absence_of(msgspec.convert({"metadata": {"name": "n1"}}, Node)) is None


def test_a_running_job_on_a_silent_node_says_so_and_no_more_when_it_is_back():
    seen = objects(None, job_set(nodes=3), pod(0), pod(1, node="n2"), pod(2))

    silent = told(seen, node(status="Unknown"), node("n2"))
    back = told(seen, node(), node("n2"))

    assert (silent.phase, silent.reason) == ("Running", "NodeNotReady")
    assert silent.message.startswith("node n1 does not answer; on it: rank 0, rank 2. ")
    assert silent.message.endswith("the cluster takes them off it, and they start on another node")
    assert [each.reason for each in silent.pods] == [
        "node n1 does not answer", "", "node n1 does not answer",
    ]  # fmt: skip
    assert (back.phase, back.reason, back.message) == ("Running", "", "")


def test_a_node_that_is_not_ready_says_why_itself():
    seen = told(objects(None, job_set(), pod(0)), node(status="False", message="no runtime"))
    assert "node n1 is not ready: no runtime; on it: rank 0" in seen.message


def test_a_node_that_was_removed_is_told_before_its_pods_go():
    seen = told(objects(None, job_set(), pod(0)))
    assert (seen.phase, seen.reason) == ("Running", "NodeLost")
    assert seen.message.startswith("node n1 is no longer in the cluster; on it: rank 0. ")


def test_a_node_that_nobody_has_seen_yet_is_not_lost():
    """Watches are not in step: a new node's first pod may come before it."""
    seen = told(objects(None, job_set(), pod(0, {}, phase="Pending")))
    assert seen.reason == "ContainerCreating"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_do_not_care(phase):
    ended = {"terminated": {"exitCode": 0}}
    seen = told(objects(None, job_set(), pod(0, ended, phase=phase)), node(status="Unknown"))
    assert "n1" not in seen.message


def test_a_wait_is_told_after_the_node_that_it_waits_for():
    seen = told(objects(None, job_set(), pod(0, {}, phase="Pending")), node(status="Unknown"))
    assert (seen.phase, seen.reason) == ("Pending", "NodeNotReady")
    assert seen.message.endswith("rank 0: node n1 prepares its containers")


def test_what_is_wanted_or_has_failed_comes_first():
    going = trainjob(metadata={"deletionTimestamp": "2026-01-01T00:00:02Z"})
    seen = told(objects(going, job_set(), pod(0, is_going=True)), node(status="Unknown"))
    assert (seen.phase, seen.reason) == ("Deleting", "Deleting")
    assert "node n1 does not answer; on it: rank 0" in seen.message


def test_many_nodes_are_counted():
    pods = [pod(rank, node=f"n{rank}") for rank in range(7)]
    seen = told(
        objects(None, job_set(nodes=7), *pods),
        *(node(f"n{rank}", "Unknown") for rank in range(7)),
    )
    assert seen.message.count("does not answer") == 5
    assert "2 more nodes are absent" in seen.message


@pytest.mark.parametrize(
    ("known", "is_going", "expected"),
    [
        (node(status="Unknown"), True, True),
        (node(status="Unknown"), False, False),
        (node(status="False"), True, False),
        (node(), True, False),
        (None, True, False),
    ],
    ids=["silent", "silent and wanted", "not ready", "ready", "removed"],
)
def test_only_a_pod_that_is_to_go_from_a_silent_node_is_stranded(known, is_going, expected):
    assert is_stranded(pod(is_going=is_going), known) is expected
