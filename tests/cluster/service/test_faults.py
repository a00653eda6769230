"""The way to the cluster is bad, or pods go: what the server tells stays true, and nothing is lost or doubled."""

from __future__ import annotations

import random
import time

import pytest
from tests.cluster.api import PATIENCE
from tests.cluster.engine.proxy import Trouble
from tests.cluster.service.counting import (
    COUNTS,
    DOWN_SECONDS,
    answers_until,
    assert_whole,
    counting,
)
from tests.cluster.service.people import a_server
from tests.cluster.service.way import a_way


def test_an_api_server_that_is_away_costs_nothing(newcomer, runtimes, tmp_path):
    """Training goes on meanwhile, and ends; what was asked for meanwhile is done when it is back."""
    trouble = Trouble()
    with (
        a_way(tmp_path, trouble) as way,
        a_server(tmp_path / "data", KUBECONFIG=str(way)) as server,
    ):
        ann = newcomer(server.address)
        ann.submit(COUNTS, name="running", nodes=2, env=counting(1000))
        ann.until("running", lambda job: job.phase == "Running")
        trouble.is_down = True
        back = time.monotonic() + DOWN_SECONDS
        later = ann.submit("print('late')\n", name="later")
        assert later.phase in ("Queued", "Pending")
        waiting = ann.until("later", lambda job: job.reason == "EngineUnavailable")
        assert "did not answer" in waiting.message
        answers_until(back, ann, "running", "Running")
        trouble.is_down = False
        assert ann.wait("running").has_succeeded
        assert ann.wait("later").has_succeeded
        for rank in (0, 1):
            assert_whole(ann, "running", 1000, rank)
        assert len(ann.space.list("trainjobs")) == 2


@pytest.mark.parametrize("kind", ["cut", "storm"])
def test_a_bad_way_loses_and_doubles_nothing(kind, newcomer, runtimes, tmp_path):
    dice = random.Random(7)
    codes = (409, 429, 500, 503)

    def refuse(method, path):
        is_write = method in ("POST", "PUT", "PATCH", "DELETE")
        return dice.choice(codes) if is_write and dice.random() < 0.3 else None

    trouble = Trouble(cut_after=1.0) if kind == "cut" else Trouble()
    with (
        a_way(tmp_path, trouble) as way,
        a_server(tmp_path / "data", KUBECONFIG=str(way)) as server,
    ):
        ann = newcomer(server.address)
        trouble.refuse = refuse if kind == "storm" else trouble.refuse
        for number in range(3):
            ann.submit(COUNTS, name=f"job-{number}", env=counting(300), max_restarts=1)
        for number in range(3):
            job = ann.wait(f"job-{number}")
            assert (job.phase, job.run, job.restarts) == ("Complete", 1, 0), job.message
            assert_whole(ann, f"job-{number}", 300)
        assert len(ann.space.list("trainjobs")) == 3
        for number in range(3):
            ann.delete(f"job-{number}")
        for resource in ("trainjobs", "trainingruntimes", "pods"):
            assert ann.space.list(resource) == []


def test_an_answer_that_never_comes_holds_nobody_up(newcomer, runtimes, tmp_path):
    hung = []

    def hang(method, path):
        is_first = method == "POST" and path.endswith("/trainjobs") and not hung
        hung.extend([path] * is_first)
        return is_first

    trouble = Trouble()
    with (
        a_way(tmp_path, trouble) as way,
        a_server(tmp_path / "data", KUBECONFIG=str(way)) as server,
    ):
        ann = newcomer(server.address)
        trouble.hang = hang
        ann.submit("print('first')\n", name="first")
        until = time.monotonic() + PATIENCE
        while not hung:
            assert time.monotonic() < until
        ann.submit("print('second')\n", name="second")
        assert ann.wait("second").has_succeeded
        began = time.monotonic()
        assert ann.client.get("first").name == "first"
        assert time.monotonic() - began < 1
        assert ann.wait("first").has_succeeded
        assert len(ann.space.list("trainjobs")) == 2


@pytest.mark.req("M99", "M115")
def test_a_deleted_pod_brings_the_whole_group_again(ann, api):
    script = "import time\nprint('begun', flush=True)\ntime.sleep(1000)\n"
    ann.submit(script, name="job", nodes=2, max_restarts=2)
    ann.until("job", lambda job: job.phase == "Running")
    before = {pod["metadata"]["name"] for pod in ann.space.list("pods")}
    ann.space.delete("pods", next(name for name in before if "-0-1-" in name))
    ann.until("job", lambda job: job.restarts == 1)
    job = ann.until("job", lambda job: job.phase == "Running" and job.restarts == 1)
    assert (job.run, job.attempt) == (1, 1)
    now = {
        pod["metadata"]["name"]
        for pod in ann.space.list("pods")
        if not pod["metadata"].get("deletionTimestamp")
    }
    assert len(now) == 2
    assert not now & before, "no rank of the attempt before is left among them"
    assert any("pod of rank 1 was deleted" in each.message for each in ann.client.events("job"))
    ann.delete("job")


TAKES_ALL = """
import os, socket, time
print("begun", flush=True)
place = os.environ["MASTER_ADDR"], 23456
if os.environ["RANK"] == "0":
    listening = socket.create_server(("", place[1]))
else:
    while True:
        try:
            socket.create_connection(place, timeout=1).close()
            break
        except OSError:
            time.sleep(0.1)
    held = bytearray(os.urandom(1024)) * 2**20
time.sleep(1000)
"""
"""Rank 1, when rank 0 has begun: what is killed earlier has no log."""


def test_a_rank_over_its_memory_is_named_with_its_limit_and_its_restarts_are_counted(ann):
    """The kernel's own kill, on a real node; the other rank is told to end, and is not the cause."""
    ann.submit(TAKES_ALL, name="job", nodes=2, max_restarts=1)
    again = ann.until("job", lambda job: job.restarts == 1)
    assert (again.run, again.max_restarts) == (1, 1)
    job = ann.wait("job")
    assert (job.phase, job.reason, job.restarts) == ("Failed", "OOMKilled", 1)
    assert job.message.startswith("rank 1 used more memory than its limit of 256Mi and was killed")
    assert "all 1 restarts are used up" in job.message
    for rank, attempt in ((0, 0), (1, 0), (0, 1), (1, 1)):
        assert "begun" in ann.lines("job", rank, attempt=attempt)
