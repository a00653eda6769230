"""The few calls to the kernel that Python 3.11 has no names for. Imported by the supervisor: keep it light."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    done = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _check(done, f"mount {source} on {target}")


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """What is at `source` also at `target`, with all that is mounted below it."""
    mount(source, target, flags=MS_BIND | MS_REC)
    if read_only:  # takes a second call: the first one ignores every other flag
        mount("none", target, flags=MS_REMOUNT | MS_BIND | MS_RDONLY | _locked_flags(target))


def unmount(target: str) -> None:
    _check(_libc.umount2(os.fsencode(target), _MNT_DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    number = _SYS_PIVOT_ROOT[os.uname().machine]
    _check(_libc.syscall(number, os.fsencode(new), os.fsencode(old)), "pivot_root")


def set_hostname(name: str) -> None:
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), "sethostname")


def enter_namespace(path: str) -> None:
    """One of those that /proc/<pid>/ns lists."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check(_libc.setns(handle, 0), f"setns {path}")
    finally:
        os.close(handle)


def set_process_name(name: str) -> None:
    """What `ps` and `top` show."""
    _libc.prctl(_PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def die_with_parent(signal_number: int) -> None:
    """Asks the kernel for this signal when the process that started this one ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal_number, 0, 0, 0)


def _locked_flags(target: str) -> int:
    """Flags that a user namespace may not take off, so a remount has to repeat them."""
    flags = os.statvfs(target).f_flag
    return flags & (
        MS_NOSUID | MS_NODEV | 8 | 1024 | 2048
    )  # 8 noexec, 1024 noatime, 2048 nodiratime


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
