"""Whose turn it is on one machine. Pure.

The namespace that has the smallest share of the machine comes first, and among equals the one that has waited longest
for a start. Within a namespace jobs start in their order. A job that does not fit is not overtaken: else a large one
would wait for ever behind small ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Json = Mapping[str, Any]


class Waiting(NamedTuple):
    """A job in the queue."""

    since: float
    uid: str
    namespace: str


def next_turn(
    waiting: Mapping[str, Iterable[Waiting]],
    held: Iterable[Json],
    machine: Json,
    last_start: Mapping[str, int],
) -> Waiting | None:
    """The job that starts next. `waiting` is by namespace; `last_start`: the number of its latest start."""
    shares = shares_of(held, machine)
    firsts = [min(jobs) for jobs in waiting.values()]
    return min(
        firsts,
        key=lambda job: (
            shares.get(job.namespace, 0.0),
            last_start.get(job.namespace, -1),
            job.since,
            job.uid,
        ),
        default=None,
    )


def shares_of(held: Iterable[Json], machine: Json) -> dict[str, float]:
    """By namespace: the largest fraction that it holds of any kind of resource."""
    sums: dict[str, list[float]] = {}
    for each in held:
        holds, amounts = each["holds"], sums.setdefault(each["namespace"], [0.0, 0.0, 0.0])
        for place, amount in enumerate((holds["cpu"], holds["memory"], len(holds["gpus"]))):
            amounts[place] += amount
    totals = (machine["cpu"], machine["memory"], len(machine["gpus"]))
    return {
        namespace: max(
            amount / total for amount, total in zip(amounts, totals, strict=True) if total
        )
        for namespace, amounts in sums.items()
    }
