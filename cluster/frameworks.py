"""torch and TensorFlow for pods and tests: one environment per lock file, built once and kept outside the checkout.

An environment is named after what is in it, so a changed lock file builds anew. To resolve the versions again:

    echo torch numpy | tr ' ' '\\n' | uv pip compile --universal --python-version 3.11 \\
      --generate-hashes --no-header --no-annotate - --output-file cluster/torch.lock

and the same with `tensorflow-cpu==2.15.1 numpy<2` for tensorflow.lock.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from cluster.cache import cache_folder, locked
from cluster.errors import ClusterError

FRAMEWORKS = ("torch", "tensorflow")
RUNNING_PYTHON = "{}.{}".format(*sys.version_info[:2])
IMAGE_PYTHON = "3.11"
"""Of Debian 12, which the images are made of; TensorFlow 2.15, the seeds' version, has no wheels for newer ones."""


class NoSuchPython(ClusterError):  # noqa: N818 - a circumstance, which tests answer with a skip
    """This machine has no interpreter of the wanted version, and none could be fetched."""


def environment(name: str, python: str = IMAGE_PYTHON) -> Path:
    """The environment with the framework; builds it if it is missing. Of several who ask at once, one builds."""
    lock = Path(__file__).with_name(f"{name}.lock")
    key = hashlib.sha256(f"{python}\n{lock.read_text()}".encode()).hexdigest()[:16]
    folder = cache_folder() / "frameworks" / f"{name}-{key}"
    with locked(folder.with_suffix(".lock")):
        if not (folder / ".ready").exists():
            _build(folder, lock, python)
            (folder / ".ready").touch()
    return folder


def site_packages(name: str) -> Path:
    """What a pod of the framework's images sees as /frameworks/<name>."""
    return environment(name) / "lib" / f"python{IMAGE_PYTHON}" / "site-packages"


def _build(folder: Path, lock: Path, python: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # left by a build that was cut short
    print(f"installing {lock.stem} for Python {python}", flush=True)
    interpreter = sys.executable if python == RUNNING_PYTHON else python
    done = _uv("venv", "--quiet", "--python", interpreter, str(folder))
    if done.returncode:
        raise NoSuchPython(
            f"there is no Python {python} for {lock.stem}: {done.stderr.strip()}",
            f"Install Python {python}.",
        )
    # Compiled now: pods see the folder read-only, and would compile it at every start.
    options = ("--quiet", "--compile-bytecode", "--require-hashes", "--python", str(folder))
    done = _uv("pip", "sync", *options, str(lock))
    if done.returncode:
        raise ClusterError(
            f"{lock.name} cannot be installed: {done.stderr.strip()[-1500:]}", "Try again."
        )


def _uv(*arguments: str) -> subprocess.CompletedProcess[str]:
    own = sorted(cache_folder().glob("uv-*/bin/uv"))
    uv = str(own[-1]) if own else shutil.which("uv")
    if uv is None:
        raise ClusterError("there is no uv to install frameworks with.", "Run `make setup` first.")
    return subprocess.run([uv, *arguments], capture_output=True, text=True)
