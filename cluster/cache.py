"""The folder for what outlives a checkout, and a lock for those who build into it; the tests use both, too."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from astrago_trainer.environments.folders import cache_folder
from cluster.errors import ClusterError

__all__ = ["cache_folder", "locked"]


@contextmanager
def locked(path: Path, other: str = "another process") -> Iterator[None]:
    """Only one process at a time; released with the file, also when its process is killed.

    Who has to wait is told what for: `other` names who may hold the lock.
    """
    handle = _open(path)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {other}…", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _open(path: Path) -> int:
    """For reading: a lock needs no more, and what exists already need not be a file that can be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
    except OSError as error:
        raise ClusterError(
            f"{path.parent} cannot be written: {error.strerror}.",
            "Make it writable, or name another folder: ASTRAGO_CACHE=/path.",
        ) from error
