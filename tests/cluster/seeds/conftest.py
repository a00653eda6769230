"""What the documents take for granted: kubectl, the way to the cluster, and this checkout on Git."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.layout import Layout
from tests.cluster.guide.conftest import LOOK, checkout_on_git, user_env
from tests.cluster.seeds.replay import replay
from tests.seeds.steps import read

__all__ = ["checkout_on_git", "user_env"]


@pytest.fixture
def replayed(
    user_env: dict[str, str], version: str, checkout_on_git: None, tmp_path: Path
) -> Callable[[str], None]:
    """Types the commands of a document; the operators' manifests lie where MANIFESTS says."""
    if version != "2.1":
        pytest.skip(f"the documents are about Trainer 2.1, and {version} runs here")
    env = {**user_env, "MANIFESTS": str(Layout.default().run / "manifests")}
    return lambda name: replay(read(name), env, tmp_path, look=LOOK)
