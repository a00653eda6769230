"""One real server for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.servers import a_server


@pytest.fixture(autouse=True)
def no_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of who runs the tests."""
    for name in ("ASTRAGO_SERVER", "ASTRAGO_TOKEN", "ASTRAGO_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ASTRAGO_USER", "kim")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with a_server(tmp_path_factory.mktemp("server")) as address:
        yield address
