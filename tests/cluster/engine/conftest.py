"""The engine on the running cluster, in a namespace of its own for each test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from cluster.layout import Layout
from tests.cluster.engine import jobs
from tests.engines.jobs import a_handle as a_new_handle

from astrago_trainer.engines.base import Effective, Handle
from astrago_trainer.engines.kubernetes.credentials import Access, kubeconfig_access
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine


@pytest.fixture
def access(version: str) -> Access:
    """As users have it: from a kubeconfig, with a client certificate. Takes the version to notice a wrong release."""
    return kubeconfig_access(Layout.default().kubeconfig)


@pytest.fixture
def engine(access: Access, namespace: str, tmp_path: Path) -> KubernetesEngine:
    return KubernetesEngine(tmp_path / "data", access=access, namespaces=[namespace])


@pytest.fixture
def a_handle(namespace: str) -> Callable[..., Handle]:
    return partial(a_new_handle, namespace=namespace)


@pytest.fixture
def effective() -> Callable[..., Effective]:
    return jobs.effective
