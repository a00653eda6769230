"""`make demo`, the first command of a newcomer: it trains, shows numbers, and leaves nothing running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.frameworks import RUNNING_PYTHON, environment

ROOT = Path(__file__).parents[3]


@pytest.mark.req("M137")
def test_the_demo_trains_on_two_nodes_and_ends_by_itself(tmp_path):
    environment("torch", RUNNING_PYTHON)  # as the demo itself would install it
    done = subprocess.run(
        [sys.executable, "-m", "scripts.demo"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "COLUMNS": "80", "EPOCHS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "최종 평균 Loss" in said
    assert "✓ Complete" in said
    assert "nothing is left running" in said
    assert not list(tmp_path.iterdir())
