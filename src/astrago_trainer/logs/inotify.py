"""The kernel's word that a file changed: inotify(7) through libc, for any event loop that can wait for a descriptor.

Nothing here waits. The numbers are those of <sys/inotify.h>.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

MODIFY = 0x00000002
ATTRIB = 0x00000004
CLOSE_WRITE = 0x00000008
MOVED_TO = 0x00000080
CREATE = 0x00000100
DELETE = 0x00000200
DELETE_SELF = 0x00000400
MOVE_SELF = 0x00000800
Q_OVERFLOW = 0x00004000
IGNORED = 0x00008000
ONLYDIR = 0x01000000
ONESHOT = 0x80000000

_HEAD = struct.Struct("iIII")  # watch, mask, cookie, length of the name
_ENOUGH = 65536  # some thousand events; what is left makes the descriptor readable again


class Event(NamedTuple):
    watch: int
    mask: int
    name: str
    """The entry that changed, where a folder is watched."""


class Inotify:
    """One inotify instance. A user may have 128 of them by default, so one serves a whole process."""

    def __init__(self) -> None:
        """Raises OSError, EMFILE when the user has too many."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)

    def fileno(self) -> int:
        return self._fd

    def add_watch(self, path: str | Path, mask: int) -> int:
        """The number that events of this path will carry; the same for a file that is watched already."""
        return self._call(
            "inotify_add_watch", self._fd, os.fsencode(path), ctypes.c_uint32(mask), path=path
        )

    def remove_watch(self, watch: int) -> None:
        """A watch that has ended by itself is fine."""
        self._libc.inotify_rm_watch(self._fd, watch)

    def read(self) -> list[Event]:
        """What happened so far, perhaps nothing."""
        try:
            data = os.read(self._fd, _ENOUGH)
        except BlockingIOError:
            return []
        return list(_events(data))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _call(self, name: str, *arguments: object, path: str | Path | None = None) -> int:
        result: int = getattr(self._libc, name)(*arguments)
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), None if path is None else str(path))
        return result


def open_inotify() -> Inotify | None:
    """None where there is none to have: another system, or all of the user's instances in use."""
    try:
        return Inotify()
    except (OSError, AttributeError):
        return None


def _events(data: bytes) -> Iterator[Event]:
    at = 0
    while at < len(data):
        watch, mask, _, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        name = data[at : at + length].rstrip(b"\0")
        at += length
        yield Event(watch, mask, os.fsdecode(name))
