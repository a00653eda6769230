"""Shares of one machine: never given twice, free again when their holder ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys

import pytest

from astrago_trainer.engines.local.folder import identity
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.notices import Watch

MACHINE = {"cpu": 2000, "memory": 2**30, "gpus": [0, 1]}
SECONDS = 10.0
"""In which news have surely come; only a failing test takes them."""
DEAD = {"pid": 1, "start": 0, "boot": "another"}


def a_plan(cpu: int = 1000, gpus: int = 0, namespace: str = "team") -> dict:
    needs = {"cpu": cpu, "memory": 0, "gpus": gpus}
    return {"namespace": namespace, "needs": needs, "groups": [{"count": 2}]}


@pytest.fixture
def ledger(tmp_path):
    return Ledger(str(tmp_path), MACHINE)


@pytest.fixture
def me():
    return identity(os.getpid())


def has_news(watch: Watch) -> bool:
    return bool(select.select([watch.fileno()], [], [], SECONDS)[0]) and bool(watch.read())


def test_shares_are_given_while_they_fit_and_then_what_is_missing_is_said(ledger, me):
    first = ledger.take("first", me, a_plan(1500, gpus=1))
    assert (first["cpu"], first["gpus"], len(first["ports"])) == (1500, [0], 3)
    assert ledger.take("second", me, a_plan(1000)) == "1 CPU needed, 0.5 of 2 free"
    assert ledger.take("third", me, a_plan(500, gpus=1))["gpus"] == [1]
    assert ledger.shortage(a_plan(0, gpus=1)["needs"]) == "1 GPU needed, 0 of 2 free"


def test_a_share_is_kept_when_another_process_takes_it_over(ledger, me):
    before = ledger.take("job", me, a_plan(2000))
    assert ledger.take("job", {**me, "start": 1}, a_plan(2000)) == before
    # That process does not exist: its share is free.
    assert ledger.held() == []


def test_the_share_of_a_process_that_died_is_free(ledger, me):
    ledger.take("job", me, a_plan(2000))
    ledger.assign("job", DEAD)
    assert ledger.take("next", me, a_plan(2000))["cpu"] == 2000


def test_ports_of_two_jobs_differ(ledger, me):
    ports = [ledger.take(uid, me, a_plan(100))["ports"] for uid in ("first", "second")]
    assert not set(ports[0]) & set(ports[1])


def test_jobs_that_waited_in_the_ledger_of_an_earlier_release_hold_nothing(tmp_path, ledger, me):
    old = {"uid": "old", "who": me, "needs": {}, "holds": None}
    (tmp_path / "ledger.json").write_text(json.dumps({"jobs": [old]}))
    assert ledger.take("new", me, a_plan(2000))["cpu"] == 2000


def test_who_is_told_of_a_kill_finds_the_killed_dead(tmp_path):
    """The kernel closes its files before it is a zombie: most of these looks would find it alive."""
    watch = Watch(str(tmp_path))
    script = (
        "import sys, signal; f = open(sys.argv[1], 'a'); print('held', flush=True); signal.pause()"
    )
    held_open = [sys.executable, "-IS", "-c", script, tmp_path / "job"]
    for _ in range(100):
        with subprocess.Popen(held_open, stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"held\n"
            assert identity(process.pid) is not None
            os.kill(process.pid, signal.SIGKILL)
            assert has_news(watch)
            assert identity(process.pid) is None
