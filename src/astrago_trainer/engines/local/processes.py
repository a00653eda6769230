"""Finding and ending all processes of a container, also those that left their session or their parent.

Every process of a container inherits a mark in its environment; one that took it off is still in the session that the
container began. Both are asked of the kernel at the moment of the signal, so that no number is ever used twice.
"""

from __future__ import annotations

import os
import signal

MARK = "ASTRAGO_CONTAINER"


def members(mark: str, session: int) -> list[int]:
    """The processes of the container with this mark, whose first process began this session."""
    wanted = f"\0{MARK}={mark}\0".encode()
    return [pid for pid in _all() if _belongs(pid, wanted, session)]


def signal_all(mark: str, session: int, number: int) -> int:
    """Sends the signal to all of them; returns how many there were."""
    found = members(mark, session)
    for pid in found:
        _send(pid, mark, session, number)
    return len(found)


def kill_all(mark: str, session: int) -> None:
    """Ends them for good. Stopped first, so that those which start new ones cannot outrun us."""
    while signal_all(mark, session, signal.SIGSTOP):
        if not signal_all(mark, session, signal.SIGKILL):
            return


def kill_marked(prefix: str) -> None:
    """Ends what is left of a job whose supervisor is gone: everything whose mark begins so."""
    wanted = f"\0{MARK}={prefix}".encode()
    while found := [pid for pid in _all() if _belongs(pid, wanted, -1)]:
        for pid in found:
            _send_checked(pid, wanted, -1, signal.SIGKILL)


def _all() -> list[int]:
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()
    ]


def _send(pid: int, mark: str, session: int, number: int) -> None:
    _send_checked(pid, f"\0{MARK}={mark}\0".encode(), session, number)


def _send_checked(pid: int, wanted: bytes, session: int, number: int) -> None:
    """Through a handle, checked after it is held: the pid may have come to mean another process."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _belongs(pid, wanted, session):
            signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def _belongs(pid: int, mark: bytes, session: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in b"ZX":
            return False
        if int(fields[3]) == session:
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in b"\0" + file.read() + b"\0"
    except (OSError, IndexError):
        return False
