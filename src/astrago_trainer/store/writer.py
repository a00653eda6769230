"""Group commit: writes that wait at the same time share one transaction, and so one sync of the disk.

A write function takes many items at once and returns a result for each, so that a hundred submits are a few statements.
A caller is woken after the commit, never before. A write that fails takes no other down: the batch is repeated one by
one, which is why write functions do nothing but write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection

from astrago_trainer.store.crash import crash_point
from astrago_trainer.store.drivers import Driver
from astrago_trainer.store.errors import StoreUnavailable, is_passing, translated
from astrago_trainer.store.transaction import Transaction

A = TypeVar("A")
R = TypeVar("R")
Write = Callable[[Transaction, Sequence[A]], Sequence[R]]

BATCH = 500
"""Items in one transaction: enough to make the sync cheap, few enough that nobody waits long."""
WAITING = 10_000
"""Items that may wait; more are refused, because memory is not a queue."""


@dataclass(slots=True)
class _Item:
    function: Write[Any, Any]
    argument: Any
    result: asyncio.Future[Any]


class Writer:
    """The one task of a process that writes."""

    def __init__(
        self, driver: Driver, *, on_commit: Callable[[int], None], most_waiting: int = WAITING
    ) -> None:
        self._driver = driver
        self._most_waiting = most_waiting
        self._on_commit = on_commit
        self._items: list[_Item] = []
        self._task: asyncio.Task[None] | None = None

    async def write(self, function: Write[A, R], argument: A) -> R:
        """Returns what the function says of this item, after the commit."""
        if len(self._items) >= self._most_waiting:
            raise StoreUnavailable(
                f"the database {self._driver.where} has {self._most_waiting} writes waiting; try "
                "again later."
            )
        item = _Item(function, argument, asyncio.get_running_loop().create_future())
        self._items.append(item)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="store writer")
        result: R = await item.result
        return result

    async def close(self) -> None:
        """Returns when everything that waits is written."""
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        # One turn of the loop, so that whoever is about to write is in the first batch.
        await asyncio.sleep(0)
        while self._items:
            batch, self._items = self._items[:BATCH], self._items[BATCH:]
            await self._settle(batch)

    async def _settle(self, batch: list[_Item]) -> None:
        try:
            results, stamp = await self._driver.write(lambda connection: _run(connection, batch))
        except Exception as error:
            if len(batch) > 1 and not is_passing(error):
                for item in batch:
                    await self._settle([item])
                return
            failure = translated(error, self._driver.where) if is_passing(error) else error
            for item in batch:
                if not item.result.done():
                    item.result.set_exception(failure)
            return
        crash_point("store: committed")
        self._on_commit(stamp)
        for item, result in zip(batch, results, strict=True):
            if not item.result.done():
                item.result.set_result(result)


def _run(connection: Connection, batch: list[_Item]) -> tuple[list[Any], int]:
    transaction = Transaction(connection)
    groups: dict[Write[Any, Any], list[int]] = {}
    for index, item in enumerate(batch):
        groups.setdefault(item.function, []).append(index)
    results: list[Any] = [None] * len(batch)
    for function, indices in groups.items():
        answers = function(transaction, [batch[index].argument for index in indices])
        for index, answer in zip(indices, answers, strict=True):
            results[index] = answer
    crash_point("store: written, not committed")
    return results, transaction.stamp
