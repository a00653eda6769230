"""How a process of a pod asks the supervisor of its job for something: one request over a socket, with its streams.

The request is words without a zero byte, with their length before them; the answers are lines. No JSON: programs that
come in the way of users' own have no time for it.
"""

from __future__ import annotations

import _socket as socket
import os
import sys

SOCKET = "calls.sock"


class Call:
    """One request and its answers. Raises OSError when there is no supervisor."""

    def __init__(self, folder: str, words: list[str]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        self._socket.connect(address(folder))
        body = b"\0".join(os.fsencode(word) for word in words)
        streams = b"".join(fd.to_bytes(4, sys.byteorder) for fd in (0, 1, 2))
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
        self._socket.sendmsg([len(body).to_bytes(8, "big")], rights)
        self._socket.sendall(body)
        self._read = b""

    def answer(self) -> str:
        """The next line; empty when the supervisor is gone."""
        while b"\n" not in self._read:
            data = self._socket.recv(4096)
            if not data:
                return ""
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()


def address(folder: str) -> str:
    """Short enough for a socket, however long the folder's path is."""
    return f"/proc/self/fd/{os.open(folder, os.O_PATH | os.O_CLOEXEC)}/{SOCKET}"
