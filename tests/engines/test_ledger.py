"""The order of jobs on one machine: whoever can go on is told of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from astrago_trainer.engines.local.folder import identity
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.notices import Watch

MACHINE = {"cpu": 2000, "memory": 2**30, "gpus": []}
ONE_CPU = {"cpu": 1000, "memory": 0, "gpus": 0}
TWO_CPUS = {**ONE_CPU, "cpu": 2000}
BEHIND = "another job has waited for longer; jobs start in their order"
SECONDS = 10.0
"""In which news have surely come; only a failing test takes them."""


@pytest.fixture
def ledger_of(tmp_path):
    """A job in the queue of one machine, as its supervisor would enter it; all are alive as long as this process is."""

    def enter(uid: str, needs: dict = ONE_CPU) -> Ledger:
        ledger = Ledger(str(tmp_path), MACHINE)
        ledger.enter(uid, identity(os.getpid()), needs)
        return ledger

    return enter


def has_news(watch: Watch) -> bool:
    return bool(select.select([watch.fileno()], [], [], SECONDS)[0]) and bool(watch.read())


def test_a_job_behind_one_that_was_about_to_start_hears_of_its_start(ledger_of):
    """Supervisors enter and look without a lock between the two, so the second may look before the first."""
    first, second = ledger_of("first"), ledger_of("second")
    assert second.take("second", ports=1) == BEHIND
    watch = second.watch()
    assert second.take("second", ports=1) == BEHIND

    assert first.take("first", ports=1)["cpu"] == 1000

    assert has_news(watch)
    assert second.take("second", ports=1)["cpu"] == 1000


def test_all_for_whom_there_is_room_start_when_a_large_job_leaves(ledger_of):
    """Whichever of them looks first."""
    large = ledger_of("large", TWO_CPUS)
    large.take("large", ports=1)
    first, second = ledger_of("first"), ledger_of("second")
    watch = second.watch()
    large.leave("large")
    assert has_news(watch)
    assert second.take("second", ports=1) == BEHIND

    first.take("first", ports=1)

    assert has_news(watch)
    assert second.take("second", ports=1)["cpu"] == 1000


def test_a_start_is_no_news_when_nobody_waits(ledger_of):
    ledger = ledger_of("only")
    watch = ledger.watch()
    ledger.take("only", ports=1)

    assert select.select([watch.fileno()], [], [], 0)[0] == []


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
