"""Commands that one pod of a job runs in another, as ssh would: the supervisor's side of `ssh`.

A folder with the programs `ssh`, `sshd` and `ssh-keygen` comes first in the PATH of such a job, so that runtimes made
for images with OpenSSH work unchanged: the daemon only stays, and no keys are made on this machine.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.engines.local.ssh import SOCKET, address

Json = dict[str, Any]

PLACES = {"ssh": "/usr/bin/ssh", "sshd": "/usr/sbin/sshd", "ssh-keygen": "/usr/bin/ssh-keygen"}
_MAIN = "import sys; sys.path[:0] = [{!r}]; from astrago_trainer.engines.local.ssh import main; main({!r})"
_MOST_BYTES = 1024 * 1024

Run = Callable[[str, str, list[int]], int]
"""Host, command, standard streams -> the pid of the process. Raises LookupError: there is no such host."""


class Sessions:
    """Listens for the pods of one job."""

    def __init__(self, folder: str, loop: Loop, run: Run) -> None:
        self._loop = loop
        self._run = run
        self._open: dict[int, socket.socket] = {}
        path = address(folder)
        if os.path.exists(path):  # of a supervisor that was killed
            os.unlink(path)
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(path)
        os.chmod(f"{folder}/{SOCKET}", 0o600)
        self._server.listen(1024)
        self._server.setblocking(False)
        loop.on_readable(self._server.fileno(), self._accept)

    def end(self, pid: int, code: int) -> bool:
        """Whether the process that ended was one of a session; tells who asked for it."""
        connection = self._open.pop(pid, None)
        if connection is None:
            return False
        self._answer(connection, {"code": code})
        return True

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # gone again, or out of descriptors: it is asked anew
            return
        connection.setblocking(False)
        self._loop.on_readable(connection.fileno(), lambda: self._begin(connection))

    def _begin(self, connection: socket.socket) -> None:
        """One message is one request; it comes whole, with the streams."""
        streams: list[int] = []
        try:
            data, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
            request = json.loads(data)
            pid = self._run(request["host"], request["command"], streams)
        except LookupError as error:
            self._answer(connection, {"trouble": str(error.args[0])})
        except (OSError, ValueError):
            self._answer(connection, {"trouble": "the request could not be read"})
        else:
            self._open[pid] = connection
            self._loop.forget(connection.fileno())
            self._loop.on_readable(connection.fileno(), lambda: self._hang_up(pid))
        finally:
            for stream in streams:
                os.close(stream)

    def _hang_up(self, pid: int) -> None:
        """Who asked is gone: so goes what it started."""
        connection = self._open.get(pid)
        if connection is None:
            return
        self._loop.forget(connection.fileno())
        os.killpg(pid, signal.SIGHUP)  # it is ours and not collected yet: the number is its own

    def _answer(self, connection: socket.socket, told: Json) -> None:
        self._loop.forget(connection.fileno())
        with suppress(OSError):  # gone meanwhile
            connection.sendall(json.dumps(told).encode() + b"\n")
        connection.close()


def write_programs(folder: str, job: str) -> None:
    """The programs into `folder`."""
    os.makedirs(folder, exist_ok=True)
    packages = os.path.abspath(__file__ + "/../../../..")
    call = [sys.executable, "-I", "-S", "-c", _MAIN.format(packages, job)]
    texts = {
        "ssh": f'exec {shlex.join(call)} "$@"',
        "sshd": "exec tail -f /dev/null",
        "ssh-keygen": "exit 0",
    }
    for name, text in texts.items():
        handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o755)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
