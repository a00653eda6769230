"""What is known of a training at one moment: points of series, and how far it is."""

from __future__ import annotations

from typing import NamedTuple


class Point(NamedTuple):
    """One value of one series."""

    series: str
    """Normalised: see `names`."""
    value: float | None
    """None: the script said NaN or infinity. A plot has a gap there, and JSON and databases have no word for them."""
    step: int | None
    """Counted over the whole training where that is known, else as printed."""
    epoch: float | None
    time: float
    """Seconds since 1970, as the caller gave it."""
    rank: int
    attempt: int


class Progress(NamedTuple):
    """How far one attempt is; None where the log does not say."""

    fraction: float | None
    """0 to 1."""
    remaining_seconds: float | None
    time: float
    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    epochs: int | None = None
