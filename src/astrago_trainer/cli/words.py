"""Jobs in words and columns: what people read of the API's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from astrago_trainer.cli.terminal import Terminal, clean, cut, padded, width

Json = Mapping[str, Any]

_COLOURS = {
    "Running": "cyan",
    "Complete": "green",
    "Failed": "red",
    "Restarting": "yellow",
    "Queued": "yellow",
    "Suspended": "yellow",
    "Deleting": "dim",
}


_COLOUR_CODES = re.compile(r"\x1b\[[0-9;:]{0,40}m")
_TAB = 8


def phase_colour(phase: str) -> str:
    return _COLOURS.get(phase, "blue")


def readable(text: str) -> str:
    """Text of a training as a terminal may have it: without its colours, and what else is no text by its code."""
    if text.isprintable():
        return text
    return clean(_COLOUR_CODES.sub("", text).expandtabs(_TAB))


def cause(message: str) -> tuple[str, list[str]]:
    """What an engine says of a failure, as a headline, and the last words of the process below it.

    A message is one sentence, or `pod/container ended with exit code 1: ` and the end of its output.
    """
    first, *rest = [line for line in message.strip().splitlines() if line.strip()] or [""]
    if not rest:
        return readable(first), []
    headline, colon, said = first.partition(": ")
    lines = [said, *rest] if colon and said else rest
    starts = [place for place, line in enumerate(lines) if line.startswith("Traceback")]
    lines = lines[starts[-1] :] if starts else lines
    return readable(headline.rstrip(":")), [readable(line) for line in lines]


def brief(message: str) -> str:
    """The most telling line of a message: the last words of what failed."""
    headline, said = cause(message)
    return said[-1] if said else headline


def why(job: Json) -> str:
    """Why it is where it is, in one line: the engine's words, else what the phase means."""
    headline, said = cause(str(job["message"]))
    if said:
        return f"{headline}: {said[-1]}"
    return headline or readable(str(job["meaning"]))


def seconds_since(text: str | None, until: str | None = None) -> float | None:
    if not text:
        return None
    end = datetime.now(UTC) if not until else datetime.fromisoformat(until)
    return max(0.0, (end - datetime.fromisoformat(text)).total_seconds())


def duration(seconds: float | None) -> str:
    """Two units at most: 0.8 s, 42 s, 3 min 12 s, 2 h 5 min, 4 d 3 h."""
    if seconds is None:
        return ""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, name, part, below in (
        (60, "min", 1, "s"),
        (3600, "h", 60, "min"),
        (86400, "d", 3600, "h"),
    ):
        if whole < size * (60 if size < 3600 else 24 if size < 86400 else 10**9):
            rest = whole % size // part
            return f"{whole // size} {name}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def short(seconds: float | None) -> str:
    """One unit: 42s, 3m, 2h, 4d."""
    if seconds is None:
        return "-"
    for size, name in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{name}"
    return f"{int(seconds)}s"


def took(job: Json) -> float | None:
    """From the first start to the end, or to now."""
    return seconds_since(job["started_at"], job["finished_at"])


def time_of_day(text: str) -> str:
    return datetime.fromisoformat(text).astimezone().strftime("%H:%M:%S")


def clock(text: str | None) -> str:
    """Date and time here; the milliseconds are for programs."""
    if not text:
        return "-"
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def shape(job: Json) -> str:
    """`2 nodes`, `4 nodes with 8 GPUs each`."""
    nodes, gpus = job["nodes"], job["gpus_per_node"]
    text = f"{nodes} node{'s' * (nodes != 1)}"
    if gpus:
        text += f" with {gpus} GPU{'s' * (gpus != 1)}" + (" each" if nodes > 1 else "")
    return text


def columns(
    rows: Sequence[Sequence[str]],
    terminal: Terminal,
    *,
    give: int = -1,
    colours: Iterable[Mapping[int, str]] = (),
) -> list[str]:
    """Columns under headings in the width of the terminal; the column `give` is cut to make them fit."""
    cleaned = [[clean(each) for each in row] for row in rows]
    sizes = [max(width(row[place]) for row in cleaned) for place in range(len(cleaned[0]))]
    give %= len(sizes)
    others = sum(sizes) - sizes[give] + 2 * (len(sizes) - 1)
    sizes[give] = min(sizes[give], max(terminal.width - others, 12))
    painted = [{}, *colours]
    lines = []
    for number, row in enumerate(cleaned):
        paint = painted[number] if number < len(painted) else {}
        texts = []
        for place, (text, size) in enumerate(zip(row, sizes, strict=True)):
            shown = padded(cut(text, size) if place == give else text, size)
            texts.append(terminal.paint(shown, paint[place]) if place in paint else shown)
        line = "  ".join(texts).rstrip()
        lines.append(terminal.paint(line, "bold") if number == 0 else line)
    return lines


def wrapped(text: str, columns: int) -> list[str]:
    """Lines of at most so many columns, for people who read along in a file as well."""
    from textwrap import wrap

    return wrap(text, columns, subsequent_indent="   ", break_on_hyphens=False) or [""]


def folded(text: str, terminal: Terminal, *, indent: int = 0) -> list[str]:
    """Lines that fit the terminal; whole for programs that read along."""
    if not terminal.is_interactive:
        return [text]
    from textwrap import wrap

    return wrap(text, max(terminal.width - indent - 1, 20), break_on_hyphens=False) or [""]


def facts(pairs: Iterable[tuple[str, str]], terminal: Terminal) -> list[str]:
    """Names in a column, values beside them, folded; empty values are left out."""
    shown = [(name, value) for name, value in pairs if value]
    size = max((len(name) for name, _ in shown), default=0)
    lines = []
    for name, value in shown:
        first, *rest = folded(value, terminal, indent=size + 2)
        lines.append(f"{terminal.paint(padded(name, size), 'dim')}  {first}")
        lines += [f"{'':{size}}  {each}" for each in rest]
    return lines


def next_commands(pairs: Iterable[tuple[str, str]], terminal: Terminal) -> list[str]:
    """What to type next, and what it does."""
    listed = list(pairs)
    size = max(len(command) for command, _ in listed)
    if size + 2 + max(len(text) for _, text in listed) + 2 > terminal.width:
        return [
            line
            for command, text in listed
            for line in (f"  {terminal.paint(command, 'bold')}", f"      {text}")
        ]
    return [
        f"  {terminal.paint(padded(command, size), 'bold')}  {text}" for command, text in listed
    ]
