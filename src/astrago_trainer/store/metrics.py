"""Series of numbers that trainings report: packed in batches, bounded, thinned evenly when they grow too long."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from astrago_trainer.store.tables import jobs, metrics
from astrago_trainer.store.transaction import Transaction

MOST_SERIES = 100
"""Of one run; a name too many is dropped."""
MOST_POINTS = 2000
"""Of one series when it is thinned: more than a screen has columns."""

_POINT = struct.Struct("<qdd")


class Point(NamedTuple):
    step: int
    time: float
    value: float


class Points(NamedTuple):
    """New points of one series, in the order they came."""

    job: int
    run: int
    series: str
    points: tuple[Point, ...]


def insert_points(tx: Transaction, batches: Sequence[Points]) -> list[bool]:
    """Whether each was kept: not when the job is gone, or has too many series already."""
    return [_insert(tx, batch) for batch in batches]


def _insert(tx: Transaction, batch: Points) -> bool:
    if (
        tx.connection.execute(select(jobs.c.number).where(jobs.c.number == batch.job)).first()
        is None
    ):
        return False
    table = metrics.c
    run = (table.job == batch.job) & (table.run == batch.run)
    place = run & (table.series == batch.series)
    last, rows, count = tx.connection.execute(
        select(func.max(table.first + table.count), func.count(), func.sum(table.count)).where(
            place
        )
    ).one()
    if not rows:
        names = select(func.count(table.series.distinct())).where(run)
        if tx.connection.execute(names).scalar_one() >= MOST_SERIES:
            return False
    points: Sequence[Point] = batch.points
    first = last or 0
    # Thinned at twice the bound, so that it happens once in many batches; merged when there are many small ones.
    if rows and (count + len(points) > 2 * MOST_POINTS or rows >= 100):
        points = _thinned([*_read(tx.connection, place), *points])
        tx.connection.execute(delete(metrics).where(place))
        first = max(first - len(points), 0)
    row = {
        "job": batch.job,
        "run": batch.run,
        "series": batch.series,
        "first": first,
        "count": len(points),
        "points": _packed(points),
    }
    tx.connection.execute(insert(metrics), row)
    return True


def load_points(connection: Connection, job: int, run: int) -> dict[str, list[Point]]:
    """All series of a run by name, each in the order it came."""
    table = metrics.c
    found: dict[str, list[Point]] = {}
    statement = (
        select(table.series, table.points)
        .where((table.job == job) & (table.run == run))
        .order_by(table.series, table.first)
    )
    for name, data in connection.execute(statement):
        found.setdefault(name, []).extend(_unpacked(data))
    return found


def _read(connection: Connection, place: object) -> list[Point]:
    statement = select(metrics.c.points).where(place).order_by(metrics.c.first)  # type: ignore[arg-type]
    return [point for data in connection.execute(statement).scalars() for point in _unpacked(data)]


def _thinned(points: list[Point]) -> list[Point]:
    """At most so many, evenly over the steps, and of those that fall together the last one."""
    if len(points) <= MOST_POINTS:
        return points
    places = [point.step for point in points]
    low, span = min(places), max(places) - min(places) + 1
    last = {(place - low) * MOST_POINTS // span: index for index, place in enumerate(places)}
    return [points[index] for index in sorted(last.values())]


def _packed(points: Iterable[Point]) -> bytes:
    return b"".join(_POINT.pack(*point) for point in points)


def _unpacked(data: bytes) -> list[Point]:
    return [Point(*fields) for fields in _POINT.iter_unpack(data)]
