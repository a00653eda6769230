"""A series in bounded memory: neighbours are merged when there are too many, and the last value stays exact.

A merged sample keeps mean, lowest and highest value, so a spike is still seen when a million values have become a
thousand. Merging always halves the whole curve, so its samples cover equal numbers of values, whatever came when.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from astrago_trainer.progress.points import Point

MAX_SAMPLES = 1000
"""Enough for a plot on any screen; 64 series of it are 5 MB at most."""


class Sample(NamedTuple):
    """One value, or several neighbours; step, epoch and time are those of the last of them."""

    step: int | None
    epoch: float | None
    time: float
    mean: float | None
    low: float | None
    high: float | None
    size: int = 1
    """Values in it, with those that are no numbers."""


class Curve:
    """The values of one series of one rank and attempt."""

    def __init__(self, max_samples: int = MAX_SAMPLES) -> None:
        if max_samples < 2 or max_samples % 2:
            raise ValueError(
                f"a curve needs an even number of samples, 2 or more, not {max_samples}"
            )
        self._max = max_samples
        self._per_sample = 1
        self._samples: list[Sample] = []
        self.last: Point | None = None
        """The newest value, exactly."""
        self.broken_at: Point | None = None
        """The first value that was NaN or infinite."""

    def add(self, point: Point) -> None:
        self.last = point
        if point.value is None and self.broken_at is None:
            self.broken_at = point
        new = Sample(point.step, point.epoch, point.time, point.value, point.value, point.value)
        if self._samples and self._samples[-1].size < self._per_sample:
            self._samples[-1] = _merged(self._samples[-1], new)
            return
        if len(self._samples) == self._max:
            pairs = zip(self._samples[::2], self._samples[1::2], strict=True)
            self._samples = [_merged(first, second) for first, second in pairs]
            self._per_sample *= 2
        self._samples.append(new)

    @property
    def samples(self) -> Sequence[Sample]:
        """At most `max_samples`, oldest first."""
        return tuple(self._samples)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` goes on from."""
        return {
            "max": self._max,
            "perSample": self._per_sample,
            "samples": [list(sample) for sample in self._samples],
            "last": None if self.last is None else list(self.last),
            "brokenAt": None if self.broken_at is None else list(self.broken_at),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Curve:
        curve = cls(stored["max"])
        curve._per_sample = stored["perSample"]
        curve._samples = [Sample(*sample) for sample in stored["samples"]]
        curve.last = None if stored["last"] is None else Point(*stored["last"])
        curve.broken_at = None if stored["brokenAt"] is None else Point(*stored["brokenAt"])
        return curve


def _merged(first: Sample, second: Sample) -> Sample:
    size = first.size + second.size
    if first.mean is None or second.mean is None:
        numbers = second if first.mean is None else first
        mean, low, high = numbers.mean, numbers.low, numbers.high
    else:
        # Each mean is divided before they are added: the sum of two large ones may be no number.
        mean = first.mean * (first.size / size) + second.mean * (second.size / size)
        low = min(value for value in (first.low, second.low) if value is not None)
        high = max(value for value in (first.high, second.high) if value is not None)
    return Sample(second.step, second.epoch, second.time, mean, low, high, size)
