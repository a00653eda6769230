"""Bytes to lines as people see them, in constant memory.

A line ends with a newline. A carriage return inside it goes back to its start: what stands after the last one is the
line's last state, and a progress bar that rewrote itself 100,000 times is one line. Bytes are UTF-8 only by habit:
whatever is none is shown as U+FFFD, and no character is ever cut in two.
"""

from __future__ import annotations

from typing import NamedTuple

MAX_LINE = 1 << 20
"""Bytes of one line that calls by line give back; the bytes themselves stay whole in calls by offset."""


class Dropped(NamedTuple):
    """How much of a log is no longer there, where a line says so; see `gap`."""

    bytes: int
    lines: int


class Chunk(NamedTuple):
    """Bytes of a log and where they lie."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def dropped(self) -> Dropped | None:
        """Set when this is the line about the dropped part of a log, and nothing else."""
        return None


class DroppedChunk(Chunk):
    """The line about the dropped part of a log."""

    _dropped: Dropped

    @classmethod
    def about(cls, offset: int, data: bytes, dropped: Dropped) -> DroppedChunk:
        made = cls(offset, data)
        made._dropped = dropped
        return made

    @property
    def dropped(self) -> Dropped:
        return self._dropped


class Line(NamedTuple):
    """One line, without its newline."""

    offset: int
    """Of its first byte. Two lines with the same offset are the same line: the later one replaces the earlier."""
    end: int
    """Behind its newline, or behind what there is of it."""
    data: bytes
    ended: bool = True
    """False: no newline came yet; this is how the line stands."""
    cut: bool = False
    """It has more than MAX_LINE bytes, and these are the first."""
    dropped: Dropped | None = None
    """Set for the line that stands for a dropped part of the log."""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")

    @property
    def resume(self) -> int:
        """Where to go on after this line without losing or repeating anything."""
        return self.end if self.ended else self.offset


def last_state(line: bytes) -> bytes:
    """What is left of a line after its carriage returns; those at its end overwrite nothing."""
    if b"\r" not in line:
        return line
    line = line.rstrip(b"\r")
    return line[line.rfind(b"\r") + 1 :]


def whole_characters(data: bytes) -> int:
    """How many bytes to take so that the last character is not cut; leaves at most 3."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 1 + (0xC2 <= byte <= 0xF4) + (0xE0 <= byte <= 0xF4) + (0xF0 <= byte <= 0xF4)
            return len(data) - back if length > back else len(data)
    return len(data)


def character_start(data: bytes) -> int:
    """How many bytes to leave out so that it begins with a character; at most 3."""
    for at in range(min(3, len(data))):
        if data[at] & 0xC0 != 0x80:
            return at
    return min(3, len(data))


class LineCutter:
    """Cuts a stream of bytes into lines; keeps no more than the last state of one line."""

    def __init__(self, offset: int, *, raw: bool = False, max_line: int = MAX_LINE) -> None:
        """`raw` keeps carriage returns."""
        self.position = offset
        """Offset of the next byte."""
        self._raw = raw
        self._max = max_line
        self._offset = offset
        self._state = bytearray()
        self._returned = False
        self._cut = False

    def feed(self, data: bytes) -> list[Line]:
        """The lines that end in these bytes."""
        *whole, rest = data.split(b"\n")
        if not whole:
            self._add(rest)
            self.position += len(data)
            return []
        plain = self._raw or b"\r" not in data
        lines = [self._end_line(whole[0])]
        offset = self._offset
        for line in whole[1:]:
            end = offset + len(line) + 1
            shown = line if plain else last_state(line)
            if len(shown) > self._max:
                lines.append(Line(offset, end, self._first_of(shown), cut=True))
            else:
                lines.append(Line(offset, end, shown))
            offset = end
        self.position = self._offset = offset
        self._add(rest)
        self.position += len(rest)
        return lines

    def rest(self) -> Line | None:
        """The line that has not ended, as it stands."""
        if self.position == self._offset:
            return None
        return Line(self._offset, self.position, self._shown(), ended=False, cut=self._cut)

    def _end_line(self, data: bytes) -> Line:
        self._add(data)
        end = self.position + len(data) + 1
        line = Line(self._offset, end, self._shown(), cut=self._cut)
        self.position = self._offset = end
        self._state, self._returned, self._cut = bytearray(), False, False
        return line

    def _add(self, data: bytes) -> None:
        if self._raw:
            self._extend(data)
            return
        # A carriage return overwrites only when something follows it: "\r\n" is the end of a line.
        kept = data.rstrip(b"\r")
        if kept:
            back = kept.rfind(b"\r")
            if back >= 0 or self._returned:
                self._state, self._cut = bytearray(), False
            self._extend(kept[back + 1 :])
            self._returned = False
        if len(kept) < len(data):
            self._returned = True

    def _extend(self, data: bytes) -> None:
        room = self._max - len(self._state)
        if len(data) > room:
            self._cut = True
        if room > 0 and data:
            self._state += data[:room]

    def _shown(self) -> bytes:
        state = bytes(self._state)
        return self._first_of(state) if self._cut else state

    def _first_of(self, data: bytes) -> bytes:
        first = data[: self._max]
        return first[: whole_characters(first)] or first
