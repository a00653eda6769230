"""The ranks of one run as forked processes that report to us by lines, and that can be killed."""

from __future__ import annotations

import os
import select
import signal
import socket
import traceback
from collections.abc import Callable

Report = Callable[[str], None]


class Life:
    """One run of all ranks, from their start until all have ended."""

    def __init__(self, world_size: int, work: Callable[[int, Report], None]) -> None:
        self._children = []
        self._sockets = []
        for rank in range(world_size):
            ours, theirs = socket.socketpair()
            child = os.fork()
            if child == 0:
                for each in (ours, *self._sockets):
                    each.close()
                _work(rank, theirs, work)
            theirs.close()
            self._children.append(child)
            self._sockets.append(ours)
        self.lines: list[list[str]] = [[] for _ in range(world_size)]
        self._open = list(self._sockets)
        self._rest = [b""] * world_size
        self._unread: list[list[str]] = [[] for _ in range(world_size)]

    def read(self, rank: int) -> str:
        """The next line of a rank; empty when it has ended."""
        while not self._unread[rank] and self._sockets[rank] in self._open:
            self._receive()
        if not self._unread[rank]:
            return ""
        self.lines[rank].append(self._unread[rank].pop(0))
        return self.lines[rank][-1]

    def _receive(self) -> None:
        # From all that have something: a rank whose lines nobody reads would come to a halt, and the others with it.
        ready, _, _ = select.select(self._open, [], [])
        for each in ready:
            rank = self._sockets.index(each)
            try:
                data = each.recv(1 << 16)
            except ConnectionError:
                data = b""
            if not data:
                self._open.remove(each)
            *lines, self._rest[rank] = (self._rest[rank] + data).split(b"\n")
            self._unread[rank] += [line.decode() for line in lines]

    def kill(self, rank: int) -> None:
        os.kill(self._children[rank], signal.SIGKILL)

    def end(self, *, kill: bool) -> list[int]:
        """Wait until all have ended, killed or by themselves; give their exit codes, with all lines read."""
        if kill:
            for rank in range(len(self._children)):
                self.kill(rank)
        for rank in range(len(self._children)):
            while self.read(rank):
                pass
        for each in self._sockets:
            each.close()
        return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in self._children]

    def numbers(self, word: str) -> list[list[int]]:
        """The numbers that each rank has reported after a word."""
        return [
            [int(line.split()[1]) for line in lines if line.startswith(word + " ")]
            for lines in self.lines
        ]


def _work(rank: int, report: socket.socket, work: Callable[[int, Report], None]) -> None:
    try:
        work(rank, lambda line: report.sendall(line.encode() + b"\n"))
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)
