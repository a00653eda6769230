"""A directory for checkpoints, and an environment in which no launcher has set anything."""

from pathlib import Path

import pytest

VARIABLES = (
    "ASTRAGO_CHECKPOINT_DIR ASTRAGO_ATTEMPT ASTRAGO_RESUME_FROM RANK WORLD_SIZE JAX_PROCESS_ID JAX_NUM_PROCESSES "
    "OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE TF_CONFIG"
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch):
    for name in VARIABLES.split():
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints"
