"""Guarded changes: decided on what the board shows, written if that is still so, else decided again."""

from __future__ import annotations

from collections.abc import Callable

from astrago_trainer.service.board import Board, Record
from astrago_trainer.store import Store, StoreUnavailable
from astrago_trainer.store.jobs import Change, Job, change_jobs, find_job

_TRIES = 20
"""Each time somebody else was faster; that many in a row means that something is wrong."""


class Changing:
    """Store and board together: what is written is shown, and nothing else."""

    def __init__(self, store: Store, board: Board) -> None:
        self._store = store
        self._board = board

    async def write(self, change: Change) -> Job | None:
        """The job after it; None when it was no longer as it was, and the board now shows how it is."""
        after = await self._store.write(change_jobs, change)
        if after is None:
            await self.reread(change.before.number)
            return None
        self._board.put(after)
        return after

    async def reread(self, number: int) -> Job | None:
        """The job as the database has it; a job that is gone leaves the board."""
        found = await self._store.read(lambda connection: find_job(connection, number))
        if found is None:
            self._board.remove(number)
        else:
            self._board.put(found)
        return found

    async def change(
        self, find: Callable[[], Record], make: Callable[[Job], Change | None]
    ) -> Record:
        """Makes a change of what `find` gives, and repeats both as long as somebody is faster; None changes nothing."""
        for _ in range(_TRIES):
            record = find()
            wanted = make(record.job)
            if wanted is None:
                return record
            after = await self.write(wanted)
            if after is not None:
                return Record(
                    after
                )  # what this change made of it, whatever somebody else has made of it since
        raise StoreUnavailable(
            f"{_TRIES} times in a row somebody else changed the job first; try again."
        )
