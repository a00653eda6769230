"""Where logs lie: `<job folder>/logs/<attempt>/<pod>/<container>.log`, and how their files are opened.

Names are used as they are, so a name that is no plain file name is refused instead of changed. A log is opened without
following a link and without waiting: what lies there may have been put there by the training code.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:  # the supervisor of a job starts with this module and has no time for pathlib
    from pathlib import Path

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".idx"
POSITION_SUFFIX = ".pos"
GAP_SUFFIX = ".gap"
_NAME_BYTES = 250  # a file name may have 255, and the longest suffix takes `.idx` beside `.log`


class LogName(NamedTuple):
    """One log of a job."""

    attempt: int
    pod: str
    container: str
    path: Path


def log_path(job: Path, attempt: int, pod: str, container: str) -> Path:
    """Raises InvalidRequest for names that would lead elsewhere."""
    return job / place_in_job(attempt, pod, container)


def place_in_job(attempt: int, pod: str, container: str) -> str:
    """The same, seen from the folder of the job."""
    if attempt < 0 or not (_is_plain(pod) and _is_plain(container)):
        _refuse(attempt, pod, container)
    return f"logs/{attempt}/{pod}/{container}{LOG_SUFFIX}"


def find_logs(job: Path, attempt: int | None = None) -> list[LogName]:
    """The logs that exist, by attempt, pod and container; of one attempt when it is named."""
    attempts = [str(attempt)] if attempt is not None else _entries(job / "logs")
    return sorted(
        LogName(int(number), pod, file[: -len(LOG_SUFFIX)], job / "logs" / number / pod / file)
        for number in attempts
        if number.isascii() and number.isdecimal()
        for pod in _entries(job / "logs" / number)
        for file in _entries(job / "logs" / number / pod)
        if file.endswith(LOG_SUFFIX)
    )


def index_path(log: Path) -> Path:
    return log.with_name(log.name + INDEX_SUFFIX)


def gap_path(log: Path) -> Path:
    return log.with_name(log.name + GAP_SUFFIX)


def position_path(log: Path) -> Path:
    return log.with_name(log.name + POSITION_SUFFIX)


def create_log(path: str | Path) -> int:
    """A descriptor to become stdout and stderr of a process; what was in the file before stays.

    Appending is what lets several processes write one file without losing a line to each other.
    """
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o600)


def open_log(path: Path) -> int | None:
    """A descriptor to read from; None while there is no such file. A link, folder or pipe is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        if path.is_symlink():
            return None
        raise
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    return None


def _refuse(attempt: int, pod: str, container: str) -> NoReturn:
    # Here, because the supervisor has no time for dataclasses either.
    from astrago_trainer.core.errors import InvalidRequest, Problem

    problems = [
        Problem(what, "bad-name", f"{name!r} is no name of a {what}.")
        for what, name in (("pod", pod), ("container", container))
        if not _is_plain(name)
    ]
    if attempt < 0:
        problems.append(Problem("attempt", "bad-number", f"attempts count from 0, not {attempt}."))
    raise InvalidRequest(problems)


def _is_plain(name: str) -> bool:
    return (
        name not in ("", ".", "..")
        and "/" not in name
        and "\0" not in name
        and len(os.fsencode(name)) <= _NAME_BYTES - len(LOG_SUFFIX)
    )


def _entries(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder)]
    except (FileNotFoundError, NotADirectoryError):
        return []
