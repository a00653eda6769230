"""Server-sent events out of bytes, as they come (the rules of the HTML standard); without I/O."""

from __future__ import annotations

from typing import NamedTuple

MOST_WAITING = 16 << 20
"""Bytes of an event that has not ended: our server's are far smaller, and a stranger must not fill the memory."""


class ServerEvent(NamedTuple):
    name: str
    data: str
    id: str
    """The last one that was sent: to go on from here after a lost connection."""


class Parser:
    """Feed it whatever arrived."""

    def __init__(self) -> None:
        self.last_id = ""
        """Of the last event that ended: one that broke off has not been seen, whatever its id."""
        self._id = ""
        self._open = b""
        self._name = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that ended in these bytes."""
        *lines, self._open = (self._open + data).split(b"\n")
        if len(self._open) > MOST_WAITING:
            raise ValueError("an event without an end")
        found = []
        for line in lines:
            event = self._line(line.removesuffix(b"\r").decode("utf-8", "replace"))
            if event is not None:
                found.append(event)
        return found

    def restart(self) -> None:
        """The connection was lost: what had not ended will come again."""
        self._open, self._name, self._data, self._id = b"", "", [], self.last_id

    def _line(self, line: str) -> ServerEvent | None:
        if not line:
            data, name = "\n".join(self._data), self._name or "message"
            is_empty = not self._data
            self._name, self._data, self.last_id = "", [], self._id
            return None if is_empty else ServerEvent(name, data, self.last_id)
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        elif field == "id" and "\0" not in value:
            self._id = value
        return None
