"""Killed at any step of a submit or a deletion, a server leaves one job or none to the next one, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("action", "only", "points"),
    [("submit", "apply", 2), ("submit", "step", 2), ("delete", "stop", 2), ("delete", "remove", 3)],
)
def test_at_every_point(action, only, points, namespace, runtimes, version):
    """Those around and between the engine's writes; the others are swept without a cluster."""
    words = (namespace, version, "cluster", action, "1", "--only", only)
    done = subprocess.run(
        [sys.executable, "-m", "tests.cluster.service.sweep", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["points"] >= points
    assert found["kills"] >= found["points"] - 1, "nearly every point was reached again"
