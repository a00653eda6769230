"""Who holds the connections of a server, and whose is closed when there are too many.

A connection without a request costs its client nothing, so thousands of them must not keep others out: when all places
are taken, one that rests is closed for the new one, the oldest of the address that has most of them.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Connection(Protocol):
    """What is closed."""

    def cut(self) -> None: ...


class Connections:
    """Of one server."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.most_each = most - most // 8
        """Of one address: the others, and probes among them, always find places."""
        self._addresses: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._resting: dict[str, dict[Connection, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, connection: Connection, address: str) -> bool:
        """A place for a new one, which rests; False when there is none."""
        if self._counts[address] >= self.most_each and not self._close_one(address):
            return False
        if len(self) >= self._most and not self._close_one(self._most_resting()):
            return False
        self._addresses[connection] = address
        self._counts[address] += 1
        self.rest(connection)
        return True

    def rest(self, connection: Connection) -> None:
        """It has no request any more."""
        address = self._addresses.get(connection)
        if address is not None:
            self._resting.setdefault(address, {})[connection] = None

    def work(self, connection: Connection) -> None:
        """It has sent a request."""
        address = self._addresses.get(connection)
        if address is not None:
            self._wake(connection, address)

    def leave(self, connection: Connection) -> None:
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._wake(connection, address)
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]

    def _wake(self, connection: Connection, address: str) -> None:
        resting = self._resting.get(address)
        if resting is not None:
            resting.pop(connection, None)
            if not resting:
                del self._resting[address]

    def _most_resting(self) -> str:
        return max(self._resting, key=lambda address: len(self._resting[address]), default="")

    def _close_one(self, address: str) -> bool:
        """The one of this address that has rested longest; whether there is one."""
        oldest = next(iter(self._resting.get(address, ())), None)
        if oldest is None:
            return False
        self.leave(oldest)
        oldest.cut()
        return True
