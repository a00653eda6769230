"""Group commit: writes that wait at the same time share one transaction, and so one sync of the disk.

A write function takes many items at once and returns a result for each, so that a hundred submits are a few statements.
A caller is woken after the commit, never before. A write that fails takes no other down: the batch is repeated one by
one, which is why write functions do nothing but write.

A write that is not being committed some seconds after it came has failed, wherever it waits: behind others, for a
lock, or for a server that does not answer. Nothing of it is kept.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import Connection

from astrago_trainer.store.crash import crash_point
from astrago_trainer.store.drivers import BUSY_SECONDS, Driver
from astrago_trainer.store.errors import StoreBusy, StoreUnavailable, is_passing, translated
from astrago_trainer.store.transaction import Transaction

A = TypeVar("A")
R = TypeVar("R")
Write = Callable[[Transaction, Sequence[A]], Sequence[R]]

BATCH = 500
"""Items in one transaction: enough to make the sync cheap, few enough that nobody waits long."""
WAITING = 10_000
"""Items that may wait; more are refused, because memory is not a queue."""


@dataclass(slots=True, eq=False)
class _Item:
    function: Write[Any, Any]
    argument: Any
    result: asyncio.Future[Any]
    batch: _Batch | None = None
    """The one that it is written with; None while it waits."""


class _Batch:
    """Items of one transaction, which is either committed or given up: the first decides."""

    def __init__(self, items: list[_Item]) -> None:
        self.items = items
        self._lock = threading.Lock()  # SQLite is written in a thread
        self._is_decided = False
        for item in items:
            item.batch = self

    def decide(self) -> bool:
        """Whether the caller is the first."""
        with self._lock:
            is_first, self._is_decided = not self._is_decided, True
        return is_first


class Writer:
    """The one task of a process that writes."""

    def __init__(
        self,
        driver: Driver,
        *,
        on_commit: Callable[[int], None],
        most_waiting: int = WAITING,
        waiting_seconds: float = BUSY_SECONDS,
    ) -> None:
        """`waiting_seconds`: after which a write that is not being committed has failed."""
        self._driver = driver
        self._seconds = waiting_seconds
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
        loop = asyncio.get_running_loop()
        item = _Item(function, argument, loop.create_future())
        self._items.append(item)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work(), name="store writer")
        timer = loop.call_later(self._seconds, self._give_up, item)
        try:
            result: R = await item.result
        finally:
            timer.cancel()
        return result

    def _give_up(self, item: _Item) -> None:
        """It has waited for too long; those of its transaction fail with it."""
        if item.batch is None:
            self._items.remove(item)
            self._fail([item])
        elif item.batch.decide():
            self._fail(item.batch.items)

    def _fail(self, items: list[_Item]) -> None:
        failure = StoreBusy(
            f"the database {self._driver.where} is not available: it did not take a write within "
            f"{self._seconds:g} s."
        )
        for item in items:
            if not item.result.done():
                item.result.set_exception(failure)

    async def close(self) -> None:
        """Returns when everything that waits is written."""
        if self._task is not None:
            await self._task

    async def _work(self) -> None:
        # One turn of the loop, so that whoever is about to write is in the first batch.
        await asyncio.sleep(0)
        while self._items:
            batch, self._items = self._items[:BATCH], self._items[BATCH:]
            await self._settle(_Batch(batch))

    async def _settle(self, together: _Batch) -> None:
        batch = together.items
        try:
            results, stamp = await self._driver.write(lambda connection: _run(connection, together))
        except Exception as error:
            if len(batch) > 1 and not is_passing(error):
                for item in batch:
                    if not item.result.done():
                        await self._settle(_Batch([item]))
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


def _run(connection: Connection, together: _Batch) -> tuple[list[Any], int]:
    batch = together.items
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
    if not together.decide():
        raise StoreBusy("given up")  # its callers have their answer: it is rolled back
    return results, transaction.stamp
