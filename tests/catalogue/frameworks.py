"""Real frameworks for the train scripts: one environment per lock file, built once and kept.

The environments stay in the cache of this machine, named after what is in them, so a second
checkout builds nothing and a changed lock file builds anew. To resolve the versions again:

    echo torch numpy | tr ' ' '\\n' | uv pip compile --universal --python-version 3.11 \\
      --generate-hashes --no-header --no-annotate - --output-file tests/catalogue/torch.lock

and the same with `tensorflow-cpu==2.15.1 numpy<2` for tensorflow.lock.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.cache import cache_folder, locked

LOCKS = Path(__file__).parent
RUNNING = "{}.{}".format(*sys.version_info[:2])
# TensorFlow 2.15, the version of the image, has wheels up to Python 3.11.
PYTHONS = {"torch": RUNNING, "tensorflow": "3.11"}


def framework_path(name: str) -> str:
    """Give a PATH whose first `python` has the framework; build the environment if it is missing.

    Several test processes may ask at once: one builds, the others wait for it.
    """
    lock = LOCKS / f"{name}.lock"
    version = PYTHONS[name]
    key = hashlib.sha256(f"{version}\n{lock.read_text()}".encode()).hexdigest()[:16]
    folder = cache_folder() / "frameworks" / f"{name}-{key}"
    with locked(folder.with_suffix(".lock")):
        if not (folder / ".ready").exists():
            shutil.rmtree(folder, ignore_errors=True)  # left by a build that was cut short
            _uv("venv", "--quiet", "--python", _python(version), str(folder))
            _uv("pip", "sync", "--quiet", "--python", str(folder), "--require-hashes", str(lock))
            (folder / ".ready").touch()
    return f"{folder / 'bin'}:{os.environ['PATH']}"


def _python(version: str) -> str:
    return sys.executable if version == RUNNING else version


def _uv(*arguments: str) -> None:
    own = sorted(cache_folder().glob("uv-*/bin/uv"))
    uv = str(own[-1]) if own else shutil.which("uv")
    if uv is None:
        pytest.skip("no uv to build the environment with; `make setup` installs it")
    done = subprocess.run([uv, *arguments], capture_output=True, text=True)
    if done.returncode and "3.11" in arguments:
        pytest.skip(f"no Python 3.11 for TensorFlow 2.15: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
