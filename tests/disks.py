"""Small file systems that a test can fill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def a_small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "astrago", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here: root is needed")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
