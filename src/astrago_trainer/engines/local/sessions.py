"""What processes of a job's pods ask its supervisor for: to run a command in another pod, or a warm interpreter.

A folder with programs comes first in the PATH of such a job. `ssh`, `sshd` and `ssh-keygen` let runtimes that were made
for images with OpenSSH work unchanged: the daemon only stays, and no keys are made on this machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress

from astrago_trainer.engines.local.calls import SOCKET, address
from astrago_trainer.engines.local.loop import Loop

_MOST_BYTES = 16 * 1024 * 1024
_PEER = struct.Struct("3i")


class Request:
    """What a process asks for."""

    def __init__(self, words: list[str], streams: list[int], pid: int) -> None:
        self.words = words
        self.streams = streams
        self.pid = pid
        """Of who asks."""


Run = Callable[[Request], int]
"""Gives the pid of a child of ours, the leader of its group. Raises LookupError with the reason why there is none."""


class _Session:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.streams: list[int] = []
        self.data = bytearray()
        self.length = -1
        self.pid = 0
        self.hang_up = signal.SIGHUP


class Sessions:
    """Listens for the pods of one job."""

    def __init__(
        self, folder: str, loop: Loop, runs: Mapping[str, tuple[Run, signal.Signals]]
    ) -> None:
        """`runs`: for each kind of request who does it, and the signal for what is left when the asker is gone."""
        self._loop = loop
        self._runs = runs
        self._open: dict[int, _Session] = {}
        path = address(folder)
        with suppress(FileNotFoundError):  # of a supervisor that was killed
            os.unlink(path)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        os.chmod(f"{folder}/{SOCKET}", 0o600)
        self._server.listen(1024)
        self._server.setblocking(False)
        loop.on_readable(self._server.fileno(), self._accept)

    def end(self, pid: int, code: int) -> None:
        """A child that is no container has ended, -n by a signal: tells who asked for it."""
        session = self._open.pop(pid, None)
        if session is not None:
            self._answer(session, str(code))
            self._close(session)

    def kill(self, pids: set[int]) -> None:
        """Those of the container whose processes end; they are ours, so their numbers are theirs."""
        for pid in pids & self._open.keys():
            os.killpg(pid, signal.SIGKILL)

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # gone again, or out of descriptors: it is asked anew
            return
        connection.setblocking(False)
        session = _Session(connection)
        self._loop.on_readable(connection.fileno(), lambda: self._read(session))

    def _read(self, session: _Session) -> None:
        try:
            data, streams, _, _ = socket.recv_fds(session.connection, 65536, 3)
        except BlockingIOError:
            return
        except OSError:
            data, streams = b"", []
        session.streams += streams
        if session.pid:
            if not data:
                self._hang_up(session)
            return
        session.data += data
        if session.length < 0 and len(session.data) >= 8:
            session.length = int.from_bytes(session.data[:8], "big")
            del session.data[:8]
        if not data or session.length > _MOST_BYTES or len(session.streams) > 3:
            self._close(session)
        elif 0 <= session.length <= len(session.data):
            self._begin(session)

    def _begin(self, session: _Session) -> None:
        words = [os.fsdecode(word) for word in bytes(session.data).split(b"\0")]
        peer = session.connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        try:
            if words[0] not in self._runs or len(session.streams) != 3:
                raise LookupError("the request could not be read")
            run, session.hang_up = self._runs[words[0]]
            session.pid = run(Request(words[1:], session.streams, _PEER.unpack(peer)[0]))
        except (LookupError, OSError, ValueError) as error:
            self._answer(session, f"0 {error.args[0]}")
            self._close(session)
            return
        self._open[session.pid] = session
        self._answer(session, f"{session.pid} ")
        self._close_streams(session)

    def _hang_up(self, session: _Session) -> None:
        """Who asked is gone: so goes what it started."""
        self._loop.forget(session.connection.fileno())
        if session.pid in self._open:  # not collected yet: the number is its own
            os.killpg(session.pid, session.hang_up)

    def _answer(self, session: _Session, line: str) -> None:
        with suppress(OSError):  # gone meanwhile
            session.connection.sendall(line.encode() + b"\n")

    def _close(self, session: _Session) -> None:
        self._loop.forget(session.connection.fileno())
        self._close_streams(session)
        session.connection.close()

    def _close_streams(self, session: _Session) -> None:
        for stream in session.streams:
            os.close(stream)
        session.streams = []


def write_ssh(folder: str, job: str) -> None:
    """The programs of OpenSSH into `folder`."""
    texts = {
        "ssh": f'exec {_program(sys.executable, "ssh")} {shlex.quote(job)} "$@"',
        "sshd": "exec tail -f /dev/null",
        "ssh-keygen": "exit 0",
    }
    for name, text in texts.items():
        _write_program(folder, name, text)


def write_python(folder: str, job: str, interpreter: str) -> None:
    """The programs that people call an interpreter by."""
    words = shlex.join((job, interpreter))
    text = f'exec {_program(interpreter, "python")} {words} "$@"'
    for name in ("python", "python3", "python{}.{}".format(*sys.version_info)):
        _write_program(folder, name, text)


def _program(interpreter: str, module: str) -> str:
    packages = os.path.abspath(__file__ + "/../../../..")
    start = (
        f"import sys; sys.path.insert(0, {packages!r}); "
        f"from astrago_trainer.engines.local.{module} import main; main()"
    )
    return shlex.join((interpreter, "-I", "-S", "-c", start))


def _write_program(folder: str, name: str, text: str) -> None:
    os.makedirs(folder, exist_ok=True)
    handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{text}\n")
