"""Killed at any named point the service loses no job, doubles none, leaves nothing; the long version is `campaign`."""

from __future__ import annotations

import json

import pytest

from tests.service.campaign import run_sweep


@pytest.mark.parametrize("action", ["submit", "delete"])
def test_at_every_point(action):
    done = run_sweep("files", action, rounds=2)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["points"] >= 12
    assert found["kills"] >= 2 * found["points"] - 4, "nearly every point was reached again"


@pytest.mark.parametrize(("action", "point"), [("submit", "apply"), ("delete", "stop")])
def test_around_the_calls_of_the_real_local_engine(action, point):
    done = run_sweep("local", action, rounds=2, only=point)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kills"] == 4
