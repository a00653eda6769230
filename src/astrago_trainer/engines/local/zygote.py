"""An interpreter with a framework imported, from which supervisors of jobs are forked: `ASTRAGO_WARM=torch`.

Importing torch takes seconds, forking milliseconds. The supervisor does not use it; the processes that it forks for the
job do. Off unless asked for, because it holds memory; a job that finds it missing, or other than expected, starts cold.

Run as a program in the job's own environment: `<socket> <module,…>`. It ends when who started it is gone.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

from astrago_trainer.engines.local import kernel, warm

_MOST_BYTES = 4 * 1024 * 1024


def main() -> None:
    path, modules = sys.argv[1:3]
    kernel.die_with_parent(signal.SIGKILL)
    if os.getppid() == 1:
        return
    before = dict(os.environ)
    for name in filter(None, modules.split(",")):
        importlib.import_module(name)
    warm.note_environment(before)
    importlib.import_module("astrago_trainer.engines.local.supervisor")
    threads = _threads_over_a_fork()
    if threads:
        sys.exit(f"{modules} runs {threads} threads after its import, which no fork survives")
    gc.collect()
    gc.freeze()  # what is never looked at is never copied
    kernel.set_process_name("astrago-warm")
    with suppress(FileNotFoundError):
        os.unlink(path)
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(os.path.dirname(path))  # a socket's address is short
        server.bind(os.path.basename(path))
        os.chmod(path, 0o600)
        server.listen(64)
        print("ready", flush=True)
        signal.signal(
            signal.SIGCHLD, signal.SIG_IGN
        )  # the starters of supervisors, whose ends nobody asks for
        while True:
            connection, _ = server.accept()
            with connection:
                _serve(server, connection)


def ask(address: str, request: dict[str, Any], errors: int) -> bool:
    """Whether a supervisor was forked; raises OSError when no zygote listens."""
    folder, name = os.path.split(address)
    handle = os.open(folder, os.O_PATH | os.O_CLOEXEC)  # a socket's address is short
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"/proc/self/fd/{handle}/{name}")
            socket.send_fds(connection, [json.dumps(request).encode()], [errors])
            return connection.recv(16) == b"started\n"
    finally:
        os.close(handle)


def _threads_over_a_fork() -> int:
    """How many other threads there are. A library that knows of forks, as OpenBLAS does, ends its own before one."""
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) - 1


def _serve(server: socket.socket, connection: socket.socket) -> None:
    """One supervisor. The asker hears of it when it has its own process."""
    data, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 1)
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        server.close()
        try:
            request = json.loads(data)
            from astrago_trainer.engines.local.supervisor import become_starter, begin

            become_starter(streams[0])
            begin(
                request["folder"],
                request["settings"],
                on_started=lambda: connection.sendall(b"started\n"),
            )
        finally:
            os._exit(1)
    for stream in streams:
        os.close(stream)
