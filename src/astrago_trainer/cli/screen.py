"""What is seen while a job runs: its lines on standard output, and below them, on a terminal, one line that lives.

Lines go to standard output and nothing else does, so that they can be piped; what we say ourselves goes to standard
error. Text of a training never reaches the terminal as it is: it may hold commands for it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from astrago_trainer.cli.terminal import Terminal, cut, width
from astrago_trainer.cli.words import readable
from astrago_trainer.client.models import LogLine

_RANK_COLOURS = ("cyan", "green", "yellow", "magenta", "blue")
_REDRAW_SECONDS = 0.1
_ERASE = "\r\x1b[2K"


class Screen:
    """Both streams, and the line that lives where there is a terminal for it."""

    def __init__(self, *, ranks: int = 1) -> None:
        self.out = Terminal(sys.stdout)
        self.err = Terminal(sys.stderr)
        self._lives = self.err.is_interactive
        self._column = len(str(max(ranks - 1, 0)))
        self._has_ranks = ranks > 1
        self._status = ""
        self._is_shown = False
        self._drawn_at = float("-inf")
        self._open: dict[tuple[int, str, str], LogLine] = {}

    def lines(self, lines: Sequence[LogLine]) -> None:
        """Those that have ended; one that has not is part of the living line."""
        text: list[str] = []
        for line in lines:
            key = (line.attempt, line.pod, line.container)
            if line.is_ended:
                self._open.pop(key, None)
                text += self._shown(line)
            else:
                self._open[key] = line
        if text:
            self._erase()
            sys.stdout.write("".join(f"{each}\n" for each in text))
            sys.stdout.flush()
        self._draw()

    def status(self, text: str) -> None:
        """Replaces the living line."""
        is_new, self._status = text != self._status, text
        self._draw(is_new=is_new)

    def say(self, *lines: str) -> None:
        """To the person, not into the output."""
        self._erase()
        sys.stderr.writelines(f"{line}\n" for line in lines)
        sys.stderr.flush()

    def finish(self) -> None:
        """No more comes: lines that never ended are all there will be of them."""
        rest = [line._replace(is_ended=True) for line in self._open.values()]
        self._open.clear()
        self._status = ""
        self.lines(rest)
        self._erase()

    def _shown(self, line: LogLine) -> list[str]:
        text = readable(line.text)
        if not self._has_ranks:
            return [text]
        colour = _RANK_COLOURS[line.rank % len(_RANK_COLOURS)]
        head = self.out.paint(f"{line.rank:>{self._column}} │", colour)
        if not self.out.is_interactive or width(text) + self._column + 3 <= self.out.width:
            return [f"{head} {text}".rstrip()]
        # A long line is folded under its rank; for a pipe it stays whole.
        more = self.out.paint(f"{'':{self._column}} ┆", colour)
        first, *rest = _pieces(text, self.out.width - self._column - 4)
        return [f"{head} {first}", *(f"{more} {each}" for each in rest)]

    def _draw(self, *, is_new: bool = False) -> None:
        if not self._lives or not self._status:
            return
        now = time.monotonic()
        if self._is_shown and not is_new and now - self._drawn_at < _REDRAW_SECONDS:
            return
        text = self._status
        if self._open:
            # The newest state of a progress bar: the last one that was heard of.
            line = next(reversed(self._open.values()))
            text = (
                f"{line.rank} │ {readable(line.text)}" if self._has_ranks else readable(line.text)
            )
        # One column is left free: terminals go to the next line when the last one is used.
        shown = cut(text, self.err.width - 1)
        sys.stderr.write(f"{_ERASE}{self.err.paint(shown, 'dim')}")
        sys.stderr.flush()
        self._is_shown, self._drawn_at = True, now

    def _erase(self) -> None:
        if self._is_shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._is_shown = False


def _pieces(text: str, room: int) -> list[str]:
    pieces = []
    while text:
        size = room
        while width(text[:size]) > room:
            size -= 1
        pieces.append(text[:size])
        text = text[size:]
    return pieces or [""]
