"""Others on the same machine: a containerd at the usual place, a kubelet's control group, servers on the usual ports.

Real ones, made by the tests and ended by their own pids. A cluster starts, dies and ends beside them; it must not
notice them, nor they it.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

SOCKET = Path("/run/containerd/containerd.sock")
PORTS = (2379, 2380, 6443, 10248, 10249, 10250, 10256, 10257, 10259)
SETTING = Path("/proc/sys/kernel/panic")
ODD = "17\n"
"""A value that nobody would set, the kubelet least."""


@contextmanager
def containerd(folder: Path) -> Iterator[subprocess.Popen[bytes] | None]:
    """None where the machine has one already: that will do."""
    if answers():
        yield None
        return
    options = (f"--address={SOCKET}", f"--root={folder}/root", f"--state={folder}/state")
    had_folder = SOCKET.parent.exists()
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(["containerd", *options], stdout=log, stderr=log) as process,
    ):
        end = time.monotonic() + 60
        while not answers():
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.1)
        yield process
        process.terminate()
    for path in (SOCKET, SOCKET.with_name("containerd.sock.ttrpc")):
        path.unlink(missing_ok=True)
    if not had_folder:
        SOCKET.parent.rmdir()


def answers() -> bool:
    return (
        subprocess.run(["ctr", "-a", str(SOCKET), "version"], capture_output=True).returncode == 0
    )


@contextmanager
def kubelet_group() -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A group as a kubelet makes it, with a process in it."""
    base = Path("/sys/fs/cgroup")
    parent = (base / "pids" if (base / "pids").is_dir() else base) / "kubepods"
    group = parent / "foreign"
    group.mkdir(parents=True)
    with subprocess.Popen(["sleep", "3600"]) as process:
        (group / "cgroup.procs").write_text(str(process.pid))
        yield group, process
        process.kill()
    group.rmdir()
    with suppress(OSError):  # others are in it
        parent.rmdir()


@contextmanager
def servers() -> Iterator[None]:
    with ExitStack() as stack:
        for port in PORTS:
            with suppress(OSError):  # taken by somebody else, which is as good
                stack.enter_context(socket.create_server(("0.0.0.0", port)))
        yield


@contextmanager
def setting() -> Iterator[None]:
    """One that the kubelet would change for the whole machine."""
    before = SETTING.read_text()
    SETTING.write_text(ODD)
    yield
    SETTING.write_text(before)
