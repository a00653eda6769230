"""What can go wrong with a database, in the words of whoever has to repair it.

StoreError
├─ StoreRefused       it cannot be used at all, and waiting does not help: the message names it and the way out
├─ StoreUnavailable   not now: locked, unreachable; nothing of this write was kept, try again
│  ├─ StoreBusy       it did not answer in time, or is locked
│  ├─ DataGone        its file was removed or replaced under the running server
│  └─ DiskFull        not before there is space
└─ Stale              somebody else changed the row first: read it again and decide anew
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy.exc import DBAPIError, InterfaceError, SQLAlchemyError

from astrago_trainer.core.errors import AstragoError


class StoreError(AstragoError):
    """The database did not do what it was asked to."""


class StoreRefused(StoreError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """This database cannot be used; the message names it and the way out."""


class StoreUnavailable(StoreError):  # noqa: N818
    """Not now; nothing of the write was kept."""


class StoreBusy(StoreUnavailable):
    """It did not answer in time, or another process holds it locked."""


class DataGone(StoreUnavailable):
    """The file at its path is not the open one: what is written there would be lost."""


class DiskFull(StoreUnavailable):
    """Not before there is space; deletion works."""


class Stale(StoreError):  # noqa: N818
    """The row has changed since it was read."""


_BROKEN = (
    "malformed",
    "not a database",
    "file is encrypted",
    "no such table",
    "no such column",
    "does not exist",
    "invalid page",
    "could not read block",
    "unsupported file format",
)
_BUSY: tuple[tuple[str, str], ...] = (
    ("locked", "another process holds it locked; it is free again when that one ends or commits"),
    ("full", "its disk is full; free some space, and it goes on by itself"),
    ("no space", "its disk is full; free some space, and it goes on by itself"),
    ("readonly", "it cannot be written to; make the file and its folder writable"),
    ("read-only", "it cannot be written to; make it writable, or name the primary server"),
    ("unable to open", "it cannot be opened; check that the folder exists and may be written to"),
    ("disk i/o", "its disk reports errors; look at the system's log"),
)

_KINDS: Mapping[str, type[StoreUnavailable]] = {
    "locked": StoreBusy,
    "full": DiskFull,
    "no space": DiskFull,
}


def translated(error: Exception, where: str) -> StoreError:
    """The error of a driver as one of ours; `where` names the file or the URL."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, TimeoutError):
        return StoreBusy(f"the database {where} is not available: it did not answer in time.")
    said = str(error.orig) if isinstance(error, DBAPIError) and error.orig else str(error)
    said = said.strip().splitlines()[0] if said.strip() else type(error).__name__
    lower = said.lower()
    if any(word in lower for word in _BROKEN):
        return StoreRefused(
            f"the database {where} is broken: {said}. Bring back a backup with "
            "'astrago db restore FILE', or move it away to begin with an empty one."
        )
    for word, meaning in _BUSY:
        if word in lower:
            kind = _KINDS.get(word, StoreUnavailable)
            return kind(f"the database {where} is not available: {meaning} ({said}).")
    return StoreUnavailable(f"the database {where} is not available: {said}.")


def is_passing(error: Exception) -> bool:
    """Whether the database itself had trouble; else the statement was at fault."""
    if isinstance(error, DBAPIError):
        name = type(error.orig).__name__
        return not isinstance(error, InterfaceError) and name not in (
            "IntegrityError",
            "DataError",
            "ProgrammingError",
        )
    return isinstance(error, SQLAlchemyError | OSError | StoreError | TimeoutError)
