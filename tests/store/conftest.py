"""One suite for both databases: what is promised on SQLite is promised on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.databases import empty_postgres
from tests.store.postgres import Missing, running_postgres


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    try:
        with running_postgres() as url:
            yield url
    except Missing as why:
        pytest.skip(str(why))


@pytest.fixture
def postgres(postgres_server) -> str:
    """Its URL; the database is empty."""
    empty_postgres(postgres_server)
    return postgres_server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'astrago.db'}"
    return request.getfixturevalue("postgres")
