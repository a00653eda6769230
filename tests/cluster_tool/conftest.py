"""A machine on which everything is as it should be; each test makes one thing bad."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cluster.machine import DEBIAN_PACKAGES

from .machine import Machine, go, namespaces


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    if subprocess.run([*namespaces(), "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let us make namespaces; run the tests as root")
    made = Machine(tmp_path)
    made.room.mkdir()
    made.programs.mkdir()
    for name in DEBIAN_PACKAGES:
        if not name.startswith("/"):
            made.install(name)
    made.install_real("ip", "sh", "sleep", "touch")
    made.install("go", go())
    made.install("apt-get", "echo apt-get was called >&2; exit 1")
    return made
