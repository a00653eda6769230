"""A running cluster and a fresh namespace for each test. `make test-cluster` starts the cluster first."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator

import pytest
from cluster.layout import Layout
from cluster.operators import Kubectl
from tests.cluster.api import Api, Json, Space


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    """The cluster's own kubectl; the tests are about the real thing, so without it they fail."""
    layout = Layout.default()
    assert layout.kubeconfig.exists(), "no cluster here: make cluster"
    return Kubectl(layout.kubeconfig)


@pytest.fixture(scope="session")
def version() -> str:
    """The profile that runs, as `make cluster TRAINER=…` chose it."""
    found = (Layout.default().run / "profile").read_text(encoding="utf-8")
    wanted = os.environ.get("TRAINER")
    assert wanted in (None, found), f"Trainer {found} runs, {wanted} was asked for"
    return found


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def create(kubectl: Kubectl) -> Callable[[Json], str]:
    """Creates a manifest with strict validation, as the product writes."""
    return lambda manifest: kubectl(
        "create", "--validate=strict", "-f", "-", stdin=json.dumps(manifest)
    )


@pytest.fixture(scope="session")
def api(version: str) -> Api:
    """Takes the version, so that a cluster of another release than the wanted one is noticed at once."""
    return Api(Layout.default())


@pytest.fixture
def space(api: Api, namespace: str) -> Space:
    return Space(api, namespace)
