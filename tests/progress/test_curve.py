"""A curve stays small, and what it keeps is true."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.progress.curve import Curve, Sample
from astrago_trainer.progress.points import Point


def point(step: int, value: float | None) -> Point:
    return Point("loss", value, step, None, float(step), 0, 0)


VALUES = st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=200)


@given(VALUES, st.sampled_from([2, 4, 10]))
def test_it_is_bounded_and_keeps_the_last_value_the_extremes_and_the_count(values, size):
    curve = Curve(size)
    for step, value in enumerate(values):
        curve.add(point(step, value))

    samples, numbers = curve.samples, [value for value in values if value is not None]
    assert len(samples) <= size
    assert sum(sample.size for sample in samples) == len(values)
    assert curve.last == (point(len(values) - 1, values[-1]) if values else None)
    lows = [sample.low for sample in samples if sample.low is not None]
    highs = [sample.high for sample in samples if sample.high is not None]
    assert (min(lows, default=None), max(highs, default=None)) == (
        min(numbers, default=None),
        max(numbers, default=None),
    )
    assert all(sample.mean is None or math.isfinite(sample.mean) for sample in samples)
    assert [sample.step for sample in samples] == sorted(sample.step for sample in samples)


def test_neighbours_are_merged_into_samples_of_equal_size():
    curve = Curve(4)
    for step in range(8):
        curve.add(point(step, float(step)))

    assert curve.samples == tuple(
        Sample(step, None, float(step), step - 0.5, step - 1.0, float(step), 2)
        for step in (1, 3, 5, 7)
    )


def test_the_first_value_that_is_no_number_is_remembered():
    curve = Curve()
    for step, value in enumerate([1.0, None, None]):
        curve.add(point(step, value))

    assert curve.broken_at == point(1, None)


@given(VALUES, VALUES)
def test_a_stored_curve_goes_on_as_if_nothing_had_happened(before, after):
    whole, first = Curve(4), Curve(4)
    for step, value in enumerate(before):
        whole.add(point(step, value))
        first.add(point(step, value))
    second = Curve.from_json(json.loads(json.dumps(first.to_json())))
    for step, value in enumerate(after, len(before)):
        whole.add(point(step, value))
        second.add(point(step, value))

    assert second.to_json() == whole.to_json()


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_size_that_cannot_be_halved_is_refused(size):
    with pytest.raises(ValueError, match="even number"):
        Curve(size)
