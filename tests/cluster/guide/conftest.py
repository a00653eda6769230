"""What the pages of the guide take for granted: kubectl, the way to the cluster, and this checkout on Git."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.build import binary
from cluster.checkout import publish
from cluster.layout import Layout
from cluster.pins import CONTROL_PLANE
from tests.cluster.guide.following import follow
from tests.cluster.guide.pages import GUIDE, read_page

LOOK = "kubectl get pods -A -o wide; kubectl get events -A --sort-by=.lastTimestamp | tail -n 30"
"""Shown with a failure, from before the clean-up."""


@pytest.fixture(scope="session")
def user_env() -> dict[str, str]:
    """Of a person with a shell: the cluster's own kubectl first, and the way to the cluster."""
    kubectl = next(binary(program) for program in CONTROL_PLANE if program.name == "kubectl")
    return {
        "PATH": f"{kubectl.parent}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "LC_ALL": "C.UTF-8",
        "KUBECONFIG": str(Layout.default().kubeconfig),
    }


@pytest.fixture(scope="session")
def checkout_on_git() -> None:
    """Pods clone what lies here now, not what lay here when the cluster was started."""
    publish(Layout.default())


@pytest.fixture
def follow_page(
    user_env: dict[str, str], version: str, checkout_on_git: None, tmp_path: Path
) -> Callable[[str], None]:
    if version != "2.1":
        pytest.skip(f"the guide is written for Trainer 2.1, and {version} runs here")
    return lambda name: follow(read_page(GUIDE / name), user_env, tmp_path, look=LOOK)
