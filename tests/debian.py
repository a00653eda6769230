"""Programs of Debian's packages that tests need; where one is missing, root installs it."""

from __future__ import annotations

import os
import shutil

import pytest
from cluster.machine import apt_install


def debian_program(name: str) -> str:
    """The path of the program, which its package is called after; skips the test where it cannot be had."""
    if shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        apt_install([name])
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is missing: apt-get install {name}")
    return found
