"""The kubelet's log of a container, asked for with times, back to what the container wrote. Pure.

The times are how a place in it is named: the kubelet can repeat from a second on, and what was had already is left out
by the exact time and the bytes since. So following can be taken up again after any cut, in any process.
"""

from __future__ import annotations

from typing import NamedTuple

_STAMP = len("2006-01-02T15:04:05.000000000Z")
_LONGEST_STAMP = _STAMP + len("+00:00")


class Position(NamedTuple):
    """Behind so many bytes of what was written from this time on."""

    stamp: bytes = b""
    """As the kubelet writes it: of fixed width, so that texts compare as times do."""
    size: int = 0

    @property
    def since(self) -> str:
        """For `sinceTime`, which knows whole seconds only; empty for the beginning."""
        return self.stamp.decode()


class LogLines:
    """One answer of the kubelet, in pieces of any size."""

    def __init__(self, start: Position) -> None:
        self._start = start
        self.position = start
        """Behind what was given back so far."""
        self._stamp = b""
        self._size = 0
        """Of what came with this time in this answer."""
        self._rest = b""
        self._is_inside = False
        self._is_foreign = False

    def feed(self, chunk: bytes) -> bytes:
        """What is new in it."""
        data = self._rest + chunk if self._rest else chunk
        self._rest = b""
        new: list[bytes] = []
        at, size = 0, len(data)
        while at < size:
            if not self._is_inside:
                space = data.find(b" ", at, at + _LONGEST_STAMP + 1)
                if space < 0 and size - at <= _LONGEST_STAMP and b"\n" not in data[at:]:
                    self._rest = data[at:]
                    break
                at = self._begin(data, at, space)
            end = data.find(b"\n", at)
            stop = size if end < 0 else end + 1
            self._take(data[at:stop], new)
            self._is_inside = end < 0
            at = stop
        return b"".join(new)

    def _begin(self, data: bytes, at: int, space: int) -> int:
        """Where the text of the line begins."""
        self._is_inside = True
        stamp = data[at:space] if space > 0 else b""
        # The kubelet's own complaints have no time; they are not what the container wrote.
        self._is_foreign = len(stamp) < _STAMP or stamp[10:11] != b"T"
        if self._is_foreign:
            return at
        if stamp != self._stamp:
            self._stamp, self._size = stamp, 0
        return space + 1

    def _take(self, text: bytes, new: list[bytes]) -> None:
        if self._is_foreign or self._stamp < self._start.stamp:
            return
        before = self._size
        self._size += len(text)
        if self._stamp == self._start.stamp:
            text = text[max(0, self._start.size - before) :]
        if text:
            new.append(text)
            self.position = Position(self._stamp, self._size)
