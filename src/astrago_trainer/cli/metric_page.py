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


def metric_page(metrics: Mapping[str, Any], terminal: Terminal, *, rank: str) -> list[str]:
    """`rank` is what was asked for: a number, mean or all."""
    ranks = metrics.get("ranks", [0])
    found = _found(metrics, rank)
    if not found:
        return [_nothing(rank, ranks)]
    lines = []
    if (progress := metrics.get("progress")) and progress.get("fraction") is not None:
        left = progress.get("remaining_seconds")
        ahead = f", about {duration(left)} left" if left else ""
        lines += [f"{progress['fraction']:.0%} done{ahead}", ""]
    if rank == "mean" and len(ranks) > 1:
        lines += [f"Mean of the ranks {_listed(ranks)}; --rank all shows each.", ""]
    rows = [[*heads, *_numbers(points)] for heads, points in found]
    size = sum(max(len(cell) for cell in column) for column in zip(*rows, strict=True))
    room = max(min(terminal.width - size - 16, _WIDEST), _SMALLEST)
    table = [
        [*row, spark([each[2] for each in points], room)]
        for row, (_, points) in zip(rows, found, strict=True)
    ]
    heading = ["NAME", *(["RANK"] if rank == "all" else []), "FIRST", "LAST", "LOWEST", "STEP", ""]
    return [*lines, *columns([heading, *table], terminal, give=0)]


def _found(metrics: Mapping[str, Any], rank: str) -> list[tuple[list[str], Points]]:
    """What stands first in a row, and the points of the series; the loss first, and ranks below each other."""
    series = [(name, 0, points) for name, points in metrics["series"].items()]
    for other in metrics.get("other_ranks", ()):
        series += [(name, other["rank"], points) for name, points in other["series"].items()]
    return [
        ([name, str(number)] if rank == "all" else [name], points)
        for name, number, points in sorted(
            series, key=lambda each: (*_first_loss(each[0]), each[1])
        )
    ]


def _nothing(rank: str, ranks: Sequence[int]) -> str:
    if rank.isdecimal() and ranks and int(rank) not in ranks:
        return f"No numbers of rank {rank}; there are some of {_listed(ranks)}."
    return "No numbers yet. Lines like 'step 7 loss 0.5' and progress bars have some."


def _listed(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks))


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


def _numbers(points: Points) -> list[str]:
    known = [each[2] for each in points if each[2] is not None]
    step = points[-1][0] if points else None
    last = points[-1][2] if points else None
    return [
        _number(points[0][2] if points else None),
        _number(last),
        _number(min(known) if known else None),
        "-" if step is None else str(step),
    ]


def _number(value: float | None) -> str:
    return "nan" if value is None else f"{value:.4g}"


def _first_loss(name: str) -> tuple[bool, str]:
    return "loss" not in name, name
