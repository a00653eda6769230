"""The real PostgreSQL of the store's tests, for services that share it."""

from tests.store.conftest import postgres, postgres_server

__all__ = ["postgres", "postgres_server"]
