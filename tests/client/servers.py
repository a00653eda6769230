"""Servers for clients: the real one as a process, and one that says what a test wants, byte for byte."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ASTRAGO = str(Path(sys.executable).with_name("astrago"))
PATIENCE = 120.0
"""Seconds; only a failing test takes them."""


@contextmanager
def a_server(data: Path, *, port: int = 0, **env: str) -> Iterator[str]:
    """`astrago up` on a free port; its address."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("ASTRAGO_")}
    data.mkdir(parents=True, exist_ok=True)
    with (data / "server.log").open("ab") as errors:
        process = subprocess.Popen(
            [ASTRAGO, "up", "--port", str(port), "--data", str(data)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**own, "ASTRAGO_LOCAL_USERS": "trusted", **env},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert "http://" in line, (data / "server.log").read_text()
        yield next(word for word in line.split() if word.startswith("http://"))
    finally:
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


class Scripted:
    """Answers each connection with the next of the given texts, then hangs up; keeps what was asked.

    No real server: none can be told to break off in the middle of an answer.
    """

    def __init__(self, answers: Sequence[bytes]) -> None:
        self.requests: list[str] = []
        self._answers = answers
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Scripted:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._thread.join(PATIENCE)
        self._listener.close()

    def _serve(self) -> None:
        for answer in self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                asked = b""
                while b"\r\n\r\n" not in asked and (data := connection.recv(65536)):
                    asked += data
                self.requests.append(asked.decode())
                connection.sendall(answer)


def answer(status: int, body: str, *, content_type: str = "application/json") -> bytes:
    data = body.encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def chunked(*parts: str, is_whole: bool = True) -> bytes:
    """An SSE answer in these chunks; one that is not whole breaks off after them."""
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    body = b"".join(
        f"{len(part.encode()):x}\r\n".encode() + part.encode() + b"\r\n" for part in parts
    )
    return head + body + (b"0\r\n\r\n" if is_whole else b"")
