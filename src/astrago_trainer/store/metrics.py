"""Series of numbers that trainings report, by rank: packed in batches, bounded, thinned evenly when they are long."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from astrago_trainer.store.tables import jobs, metrics
from astrago_trainer.store.transaction import Transaction

MOST_SERIES = 100
"""Of rank 0 of one run; a name too many is dropped."""
MOST_OF_OTHERS = 200
"""Of all its other ranks together: 28 names of each of 7. Counted apart, so that they take no place from rank 0."""
MOST_POINTS = 2000
"""Of one series when it is thinned: more than a screen has columns."""

_POINT = struct.Struct("<qdd")


class Point(NamedTuple):
    step: int
    time: float
    value: float


class Points(NamedTuple):
    """New points of one series of one rank, in the order they came."""

    job: int
    run: int
    series: str
    points: tuple[Point, ...]
    rank: int = 0


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
    place = run & (table.rank == batch.rank) & (table.series == batch.series)
    last, rows, count = tx.connection.execute(
        select(func.max(table.first + table.count), func.count(), func.sum(table.count)).where(
            place
        )
    ).one()
    if not rows and _is_full(tx.connection, batch):
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
        "rank": batch.rank,
        "series": batch.series,
        "first": first,
        "count": len(points),
        "points": _packed(points),
    }
    tx.connection.execute(insert(metrics), row)
    return True


def _is_full(connection: Connection, batch: Points) -> bool:
    """Whether the run has no place for one more series of this rank."""
    table = metrics.c
    is_first = batch.rank == 0
    ranks = table.rank == 0 if is_first else table.rank > 0
    places = (
        select(table.rank, table.series)
        .where((table.job == batch.job) & (table.run == batch.run) & ranks)
        .distinct()
    )
    count = select(func.count()).select_from(places.subquery())
    return connection.execute(count).scalar_one() >= (MOST_SERIES if is_first else MOST_OF_OTHERS)


def load_points(
    connection: Connection,
    job: int,
    run: int,
    *,
    ranks: Collection[int] = (),
    names: Collection[str] = (),
) -> dict[int, dict[str, list[Point]]]:
    """The series of a run by rank and name, each in the order it came; of these ranks and names, if any are named.

    Every rank that has series is there, also one that was not asked for: without them.
    """
    table = metrics.c
    place = (table.job == job) & (table.run == run)
    there = connection.execute(select(table.rank).where(place).distinct().order_by(table.rank))
    found: dict[int, dict[str, list[Point]]] = {rank: {} for rank in there.scalars()}
    if ranks:
        place &= table.rank.in_(ranks)
    if names:
        place &= table.series.in_(names)
    statement = (
        select(table.rank, table.series, table.points)
        .where(place)
        .order_by(table.rank, table.series, table.first)
    )
    for rank, name, data in connection.execute(statement):
        found[rank].setdefault(name, []).extend(_unpacked(data))
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
