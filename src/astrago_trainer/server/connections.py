"""Who holds the connections of a server, and whose is closed when there are too many.

A connection whose request is not there yet, or only in part, costs its client nothing, so thousands of them must not
keep others out: when all places are taken, one of these is closed for the new one. Those that never sent a good token
go first, and among them the oldest of the address with the most connections. Some places are kept for probes and for
callers with a token: the others' requests are refused when no more than these are left.
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
        self.reserve = most // 16
        """Places in which only probes and callers with a token are served."""
        self._addresses: dict[Connection, str] = {}
        self._counts: Counter[str] = Counter()
        self._known: set[Connection] = set()
        self._working: set[Connection] = set()
        self._resting: tuple[_ByAddress, _ByAddress] = ({}, {})
        """Those that never sent a good token, and those that did; those that rest longest come first."""

    def __len__(self) -> int:
        return len(self._addresses)

    @property
    def is_scarce(self) -> bool:
        """Whether only the reserve is left: all other places have a request that is being answered."""
        return len(self._working) > self._most - self.reserve

    def enter(self, connection: Connection, address: str) -> bool:
        """A place for a new one, which rests; False when there is none."""
        if self._counts[address] >= self.most_each and not self._close_one(address):
            return False
        if len(self) >= self._most and not self._close_one():
            return False
        self._addresses[connection] = address
        self._counts[address] += 1
        self.rest(connection)
        return True

    def rest(self, connection: Connection) -> None:
        """It has no complete request any more."""
        address = self._addresses.get(connection)
        if address is not None:
            self._working.discard(connection)
            group = self._resting[connection in self._known]
            group.setdefault(address, {})[connection] = None

    def work(self, connection: Connection) -> None:
        """It has sent a complete request."""
        address = self._addresses.get(connection)
        if address is not None:
            self._wake(connection, address)
            self._working.add(connection)

    def know(self, connection: Connection) -> None:
        """It has sent a good token: it is closed for others only when all that rest have."""
        address = self._addresses.get(connection)
        if address is None or connection in self._known:
            return
        is_resting = connection not in self._working
        self._wake(connection, address)
        self._known.add(connection)
        if is_resting:
            self.rest(connection)

    def leave(self, connection: Connection) -> None:
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._wake(connection, address)
        self._working.discard(connection)
        self._known.discard(connection)
        self._counts[address] -= 1
        if not self._counts[address]:
            del self._counts[address]

    def _wake(self, connection: Connection, address: str) -> None:
        group = self._resting[connection in self._known]
        resting = group.get(address)
        if resting is not None:
            resting.pop(connection, None)
            if not resting:
                del group[address]

    def _close_one(self, address: str | None = None) -> bool:
        """The one that is missed least, of this address if one is named; whether there is one."""
        for group in self._resting:
            whose = (
                max(group, key=self._counts.__getitem__, default=None)
                if address is None
                else address
            )
            oldest = next(iter(group.get(whose, ())), None) if whose is not None else None
            if oldest is not None:
                self.leave(oldest)
                oldest.cut()
                return True
        return False


_ByAddress = dict[str, dict[Connection, None]]
