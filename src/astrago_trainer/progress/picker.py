"""Numbers out of one log, as its bytes come.

The cost is bounded by the bytes, not by what is in them. Lines that differ only in their digits say the same thing with
other numbers: they are grouped without being looked at (0.2 µs a line), and of each group only as many are read as the
bytes allow: evenly spread, the last one always. So a rare line is not lost among frequent ones, a log that prints a
little is read in full, and the newest value is exact.

A carriage return ends a line here as a newline does: each state of a progress bar is a line, and no byte is needed
twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from astrago_trainer.progress.patterns import Patterns
from astrago_trainer.progress.points import Point, Progress
from astrago_trainer.progress.reader import HINTS, MAX_LINE, Reading, read_line
from astrago_trainer.progress.tracker import Tracker

MAX_SERIES = 64
"""Series of one log; names beyond are counted and left out."""
BYTES_PER_READ = 512
"""One line of a group is read for so many bytes that come: 10 µs for 512 bytes is 1 % of a core at 0.5 MB/s."""
MIN_READS = 32
"""Lines of a group that are read however few bytes come at once."""
MAX_GROUPS = 4
"""Times that allowance, for all groups together: random text makes a group of every line."""

_MAX_BYTES = 4 * MAX_LINE
"""Of a line: a character has four at most."""
_IGNORED = b"0123456789 #=>.+-\t" + bytes(range(0x80, 0x100))
"""What differs from state to state of a line: digits, and what bars are drawn with."""
# For lines in lower case: to ignore the case takes eight times as long.
_HINT = re.compile("|".join(map(re.escape, HINTS)).encode())


class Picked(NamedTuple):
    """What some bytes of a log said."""

    points: Sequence[Point]
    progress: Progress | None
    """None: nothing new."""


class Picker:
    """Reads one log: one attempt, pod and container."""

    def __init__(
        self,
        *,
        attempt: int,
        rank: int,
        patterns: Sequence[str] = (),
        has_defaults: bool = True,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """`patterns` are tried before the built-in reading, or without it when `has_defaults` is False.

        `state` goes on where another picker was: give the bytes from its `offset` on.
        """
        self._attempt = attempt
        self._rank = rank
        self._patterns = Patterns(patterns)
        self._has_defaults = has_defaults
        state = state or {}
        self._tracker = Tracker(**state.get("tracker", {}))
        self._series = set[str](state.get("series", ()))
        self._position: int = state.get("offset", 0)
        self._open = b""
        self._open_length = 0
        self.left_out: int = state.get("leftOut", 0)
        """Values of series beyond MAX_SERIES."""

    @property
    def offset(self) -> int:
        """Where to go on reading: the start of the line that has not ended."""
        return self._position - self._open_length

    @property
    def switched_off(self) -> Sequence[str]:
        """Patterns that were too slow on this log."""
        return tuple(self._patterns.switched_off)

    def state(self) -> dict[str, Any]:
        """Plain data to go on from, after everything that was picked has been stored."""
        return {
            "offset": self.offset,
            "tracker": asdict(self._tracker),
            "series": sorted(self._series),
            "leftOut": self.left_out,
        }

    def feed(self, offset: int, data: bytes, *, time: float) -> Picked:
        """Takes the bytes at `offset`; where they do not follow the last ones, a new line begins."""
        if offset != self._position:
            self._open, self._open_length = b"", 0
        self._position = offset + len(data)
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            self._keep(data)
            return Picked((), None)
        whole = self._open + data[:end]
        self._open, self._open_length = b"", 0
        self._keep(data[end:])
        return self._pick(whole, time)

    def settle(self, *, time: float) -> Picked:
        """Takes the line that has not ended as it is: the log ended, or has been quiet for a while.

        A bar's newest state has no end: the carriage return comes before it.
        """
        whole = self._open
        self._open, self._open_length = b"", 0
        return self._pick(whole, time)

    def _keep(self, data: bytes) -> None:
        self._open_length += len(data)
        if len(self._open) < _MAX_BYTES:
            self._open += data[: _MAX_BYTES - len(self._open)]

    def _pick(self, whole: bytes, time: float) -> Picked:
        points: list[Point] = []
        has_moved = False
        for line in self._sample(whole.replace(b"\r", b"\n")):
            reading = self._read(line[:_MAX_BYTES].decode("utf-8", "replace"))
            if reading is not None:
                has_moved |= self._tracker.accept(reading, time)
                points += self._points(reading, time)
        return Picked(points, self._tracker.progress(time) if has_moved else None)

    def _sample(self, whole: bytes) -> list[bytes]:
        """The lines that are read, in their order; from the end backwards, so that the newest is among them."""
        allowance = max(MIN_READS, len(whole) // BYTES_PER_READ)
        groups: dict[bytes, list[int]] = {}
        for number, shape in enumerate(whole.translate(None, _IGNORED).split(b"\n")):
            if shape in groups:
                groups[shape].append(number)
            else:
                groups[shape] = [number]
        lines = whole.split(b"\n")
        chosen: list[int] = []
        for numbers in groups.values():
            newest = lines[numbers[-1]][:_MAX_BYTES]
            if not self._patterns and _HINT.search(newest.lower()) is None:
                continue
            chosen += numbers[:: -((len(numbers) - 1) // allowance + 1)]
        if len(chosen) > allowance * MAX_GROUPS:
            chosen.sort()
            chosen = chosen[:: -(len(chosen) // (allowance * MAX_GROUPS) + 1)]
        return [lines[number] for number in sorted(chosen)]

    def _read(self, line: str) -> Reading | None:
        reading = self._patterns.read_line(line) if self._patterns else None
        if reading is None and self._has_defaults:
            reading = read_line(line)
        return reading

    def _points(self, reading: Reading, time: float) -> list[Point]:
        epoch = self._tracker.current_epoch() if reading.position is None else reading.position
        step = self._tracker.overall_step()
        return [
            Point(series, value, step, epoch, time, self._rank, self._attempt)
            for series, value in reading.values.items()
            if self._has_room_for(series)
        ]

    def _has_room_for(self, series: str) -> bool:
        if series in self._series:
            return True
        if len(self._series) < MAX_SERIES:
            self._series.add(series)
            return True
        self.left_out += 1
        return False
