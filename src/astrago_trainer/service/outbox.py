"""Notifications between the store and whoever sends them: what is told of a change, and the outbox of `notify`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Ended
from astrago_trainer.notify.notices import Chat, Delivery, Kind, Mail, Notice, Webhook, deliveries
from astrago_trainer.service.effective import handle_of
from astrago_trainer.store import Store
from astrago_trainer.store.jobs import Job
from astrago_trainer.store.outbox import (
    GIVEN_UP,
    SENT,
    WAITING,
    Claim,
    DeliveryRow,
    Result,
    claim_deliveries,
    find_due,
    settle_deliveries,
)

Targets = Callable[[str], Iterable[Webhook | Chat | Mail]]
"""Who is told of the jobs of a namespace."""


def nobody(_: str) -> Iterable[Webhook | Chat | Mail]:
    return ()


def told_of(
    before: Job, after: Job, ends: Sequence[Ended], targets: Targets, time: float
) -> tuple[DeliveryRow, ...]:
    """Rows for a change that people want to hear of: an end, or another start after a failure, which `ends` names."""
    kind = _kind(before, after)
    wanted = tuple(targets(after.namespace)) if kind is not None else ()
    if kind is None or not wanted:
        return ()
    started = after.started_at
    why = ends[-1] if kind == "restarted" and ends else after
    notice = Notice(
        kind=kind,
        namespace=after.namespace,
        job=after.name,
        uid=handle_of(after).uid,  # of the run: a second one is told of again
        time=time,
        attempt=after.attempt,
        max_restarts=after.max_restarts,
        reason=why.reason,
        message=why.message,
        duration_seconds=None if started is None else max(0.0, time - started),
    )
    return tuple(
        DeliveryRow(each.id, after.namespace, each.model_dump_json(), time)
        for each in deliveries(notice, wanted, time)
    )


def _kind(before: Job, after: Job) -> Kind | None:
    if after.phase != before.phase and after.phase == Phase.COMPLETE:
        return "complete"
    if after.phase != before.phase and after.phase == Phase.FAILED:
        return "failed"
    return "restarted" if after.restarts > before.restarts else None


class StoreOutbox:
    """The outbox that `notify.Deliverer` takes from; several servers may."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def claim(self, now: float, *, lease: float, busy: Collection[str]) -> Delivery | None:
        wanted = Claim(now, lease, tuple(busy))
        # Read first: most of the time there is nothing, and a write would sync the disk for it.
        if await self._store.read(lambda connection: find_due(connection, wanted)) is None:
            return None
        row = await self._store.write(claim_deliveries, wanted)
        if row is None:
            return None
        return Delivery.model_validate_json(row.body).model_copy(update={"tries": row.tries})

    async def mark_sent(self, delivery: Delivery, now: float) -> None:
        await self._store.write(settle_deliveries, Result(delivery.id, None, SENT))

    async def mark_failed(self, delivery: Delivery, reason: str, *, next_try: float | None) -> None:
        result = Result(
            delivery.id,
            delivery.tries,
            GIVEN_UP if next_try is None else WAITING,
            reason.replace("\0", ""),
            next_try or 0.0,
        )
        await self._store.write(settle_deliveries, result)
