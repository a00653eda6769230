"""Oracles for tests: one running program per version and test session, or a skip that says what is
missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.oracle.build import Oracle, oracle_binary, skip_reason


@pytest.fixture(scope="session")
def oracle_for() -> Iterator[Callable[[str], Oracle]]:
    """Starts the oracle of a version when it is first asked for."""
    started: dict[str, Oracle] = {}
    with ExitStack() as stack:

        def start(version: str) -> Oracle:
            if version not in started:
                binary = oracle_binary(version)
                if binary is None:
                    pytest.skip(skip_reason(version))
                started[version] = stack.enter_context(Oracle(binary))
            return started[version]

        yield start
