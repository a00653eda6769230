"""The folder for what outlives a checkout, and a lock for those who build into it; the tests use both, too."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_folder() -> Path:
    """$ASTRAGO_CACHE, else a folder in the user's cache."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ASTRAGO_CACHE") or users / "astrago-trainer")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time; released with the file, also when its process is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
