"""A kill at any moment, or a power cut, leaves the old checkpoint or the new one, and the next run finds it."""

import json
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

import pytest

from tests.checkpoint.crash_points import SCENARIOS
from tests.checkpoint.power_cuts import after_cut, recording
from tests.checkpoint.views import ranks, state_of

ROOT = Path(__file__).parents[2]
MEMORY = Path("/dev/shm")


@pytest.fixture
def base(tmp_path):
    """A folder in memory where there is one: thousands of fsyncs are not what is tested here."""
    if not os.access(MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture
def quiet():
    """Without the warnings about checkpoints that were not completed: they are expected here."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def run(module, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", f"tests.checkpoint.{module}", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_any_change_of_the_disk_leaves_the_old_or_the_new(base, scenario):
    assert run("crash_points", base, scenario)["points"] > 20


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_random_kills_lose_at_most_the_save_under_way(base, world_size):
    found = run("kills", base / "checkpoints", world_size, 25, 1)
    assert (found["kills"], found["resumes"]) == (25, 25)


@pytest.mark.parametrize("world_size", [1, 2])
def test_a_power_cut_loses_nothing_that_a_save_has_promised(base, quiet, world_size):
    with recording(base) as changes:
        group = ranks(base / "checkpoints", world_size, keep=2)
        for step in (1, 2, 3, 4):
            for rank, each in enumerate(group):
                each.save(step, state_of(rank, step, "x" * 100))
            changes.append(("returned", ".", step))

    chance = Random(world_size)
    cuts = 0
    for end in range(len(changes) + 1):
        promised = max(
            (more[0] for kind, _, *more in changes[:end] if kind == "returned"), default=0
        )
        for _ in range(6):
            with tempfile.TemporaryDirectory(dir=base) as folder:
                after_cut(changes[:end], chance, Path(folder) / "disk")
                found = [
                    each.latest()
                    for each in ranks(Path(folder) / "disk" / "checkpoints", world_size)
                ]
                (step,) = {each.step if each else 0 for each in found}
                assert step >= promised, f"cut after {changes[:end][-3:]}: {promised} was saved"
                for rank, each in enumerate(found):
                    assert each is None or each.load() == state_of(rank, step, "x" * 100)
            cuts += 1
    assert cuts > 400
