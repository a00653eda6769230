"""The real PostgreSQL of the store's tests, for services that share it."""

import pytest

from astrago_trainer.service import service
from tests.store.conftest import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]


@pytest.fixture(autouse=True)
def nobody_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services of one test know of each other at once, or the test says when."""
    monkeypatch.setattr(service, "JOIN_SECONDS", 0.0)
