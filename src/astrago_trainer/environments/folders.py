"""Where environments lie: in the user's cache, outside every checkout, each in a folder named after what is in it.

A folder counts only with its mark, which is written last: what an interrupted install left behind is never used.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from astrago_trainer.environments.known import KNOWN, Known

RUNNING_PYTHON = "{}.{}".format(*sys.version_info[:2])
_MARK = "astrago-environment.json"
_WAIT_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Environment:
    """One environment, installed or not."""

    known: Known
    python: str
    """Version of its interpreter: `3.11`."""
    requirements: tuple[str, ...] = ()
    """Packages that a job brings, beside those of the table."""

    @property
    def key(self) -> str:
        parts = [self.python, self.known.text(), *sorted(set(self.requirements))]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        return f"{self.known.name}-{self.key}"

    @property
    def title(self) -> str:
        """For people: `torch 2.15`, or `torch 2.15 with 3 requirements`."""
        title = self.known.title if self.known.locks else f"Python {self.python}"
        count = len(self.requirements)
        return f"{title} with {count} requirement{'s' * (count > 1)}" if count else title

    @property
    def folder(self) -> Path:
        return environments_folder() / self.name

    @property
    def programs(self) -> Path:
        return self.folder / "bin"

    @property
    def is_ready(self) -> bool:
        return (self.folder / _MARK).is_file()

    def mark_ready(self, size: int) -> None:
        """Last of all: from here on it is used. The mark is complete or not there."""
        found = {
            "environment": self.known.name,
            "title": self.title,
            "python": self.python,
            "requirements": list(self.requirements),
            "bytes": size,
            "is_measured": True,
        }
        unfinished = self.folder / f"{_MARK}.{os.getpid()}"
        with unfinished.open("w", encoding="utf-8") as file:
            json.dump(found, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(self.folder / _MARK)


def environment_of(name: str, requirements: tuple[str, ...] = ()) -> Environment:
    """An environment of the table, for the Python that astrago runs on where its packages allow it."""
    known = KNOWN[name]
    fits = not known.pythons or RUNNING_PYTHON in known.pythons
    return Environment(known, RUNNING_PYTHON if fits else known.pythons[-1], requirements)


def cache_folder() -> Path:
    """ASTRAGO_CACHE, else a folder in the user's cache."""
    users = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("ASTRAGO_CACHE") or users / "astrago-trainer")


def environments_folder() -> Path:
    return cache_folder() / "environments"


def installed() -> list[tuple[Path, dict[str, Any]]]:
    """All that are ready: folder and mark, by name."""
    found = []
    for mark in sorted(environments_folder().glob(f"*/{_MARK}")):
        try:
            content = json.loads(mark.read_text("utf-8"))
        except (OSError, ValueError):
            continue  # removed meanwhile
        found.append((mark.parent, content))
    return found


def unmark(folder: Path) -> None:
    """First step of a removal: from here on it is not used."""
    (folder / _MARK).unlink(missing_ok=True)


@contextmanager
def locked(folder: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """One installer at a time; the kernel frees the lock with its process. `on_wait` is called while another has it."""
    import time

    folder.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                on_wait()
                time.sleep(_WAIT_SECONDS)  # only to show the progress of the other one
        yield
    finally:
        os.close(handle)
