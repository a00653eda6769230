"""Space on the disk that is kept for the database: a file that is given up when nothing else is free.

A row can only be deleted by writing. On a disk without any space the file is removed, so that a deletion can be noted
and done; what it frees is enough to make the file again.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from astrago_trainer.logs.limits import disk_of

FILE_NAME = "disk-reserve"
MOST_BYTES = 16 << 20
LEAST_BYTES = 256 << 10
_SHARE_OF_DISK = 20
_ENOUGH = 4
"""It is made where so many times its size is free."""


class Reserve:
    """The file of one folder. Touches the disk: for threads."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self.is_given_up = False
        """There was no space left, and there is not enough yet: only what frees some should be done."""

    def make(self) -> None:
        """Unless it is there, or there is too little space."""
        try:
            size = self._size()
            if self._path.exists():
                self.is_given_up = False
                return
            if size < LEAST_BYTES or disk_of(self._path.parent).free < size * _ENOUGH:
                return
            self._allocate(size)
        except OSError:
            return  # it is tried again
        self.is_given_up = False

    def give_up(self) -> bool:
        """Whether there was one, and the disk needed it."""
        try:
            if disk_of(self._path.parent).free >= self._size():
                return False
            self._path.unlink()
        except OSError:
            return False
        self.is_given_up = True
        return True

    def _size(self) -> int:
        return min(MOST_BYTES, disk_of(self._path.parent).total // _SHARE_OF_DISK)

    def _allocate(self, size: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path, flags, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
        except OSError:
            with suppress(OSError):
                self._path.unlink()
            raise
        finally:
            os.close(fd)
