"""Real frameworks for the train scripts; a machine that cannot have one skips its tests and says so."""

import os

import pytest
from cluster.frameworks import IMAGE_PYTHON, RUNNING_PYTHON, NoSuchPython, environment

PYTHONS = {"torch": RUNNING_PYTHON, "tensorflow": IMAGE_PYTHON}


def framework_path(name: str) -> str:
    """Give a PATH whose first `python` has the framework; build the environment if it is missing."""
    try:
        folder = environment(name, PYTHONS[name])
    except NoSuchPython as missing:
        pytest.skip(str(missing))
    return f"{folder / 'bin'}:{os.environ['PATH']}"
