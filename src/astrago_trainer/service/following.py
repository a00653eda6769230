"""What other servers on the same database have done: read by stamp, once a second, one number when nothing is new."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from astrago_trainer.service.board import Board
from astrago_trainer.store import Store, StoreError
from astrago_trainer.store.jobs import Job, load_changes

FOLLOW_SECONDS = 1.0
READ_SECONDS = 1.0
"""How long a read waits for the database before it is answered with what is known."""

_LATE_SECONDS = 0.2
"""By which a timer of a process that runs is not late."""

_log = logging.getLogger(__name__)


class Following:
    """Brings the board up to what the database has."""

    def __init__(
        self,
        store: Store,
        board: Board,
        *,
        on_job: Callable[[Job], None],
        on_access: Callable[[int], Awaitable[None]],
    ) -> None:
        self._store = store
        self._board = board
        self._on_job = on_job
        self._on_access = on_access
        self._passes = 0
        """How many have begun."""
        self._done = 0
        """The last that went well."""
        self._passing = asyncio.Lock()
        self._steady = time.monotonic
        self._again_at = float("-inf")
        self.servers = 0
        """How many share the database, as of the last pass."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            try:
                await self.catch_up()
            except StoreError as error:
                _log.warning("changes of other servers cannot be read: %s", error)

    async def catch_up(self) -> None:
        """Returns when the board shows all that was written before the call; callers at the same time share a pass."""
        begun = self._passes
        async with self._passing:
            if self._done <= begun:  # else somebody else has begun one since, and it went well
                self._passes += 1
                await self._pass()
                self._done = self._passes

    async def keep_up(self) -> None:
        """The same for somebody who reads: where the database does not answer, what is known has to do."""
        if self._steady() < self._again_at:
            return
        for _ in range(2):
            began = self._steady()
            try:
                async with asyncio.timeout(READ_SECONDS):
                    await self.catch_up()
                return
            except StoreError:
                break
            except TimeoutError:
                # After a stop of this process the time says nothing about the database: it is asked once more.
                if self._steady() - began < READ_SECONDS + _LATE_SECONDS:
                    break
        self._again_at = self._steady() + FOLLOW_SECONDS

    async def _pass(self) -> None:
        since = self._store.own_stamp
        found = await self._store.read(lambda connection: load_changes(connection, since))
        for number in found.gone:
            self._board.remove(number)
        for job in found.changed:
            known = self._board.find_number(job.number)
            if known is None or known.job.version < job.version:
                self._board.put(job)
                self._on_job(job)
        self._store.own_stamp = max(self._store.own_stamp, found.stamp)
        self.servers = found.servers
        await self._on_access(found.access)
