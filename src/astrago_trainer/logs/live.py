"""Lines while they come: whole ones as they end, and the last state of the one that has not.

A progress bar writes one line over and over. Its readers get the newest state once per chunk that reaches the end of
the file, as a line with the same offset that has not ended; everything in between has been overwritten anyway.
"""

from __future__ import annotations

from astrago_trainer.logs.lines import MAX_LINE, Chunk, Line, LineCutter

MAX_UPDATE = 4096
"""Bytes of a line up to which it is shown before it ended: a terminal shows fewer, and each update sends all of it."""


class LiveLines:
    """One reader's lines."""

    def __init__(self, offset: int, *, raw: bool = False, max_line: int = MAX_LINE) -> None:
        """`raw` keeps carriage returns and gives whole lines only."""
        self._raw = raw
        self._max_line = max_line
        self._cutter = LineCutter(offset, raw=raw, max_line=max_line)
        self._shown: Line | None = None

    def accept(self, chunk: Chunk, *, is_behind: bool) -> list[Line]:
        """The lines to show now; a line that is still behind the file's end is not shown before it ended."""
        if chunk.offset != self._cutter.position:  # the log began anew
            self._cutter = LineCutter(chunk.offset, raw=self._raw, max_line=self._max_line)
        lines = self._cutter.feed(chunk.data)
        if chunk.dropped is not None:
            lines = [line._replace(dropped=chunk.dropped) for line in lines]
        if not (is_behind or self._raw):
            lines += self._update()
        return lines

    def finish(self) -> list[Line]:
        """The line that never ended, in full."""
        rest = self._cutter.rest()
        return [rest] if rest is not None and rest != self._shown else []

    def _update(self) -> list[Line]:
        rest = self._cutter.rest()
        if rest is None or len(rest.data) > MAX_UPDATE:
            return []
        shown = self._shown
        self._shown = rest
        is_same = shown is not None and (shown.offset, shown.data) == (rest.offset, rest.data)
        return [] if is_same else [rest]
