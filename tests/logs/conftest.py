from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a log will be; its folder exists."""
    return tmp_path / "node.log"
