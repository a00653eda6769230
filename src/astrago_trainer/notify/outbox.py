"""Where deliveries wait: what a deliverer needs of it, and one in memory for tests and demonstrations."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from astrago_trainer.notify.notices import Delivery


class Outbox(Protocol):
    """Rows that survive a crash. A row is waiting, sent, or given up, and never leaves the last two."""

    async def claim(self, now: float, *, lease: float, busy: Collection[str]) -> Delivery | None:
        """The waiting row that is due for longest, of a namespace that is not `busy`; None when there is none.

        Its `tries` is raised and it is due again `lease` seconds from now, both before this returns: who dies while
        sending leaves a row that somebody else takes up, and that does not start its day anew.
        """
        ...

    async def mark_sent(self, delivery: Delivery, now: float) -> None:
        """It arrived. Of a row that was claimed again since (`tries` differs) too: it did arrive."""
        ...

    async def mark_failed(self, delivery: Delivery, reason: str, *, next_try: float | None) -> None:
        """It did not arrive; it is due again at `next_try`, or given up when that is None.

        Changes nothing when the row was claimed again since, or is not waiting any more.
        """
        ...


@dataclass(slots=True)
class Row:
    delivery: Delivery
    due: float
    state: str = "waiting"
    reason: str = ""


class MemoryOutbox:
    """The same promises, as far as memory goes."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def add(self, deliveries: Iterable[Delivery]) -> None:
        """Ids that are there already stay as they are."""
        for delivery in deliveries:
            self.rows.setdefault(delivery.id, Row(delivery, due=delivery.created_at))

    async def claim(self, now: float, *, lease: float, busy: Collection[str]) -> Delivery | None:
        due = [
            row
            for row in self.rows.values()
            if row.state == "waiting"
            and row.due <= now
            and row.delivery.notice.namespace not in busy
        ]
        if not due:
            return None
        row = min(due, key=lambda row: row.due)
        row.delivery, row.due = row.delivery.claimed(), now + lease
        return row.delivery

    async def mark_sent(self, delivery: Delivery, now: float) -> None:
        row = self.rows[delivery.id]
        if row.state == "waiting":
            row.state, row.reason = "sent", ""

    async def mark_failed(self, delivery: Delivery, reason: str, *, next_try: float | None) -> None:
        row = self.rows[delivery.id]
        if row.state != "waiting" or row.delivery.tries != delivery.tries:
            return
        row.reason = reason
        if next_try is None:
            row.state = "given-up"
        else:
            row.due = next_try
