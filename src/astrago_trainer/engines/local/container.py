"""Starts one container as a process: its view of the machine, its environment, its output.

The child is forked from the supervisor, which has one thread, and does everything between fork and exec itself. What
keeps it from starting travels back through a pipe that closes by itself when the program has begun.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import Any

from astrago_trainer.engines.local import kernel
from astrago_trainer.engines.local.processes import MARK
from astrago_trainer.engines.local.view import View
from astrago_trainer.engines.local.warm import Asked, become

Json = dict[str, Any]

SHORT_TMP = "/.astrago-tmp"
"""TMPDIR of a container with a view: sockets that programs make there have a path of at most 107 characters."""
_RESET = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE")


class Start:
    """Everything a container's process needs; plain values, decided before the fork."""

    __slots__ = (
        "command", "env", "files", "folder", "group_files", "hostname", "mark", "mounts", "output", "scratch",
    )  # fmt: skip

    def __init__(self) -> None:
        self.command: list[str] = []
        self.env: dict[str, str] = {}
        self.folder = ""
        """Working folder; empty for a scratch folder of its own."""
        self.mounts: list[tuple[str, str, bool]] = []
        """Source, path, read-only; a source may be a single file, too."""
        self.files: list[tuple[str, str]] = []
        """Source, path of single files: host names, the termination message."""
        self.hostname = ""
        self.output = -1
        """Where standard output and error go."""
        self.mark = ""
        self.scratch = ""
        self.group_files: list[str] = []
        """The `cgroup.procs` files to enter."""


def start(what: Start, *, has_view: bool) -> tuple[int, int]:
    """The pid of the new process, and the pipe that tells of a failed start: empty when the program has begun."""
    if has_view and what.env.get("TMPDIR") == what.scratch:  # else the job has set it
        folder = what.scratch + "/temporary"
        os.makedirs(folder, exist_ok=True)
        what.mounts = [*what.mounts, (folder, SHORT_TMP, False)]
        what.env["TMPDIR"] = SHORT_TMP
    told, tell = os.pipe2(os.O_CLOEXEC)
    pid = _fork()
    if pid == 0:
        _run(what, tell, has_view)
    os.close(tell)
    return pid, told


def start_beside(
    what: Start, pid: int, run: list[str] | Asked, streams: list[int], *, has_view: bool
) -> int:
    """The pid of another process of a container, with the view and the limits of its process `pid`.

    `run` is a command, which gets the container's environment, or what an interpreter was asked for.
    """
    new = _fork()
    if new == 0:
        try:
            _prepare(what)
            for kind in resource_kinds():
                resource.setrlimit(kind, resource.prlimit(pid, kind))
            if has_view:
                for name in ("mnt", "uts"):
                    kernel.enter_namespace(f"/proc/{pid}/ns/{name}")
            if isinstance(run, Asked):
                become(run, streams)
            os.chdir(what.folder or what.scratch)
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            os.execvpe(run[0], run, {**what.env, MARK: what.mark})  # noqa: S606 - a list of words
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(126)
    return new


def resource_kinds() -> list[int]:
    return [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]


def _fork() -> int:
    """A signal to the child waits until `_prepare`: before that the handlers of the supervisor would take it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    pid = os.fork()
    if pid:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return pid


def _prepare(what: Start) -> None:
    """In the child: a process of its own, in its group."""
    os.setsid()
    kernel.die_with_parent(signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    for name in _RESET:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for path in what.group_files:
        _enter_group(path)


def _run(what: Start, tell: int, has_view: bool) -> None:
    """In the child; never returns."""
    program = ""
    try:
        _prepare(what)
        if has_view:
            _build_view(what)
        os.chdir(what.folder or what.scratch)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(what.output, 1)
        os.dup2(what.output, 2)
        program = what.command[0]
        env = {**what.env, MARK: what.mark}
        os.execvpe(program, what.command, env)  # noqa: S606 - a list of words, no shell
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        # Looked for in every folder of PATH, the program is named by the last of them.
        _fail(tell, code, f"{program or error.filename}: {error.strerror}")
    except BaseException as error:
        _fail(tell, 126, f"{type(error).__name__}: {error}")


def _build_view(what: Start) -> None:
    kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS)
    root = what.scratch + "/root"
    os.makedirs(root, exist_ok=True)
    view = View(root)
    mounts = sorted(what.mounts, key=lambda mount: mount[1].rstrip("/").count("/"))
    inside = tuple(f"{path.rstrip('/')}/" for _, path, _ in mounts)
    places = [(path, os.path.isdir(source)) for source, path, _ in mounts]
    places += [(path, False) for _, path in what.files]
    for path, is_folder in [*places, (what.folder or "/", True)]:
        if not path.startswith(inside):  # else it is made in that volume, once it is there
            view.make_room(path, is_folder=is_folder)
    for source, path, read_only in mounts:
        view.add(source, path, read_only=read_only)
    for source, path in what.files:
        view.add(source, path)
    if what.folder.startswith(inside):
        view.make_room(what.folder, is_folder=True)
    kernel.set_hostname(what.hostname)
    view.enter()


def _enter_group(path: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    os.write(handle, b"0")
    os.close(handle)


def _fail(tell: int, code: int, text: str) -> None:
    os.write(tell, text.encode()[:2000])
    os._exit(code)
