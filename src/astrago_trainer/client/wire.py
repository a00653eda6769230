"""HTTP/1.1 on a plain socket, for the command line: `http.client` alone takes longer to import than a list to fetch.

One request on one connection. It speaks to our own server, and to whatever proxy stands before it: lengths, chunks and
TLS are understood, redirects are refused.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import IO
from urllib.parse import SplitResult, urlsplit

from astrago_trainer import __version__
from astrago_trainer.client.errors import Unavailable, Unexpected
from astrago_trainer.core.errors import InvalidRequest, Problem

CONNECT_SECONDS = 10.0
_MOST_HEADER = 64 << 10
_MOST_HEADERS = 200
_BLOCK = 1 << 16


def parse_url(url: str) -> SplitResult:
    """Raises InvalidRequest for what is no address of a server."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_good = is_good and not (parts.query or parts.fragment or parts.username)
        _ = parts.port
    except ValueError:
        is_good = False
    if not is_good:
        problem = Problem(
            "server",
            "FieldValueInvalid",
            f"must be the address of a server, as in http://127.0.0.1:8000; found {url!r}.",
        )
        raise InvalidRequest([problem])
    return parts


class Answer:
    """Status, headers, and the body while it comes. Close it."""

    def __init__(self, connection: socket.socket, stream: IO[bytes], where: str) -> None:
        self._connection = connection
        self._stream = stream
        self._where = where
        self.status = self._read_status()
        self.headers = self._read_headers()

    def read(self) -> bytes:
        return b"".join(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """The body, as it arrives."""
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            yield from self._chunks()
            return
        length = self.headers.get("content-length")
        left = int(length) if length is not None and length.isdecimal() else None
        while left != 0:
            data = self._read1(_BLOCK if left is None else min(left, _BLOCK))
            if not data:
                if left:
                    raise ConnectionResetError("the answer ended early")
                return
            left = None if left is None else left - len(data)
            yield data

    def close(self) -> None:
        self._stream.close()
        self._connection.close()

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self._line().partition(b";")[0].strip()
            try:
                left = int(size, 16)
            except ValueError:
                raise ConnectionResetError("the answer ended early") from None
            if left == 0:
                return
            while left:
                data = self._read1(min(left, _BLOCK))
                if not data:
                    raise ConnectionResetError("the answer ended early")
                left -= len(data)
                yield data
            self._line()

    def _read1(self, size: int) -> bytes:
        data: bytes = self._stream.read1(size)  # type: ignore[attr-defined]
        return data

    def _line(self) -> bytes:
        return self._stream.readline(_MOST_HEADER)

    def _read_status(self) -> int:
        line = self._line()
        if not line:
            raise ConnectionResetError("no answer")
        version, _, rest = line.partition(b" ")
        code = rest[:3]
        if not version.startswith(b"HTTP/1.") or not code.isdigit():
            raise Unexpected(f"{self._where} does not speak HTTP. Check its address.")
        return int(code)

    def _read_headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._line().strip()
            if not line:
                return headers
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        raise Unexpected(f"{self._where} answers with too many headers. Check its address.")


def send(
    parts: SplitResult,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes | None,
    *,
    timeout: float,
) -> Answer:
    """Raises Unavailable when nobody is there, and OSError when the connection is lost later."""
    where = f"{parts.scheme}://{parts.netloc}"
    connection = _connect(parts, where)
    try:
        connection.settimeout(timeout)
        lines = [
            f"{method} {parts.path.rstrip('/')}{path} HTTP/1.1",
            f"Host: {parts.netloc}",
            f"User-Agent: astrago/{__version__}",
            "Connection: close",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        elif method != "GET":
            lines.append("Content-Length: 0")
        head = "\r\n".join(lines)
        if (
            any(ord(each) < 32 and each not in "\r\n" for each in head)
            or head.count("\n") != len(lines) - 1
        ):
            raise InvalidRequest(
                [Problem("", "FieldValueInvalid", "a header or address holds control characters.")]
            )
        connection.sendall(f"{head}\r\n\r\n".encode("latin-1", "replace") + (body or b""))
        return Answer(connection, connection.makefile("rb"), where)
    except BaseException:
        connection.close()
        raise


def _connect(parts: SplitResult, where: str) -> socket.socket:
    assert parts.hostname is not None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        connection = socket.create_connection((parts.hostname, port), timeout=CONNECT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "https":
            import ssl

            return ssl.create_default_context().wrap_socket(
                connection, server_hostname=parts.hostname
            )
        return connection
    except OSError as error:
        reason = error.strerror or str(error)
        raise Unavailable(
            f"no server answers at {where}: {reason}. Start it with astrago up, or check the address."
        ) from error
