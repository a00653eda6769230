"""Series of numbers as one line each: first, last, best, and how they went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.cli.words import columns, duration

_BARS = "▁▂▃▄▅▆▇█"
_WIDEST = 40
_SMALLEST = 8

Points = Sequence[Sequence[Any]]


def metric_page(metrics: Mapping[str, Any], terminal: Terminal) -> list[str]:
    series: Mapping[str, Points] = metrics["series"]
    if not series:
        return [
            "No numbers yet. Lines like 'step 7 loss 0.5' and progress bars have some.",
        ]
    lines = []
    if (progress := metrics.get("progress")) and progress.get("fraction") is not None:
        left = progress.get("remaining_seconds")
        ahead = f", about {duration(left)} left" if left else ""
        lines += [f"{progress['fraction']:.0%} done{ahead}", ""]
    rows = [_row(name, series[name]) for name in sorted(series, key=_first_loss)]
    size = max(len(row[0]) for row in rows) + sum(
        max(len(row[place]) for row in rows) for place in (1, 2, 3, 4)
    )
    room = max(min(terminal.width - size - 16, _WIDEST), _SMALLEST)
    table = [[*row, spark([each[2] for each in series[row[0]]], room)] for row in rows]
    heading = ["NAME", "FIRST", "LAST", "LOWEST", "STEP", ""]
    return [*lines, *columns([heading, *table], terminal, give=0)]


def spark(values: Sequence[float | None], room: int) -> str:
    """The series in so many characters, each the mean of its part; a gap where there is no number."""
    known = [each for each in values if each is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    size = min(room, len(values))
    text = ""
    for place in range(size):
        part = values[place * len(values) // size : (place + 1) * len(values) // size]
        found = [each for each in part if each is not None]
        if not found:
            text += " "
            continue
        mean = sum(found) / len(found)
        level = 0.5 if high == low else (mean - low) / (high - low)
        text += _BARS[min(int(level * len(_BARS)), len(_BARS) - 1)]
    return text


def _row(name: str, points: Points) -> list[str]:
    known = [each[2] for each in points if each[2] is not None]
    step = points[-1][0] if points else None
    last = points[-1][2] if points else None
    return [
        name,
        _number(points[0][2] if points else None),
        _number(last),
        _number(min(known) if known else None),
        "-" if step is None else str(step),
    ]


def _number(value: float | None) -> str:
    return "nan" if value is None else f"{value:.4g}"


def _first_loss(name: str) -> tuple[bool, str]:
    return "loss" not in name, name
