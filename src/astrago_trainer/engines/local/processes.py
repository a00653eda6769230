"""Finding and ending all processes of a container, also those that left their session or their parent.

Every process of a container inherits a mark in its environment; one that took it off is still in the session that the
container began, or in its control group, whose name is the mark. All are asked of the kernel at the moment of the
signal, so that no number is ever used twice.
"""

from __future__ import annotations

import os
import signal

MARK = "ASTRAGO_CONTAINER"
_NO_SESSION = -1


def signal_all(mark: str, session: int, number: int) -> int:
    """To all processes of the container with this mark, whose first process began this session; says how many."""
    return _send(_Mark(mark, "\0", "\n"), session, number)


def kill_all(mark: str, session: int) -> None:
    """Ends them for good. Stopped first, so that those which start new ones cannot outrun us."""
    while signal_all(mark, session, signal.SIGSTOP):
        if not signal_all(mark, session, signal.SIGKILL):
            return


def kill_marked(prefix: str) -> None:
    """Ends what is left of a job whose supervisor is gone: everything whose mark begins so."""
    while _send(_Mark(prefix), _NO_SESSION, signal.SIGKILL):
        pass


def group_name(mark: str) -> str:
    """Of the control group of a container, or of one start of it."""
    return "astrago~" + mark.replace("/", "~")


class _Mark:
    """What to look for in a process's environment, and in the list of its groups."""

    def __init__(self, mark: str, end_in_environment: str = "", end_in_groups: str = "") -> None:
        self.environment = f"\0{MARK}={mark}{end_in_environment}".encode()
        self.groups = f"/{group_name(mark)}{end_in_groups}".encode()


def _send(mark: _Mark, session: int, number: int) -> int:
    """Through handles, checked after they are held: a pid may have come to mean another process."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [pid for pid in pids if pid != os.getpid() and _belongs(pid, mark, session)]
    for pid in found:
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            continue
        try:
            if _belongs(pid, mark, session):
                signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            pass
        finally:
            os.close(handle)
    return len(found)


def _belongs(pid: int, mark: _Mark, session: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in b"ZX":
            return False
        if session in (
            pid,
            int(fields[3]),
        ):  # the first process begins its session a moment after its start
            return True
        with open(f"/proc/{pid}/environ", "rb") as file:
            if mark.environment in b"\0" + file.read() + b"\0":
                return True
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            return mark.groups in file.read()
    except (OSError, IndexError):
        return False
