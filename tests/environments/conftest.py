from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.environments.wheels import make_wheel, served


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache of its own, and a package index of its own, with the package `greeting` in this folder."""
    folder = tmp_path / "wheels"
    make_wheel(folder, "greeting")
    monkeypatch.setenv("ASTRAGO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "ASTRAGO_ENVIRONMENTS"):
        monkeypatch.delenv(name, raising=False)
    with served(folder) as address:
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        yield folder
