"""Interpreters of other Python versions: those of the machine, else those that uv can fetch."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from cluster.cache import cache_folder, locked

RUNNING = "{}.{}".format(*sys.version_info[:2])


def python_of(version: str) -> str:
    """The path of an interpreter of `version`, for example 3.12; skips the test where there is none."""
    found = find_python(version)
    if found is None:
        pytest.skip(f"no Python {version} on this machine, and uv could not fetch it")
    return found


@cache
def find_python(version: str) -> str | None:
    """None where the machine has none and uv cannot fetch one."""
    if version == RUNNING:
        return sys.executable
    return next((each for each in _candidates(version) if _starts(each, version)), None)


def uv() -> str:
    """The uv of `make setup`, else that of PATH."""
    own = sorted(cache_folder().glob("uv-*/bin/uv"))
    found = str(own[-1]) if own else shutil.which("uv")
    if found is None:
        pytest.fail("there is no uv: make setup")
    return found


def _candidates(version: str) -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, pyenv.glob(f"versions/{version}.*/bin/python{version}"))
    if on_path := shutil.which(f"python{version}"):
        yield on_path
    managed = ["python", "find", "--managed-python", "--no-project", version]
    with locked(cache_folder() / f"python-{version}.lock"):
        found = _uv(*managed) or (_uv("python", "install", "--no-bin", version), _uv(*managed))[1]
    if found:
        yield found


def _uv(*arguments: str) -> str:
    return subprocess.run([uv(), *arguments], capture_output=True, text=True).stdout.strip()


def _starts(python: str, version: str) -> bool:
    """pyenv puts names on PATH that do not start, or start another version."""
    asked = [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip() == version
