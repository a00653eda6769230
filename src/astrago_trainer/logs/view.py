"""An open log without its dropped part, for those who read by place and not by offset.

A *place* counts what is left of a log; an *offset* counts its file, and is what the world outside knows. The two differ
behind a dropped part alone (see `gap`). Everything that looks for lines works with places, and gives offsets back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from astrago_trainer.logs.gap import Gap, read_gap
from astrago_trainer.logs.layout import open_log
from astrago_trainer.logs.lines import Dropped, Line


class View:
    """One log as it was when this was made: a part that is dropped later is noticed, and reads as the end."""

    __slots__ = ("_path", "fd", "gap", "length", "size")

    def __init__(self, fd: int, gap: Gap | None = None, path: Path | None = None) -> None:
        self.fd = fd
        self.size = os.fstat(fd).st_size
        """Of the file: the offset at which the log ends."""
        self.gap = gap if gap is not None and gap.end <= self.size else None
        self._path = path
        self.length = self.place(self.size)
        """Bytes that are left: the place at which the log ends."""

    def pread(self, length: int, place: int) -> bytes:
        """Fewer bytes at the end; none where some of them have been dropped since."""
        gap = self.gap
        if gap is None or place + length <= gap.start:
            return self._believed(place, os.pread(self.fd, length, place))
        if place >= gap.start:
            offset = place + gap.skipped
            return self._believed(offset, os.pread(self.fd, length, offset))
        before = self._believed(place, os.pread(self.fd, gap.start - place, place))
        if len(before) < gap.start - place:
            return before
        rest = os.pread(self.fd, length - len(before), gap.end)
        return before + self._believed(gap.end, rest)

    def unchecked(self) -> View:
        """For a download of known length: what is dropped from now on is read as zeros."""
        return View(self.fd, self.gap)

    def place(self, offset: int) -> int:
        """Of a byte of the file; one that was dropped is at the line about it."""
        gap = self.gap
        if gap is None or offset <= gap.start:
            return offset
        return gap.marker if offset < gap.end else offset - gap.skipped

    def offset(self, place: int) -> int:
        gap = self.gap
        return place if gap is None or place < gap.start else place + gap.skipped

    def shown(self, line: Line) -> Line:
        """A line by places as one by offsets."""
        gap = self.gap
        if gap is None or line.end < gap.start:
            return line
        dropped = Dropped(gap.bytes, gap.lines) if line.offset == gap.marker else None
        return line._replace(
            offset=self.offset(line.offset), end=self.offset(line.end), dropped=dropped
        )

    def all_shown(self, lines: Iterable[Line]) -> Iterable[Line]:
        return lines if self.gap is None else map(self.shown, lines)

    def _believed(self, offset: int, data: bytes) -> bytes:
        if self._path is None or not data:
            return data
        now = read_gap(self._path)
        if now is None or now == self.gap:
            return data
        is_same_line = self.gap is not None and self.gap.marker == now.marker
        first = now.start if is_same_line else now.marker
        has_lost = max(offset, first) < min(offset + len(data), now.end)
        return b"" if has_lost else data


@contextmanager
def opened(path: Path) -> Iterator[View]:
    """A log that is missing is as an empty one."""
    fd = open_log(path)
    if fd is None:
        fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield View(fd, read_gap(path), path)
    finally:
        os.close(fd)
