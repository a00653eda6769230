"""One server for the tests of a process, and people of its own for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from cluster.operators import Kubectl
from tests.cluster.api import Api
from tests.cluster.service.people import Person, a_server, sign_up
from tests.server.serving import Process

from astrago_trainer import catalogue


@pytest.fixture(scope="session")
def runtimes(kubectl: Kubectl, version: str) -> None:
    """What an administrator applies once: the catalogue."""
    for name in catalogue.names():
        kubectl("apply", "--server-side", "-f", "-", stdin=catalogue.runtime_text(name))


@pytest.fixture(scope="session")
def server(
    runtimes: None, version: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Process]:
    with a_server(tmp_path_factory.mktemp("server") / "data") as process:
        yield process


@pytest.fixture
def newcomer(api: Api, kubectl: Kubectl) -> Iterator[Callable[..., Person]]:
    """Signs somebody up at an address; what they had in the cluster goes at the end."""
    made: list[str] = []

    def come(address: str, user: str = "") -> Person:
        person = sign_up(address, api, user)
        made.append(person.namespace)
        return person

    yield come
    for namespace in made:
        kubectl("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")


@pytest.fixture
def ann(server: Process, newcomer: Callable[..., Person]) -> Person:
    return newcomer(server.address)


@pytest.fixture
def bob(server: Process, newcomer: Callable[..., Person]) -> Person:
    return newcomer(server.address)
