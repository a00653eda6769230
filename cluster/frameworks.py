"""torch and TensorFlow for pods and tests: the environments that the product installs, outside the checkout."""

from __future__ import annotations

from pathlib import Path

from astrago_trainer.environments.folders import RUNNING_PYTHON, Environment
from astrago_trainer.environments.installing import InstallFailed, install
from astrago_trainer.environments.known import KNOWN
from cluster.errors import ClusterError

__all__ = [
    "FRAMEWORKS",
    "IMAGE_PYTHON",
    "RUNNING_PYTHON",
    "NoSuchPython",
    "environment",
    "site_packages",
]

FRAMEWORKS = ("torch", "tensorflow")
IMAGE_PYTHON = "3.11"
"""Of Debian 12, which the images are made of; TensorFlow 2.15, the seeds' version, has no wheels for newer ones."""


class NoSuchPython(ClusterError):  # noqa: N818 - a circumstance, which tests answer with a skip
    """This machine has no interpreter of the wanted version, and none could be fetched."""


def environment(name: str, python: str = IMAGE_PYTHON) -> Path:
    """The environment with the framework; installed if it is missing."""
    found = Environment(KNOWN[name], python)
    try:
        install(found, lambda _: None, log=lambda text: print(text.splitlines()[0], flush=True))
    except InstallFailed as error:
        kind = NoSuchPython if error.code == "no-python" else ClusterError
        raise kind(str(error), "See above.") from error
    return found.folder


def site_packages(name: str) -> Path:
    """What a pod of the framework's images sees as /frameworks/<name>."""
    return environment(name) / "lib" / f"python{IMAGE_PYTHON}" / "site-packages"
