"""What a terminal gets: colours where it has them, columns that line up, nothing it would obey."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import IO

from astrago_trainer.core.errors import Problem
from astrago_trainer.manifests.writing import escape as clean

__all__ = ["Terminal", "clean", "cut", "cut_front", "padded", "problem_lines", "table", "width"]

DEFAULT_WIDTH = 80

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
}


class Terminal:
    """The stream that is written to: its width, and whether it shows colours."""

    def __init__(self, stream: IO[str]) -> None:
        self.is_interactive = stream.isatty()
        self.has_colour = self.is_interactive and _wants_colour()
        self.width = _columns(stream)

    def paint(self, text: str, *styles: str) -> str:
        """`text` in these styles; unchanged where there are no colours."""
        if not self.has_colour or not styles or not text:
            return text
        return f"\x1b[{';'.join(_CODES[style] for style in styles)}m{text}\x1b[0m"


def _wants_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _columns(stream: IO[str]) -> int:
    """As everywhere: COLUMNS, else what the terminal says, else 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and 0 < int(columns) < 100_000:
        return max(int(columns), 40)
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        found = 0
    return max(found, 40) if found else DEFAULT_WIDTH  # some terminals do not know their own


def problem_lines(problems: Iterable[Problem], terminal: Terminal) -> list[str]:
    """Errors first; for each its place, what is wrong and the way out.

    Text is folded for people only: a log or a test finds the words of the controller on one line.
    """
    lines: list[str] = []
    for problem in sorted(problems, key=lambda each: each.severity != "error"):
        is_error = problem.severity == "error"
        label = terminal.paint(f"{problem.severity:<8}", "bold", "red" if is_error else "yellow")
        text = [clean(problem.path)] if problem.path else []
        text += _folded(clean(problem.message), terminal)
        if problem.remedy:
            text += _folded(f"→ {clean(problem.remedy)}", terminal, hanging=2)
        lines += [f"{label} {text[0]}", *(f"{'':8} {each}" for each in text[1:])]
    return lines


def _folded(text: str, terminal: Terminal, hanging: int = 0) -> list[str]:
    if not terminal.is_interactive:
        return [text]
    from textwrap import wrap

    room = terminal.width - 10
    lines = wrap(
        text,
        room,
        subsequent_indent=" " * hanging,
        break_long_words=False,  # a path or a command is copied
        break_on_hyphens=False,
    )
    return lines or [text]


# Without these ranges every string would need a look into the Unicode database.
_NARROW = re.compile(
    "[\x20-\x7e\xa0-\u02ff\u0370-\u10ff\u2010-\u2027\u2030-\u205e\u2190-\u23ff\u2500-\u25ff]*"
)


def width(text: str) -> int:
    """Columns it takes; Hangul, Han and most emoji take two, marks on letters none."""
    if _NARROW.fullmatch(text):
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(
        0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text
    )


def padded(text: str, columns: int) -> str:
    """Filled up with spaces."""
    return text + " " * max(columns - width(text), 0)


def cut(text: str, columns: int) -> str:
    """The beginning, with … where something is left out."""
    if width(text) <= columns:
        return text
    kept = text[: max(columns - 1, 0)]
    while width(kept) > columns - 1:
        kept = kept[:-1]
    return f"{kept}…"


def cut_front(text: str, columns: int) -> str:
    """The end, with … where something is left out: the end of a path says most."""
    if width(text) <= columns:
        return text
    kept = text[-(columns - 1) :]
    while width(kept) > columns - 1:
        kept = kept[1:]
    return f"…{kept}"


def table(rows: Sequence[Sequence[str]], terminal: Terminal) -> list[str]:
    """Columns under headings; only the last one is cut to fit."""
    sizes = [max(width(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for number, row in enumerate(rows):
        *first, last = [clean(each) for each in row]
        start = "".join(f"{padded(text, size)}  " for text, size in zip(first, sizes, strict=False))
        line = f"{start}{cut(last, max(terminal.width - width(start), 12))}".rstrip()
        lines.append(terminal.paint(line, "bold") if number == 0 else line)
    return lines
