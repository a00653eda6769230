"""The file of an SQLite database: made private, and missed when it is gone."""

from __future__ import annotations

import os
from pathlib import Path

from astrago_trainer.store.errors import StoreRefused

_MARK = (
    "{name} was made here. Where it is missing now, bring it back with 'astrago db restore FILE',\n"
    "or remove this file to begin with an empty one: what ran before is then forgotten.\n"
)


def check_file(path: Path) -> None:
    """Raises StoreRefused where SQLite would give an empty database, or an error that names nothing."""
    try:
        if not path.exists() and _mark_of(path).exists():
            raise StoreRefused(
                f"the database {path} is missing, although it was made here once. Bring it back with "
                f"'astrago db restore FILE', or remove {_mark_of(path)} to begin with an empty one."
            )
        create_file(path)
        is_writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    except PermissionError:
        is_writable = False
    if not is_writable:
        raise StoreRefused(
            f"the database {path} is read-only for this user. Make the file and its folder writable, "
            "or name another folder with --data or ASTRAGO_DATA."
        )


def create_file(path: Path) -> None:
    """Private from its first moment: commands and environments of users are in there as they are."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))


def mark_file(path: Path) -> None:
    """Remembers beside it that it was made."""
    mark = _mark_of(path)
    if not mark.exists():
        mark.touch(mode=0o600)
        mark.write_text(_MARK.format(name=path.name), encoding="utf-8")


def _mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.made-here")
