"""The numbers of a job as the API gives them: of one rank, of each, or their mean. Nothing here reads anything.

A rank prints the same steps again in its next attempt, so a mean is one of a step and an attempt. Which attempt a point
is of, its time says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from astrago_trainer.store.jobs import Attempt

PROGRESS, REMAINING = "progress", "remaining_seconds"
"""Series of our own: the fraction that is done, and the seconds that are left. Rank 0 says them."""
MEAN, ALL = "mean", "all"
"""What may be asked for beside the number of a rank."""

Point = tuple[int, float, float | None]
"""Step, seconds since 1970, value: None for what is no number."""
Series = Mapping[str, Sequence[Point]]


def ranks_to_load(asked: str) -> tuple[int, ...]:
    """Those that a view needs, () for all: rank 0 in any case, which says how far the job is."""
    return () if asked in (MEAN, ALL) else tuple({0, int(asked)})


def starts_of(attempts: Sequence[Attempt], run: int) -> list[float]:
    """When the attempts of a run began, in seconds, in their order."""
    return sorted(each.started_at for each in attempts if each.run == run and each.started_at)


def metrics_view(
    run: int,
    by_rank: Mapping[int, Series],
    asked: str,
    *,
    starts: Sequence[float] = (),
    names: Collection[str] = (),
    points: int | None = None,
) -> dict[str, Any]:
    """`asked` is the number of a rank, MEAN or ALL; `starts` are those of the attempts, which a mean needs."""
    shown = {
        rank: {
            name: each
            for name, each in series.items()
            if name in (names or series) and name not in (PROGRESS, REMAINING)
        }
        for rank, series in by_rank.items()
    }
    others: list[dict[str, Any]] = []
    if asked == MEAN:
        chosen: Series = mean_of(shown, starts)
    elif asked == ALL:
        chosen = shown.get(0, {})
        others = [
            {"rank": rank, "series": _thinned(series, points)}
            for rank, series in sorted(shown.items())
            if rank and series
        ]
    else:
        chosen = shown.get(int(asked), {})
    return {
        "run": run,
        "progress": progress_of(by_rank.get(0, {})),
        "ranks": sorted(by_rank),
        "series": _thinned(chosen, points),
        "other_ranks": others,
    }


def progress_of(series: Series) -> dict[str, float | None] | None:
    fraction, remaining = (_last(series.get(name, ())) for name in (PROGRESS, REMAINING))
    return None if fraction is None else {"fraction": fraction, "remaining_seconds": remaining}


def mean_of(by_rank: Mapping[int, Series], starts: Sequence[float]) -> dict[str, list[Point]]:
    """Each series as the mean, by step and attempt, over the ranks that have the step; of one rank it is as it came."""
    told: dict[str, list[Sequence[Point]]] = defaultdict(list)
    for _, series in sorted(by_rank.items()):
        for name, points in series.items():
            told[name].append(points)
    return {
        name: list(ranks[0]) if len(ranks) == 1 else _mean(ranks, starts)
        for name, ranks in sorted(told.items())
    }


def _mean(ranks: Sequence[Sequence[Point]], starts: Sequence[float]) -> list[Point]:
    later = starts[1:]  # what came before the first attempt was seen to begin is of it, too
    by_attempt: dict[int, list[dict[int, Point]]] = defaultdict(list)
    for points in ranks:
        told: dict[int, dict[int, Point]] = defaultdict(dict)
        for point in points:  # a rank that told a step twice counts once, with its newest value
            told[bisect_right(later, point[1])][point[0]] = point
        for attempt, by_step in told.items():
            by_attempt[attempt].append(by_step)
    return [point for _, found in sorted(by_attempt.items()) for point in _joined(found)]


def _joined(ranks: Sequence[Mapping[int, Point]]) -> Iterator[Point]:
    """The mean at every step, at the time when the last rank told it."""
    steps = sorted(set[int]().union(*ranks))
    lines = [_line(by_step, steps) for by_step in ranks]
    for step, *told in zip(steps, *lines, strict=True):
        values = [value for value in told if value is not None]
        # Each is divided before they are added: the sum of large ones may be no number.
        mean = sum(value / len(values) for value in values) if values else None
        yield step, max(by_step[step][1] for by_step in ranks if step in by_step), mean


def _line(by_step: Mapping[int, Point], steps: Sequence[int]) -> Iterator[float | None]:
    """The value of a rank at each step; between two of its own, on the line from the one to the other.

    Of a busy log not every line is read, and not the same ones of each rank. Without the line a mean would be now of
    the one rank, now of the other.
    """
    values = {step: value for step, (_, _, value) in by_step.items() if value is not None}
    known = sorted(values)
    after = 0
    for step in steps:
        while after < len(known) and known[after] <= step:
            after += 1
        if step in by_step:
            yield values.get(step)
        elif 0 < after < len(known):
            left, right = known[after - 1], known[after]
            part = (step - left) / (right - left)
            yield values[left] * (1 - part) + values[right] * part
        else:
            yield None


def _last(values: Sequence[Point]) -> float | None:
    return values[-1][2] if values else None


def _thinned(series: Series, most: int | None) -> dict[str, Sequence[Point]]:
    """Evenly, and always with the newest: a list shows its value."""
    return {name: _evenly(points, most) for name, points in series.items()}


def _evenly(values: Sequence[Point], most: int | None) -> Sequence[Point]:
    if most is None or len(values) <= most:
        return values
    return [values[len(values) - 1 - number * len(values) // most] for number in range(most)][::-1]
