"""Which server looks after which job, when several share a database.

A job names its server; the server keeps a number growing in the database. Whoever sees that number stand still for a
while, by its own steady clock, takes the server for dead and its jobs over: no two clocks are ever compared. On one
machine nobody waits: a process that is gone is gone, so a server that was killed and started again goes on at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable

from astrago_trainer.store import Store, StoreError
from astrago_trainer.store.servers import (
    Server,
    beat_servers,
    insert_servers,
    is_gone,
    load_servers,
    remove_servers,
    start_of,
    this_host,
)

BEAT_SECONDS = 5.0
DEAD_SECONDS = 20.0
"""Four beats missed: a database that is locked for ten seconds costs nobody a job."""
SURE_SECONDS = 15.0
"""After so long without a beat a server beats before it calls an engine: others may act by then."""

_log = logging.getLogger(__name__)


class Leases:
    """This server among the others."""

    def __init__(self, store: Store, steady: Callable[[], float]) -> None:
        self._store = store
        self._steady = steady
        host, started = this_host(), start_of(os.getpid()) or 0
        self._self = Server(f"{os.getpid()}-{secrets.token_hex(6)}", host, os.getpid(), started)
        self._alive: set[str] = set()
        self._dead: set[str] = set()
        self._beats: dict[str, tuple[int, float]] = {}
        self._last_beat = float("-inf")
        self._entering = asyncio.Lock()

    @property
    def id(self) -> str:
        return self._self.id

    async def enter(self) -> None:
        """Makes this server known, once; to be called before its first job."""
        async with self._entering:
            if self._last_beat == float("-inf"):
                await self._store.write(insert_servers, self._self)
                self._last_beat = self._steady()

    async def leave(self) -> None:
        """All its jobs are free."""
        if self._last_beat != float("-inf"):
            await self._store.write(remove_servers, self.id)
            self._last_beat = float("-inf")

    async def make_sure(self) -> bool:
        """Whether nobody can have taken this server for dead; after a long silence it is found out."""
        if self._steady() - self._last_beat < SURE_SECONDS:
            return True
        return await self._beat()

    async def is_free(self, server: str | None) -> bool:
        """Whether a job of that server may be taken over; one that was never heard of may be new."""
        if server is None or server == self.id:
            return server is None
        if server not in self._alive and server not in self._dead:
            await self.refresh()
            if server not in self._alive:
                self._dead.add(server)
        return server not in self._alive

    async def refresh(self) -> None:
        """Sees who lives; rows of the dead are removed."""
        rows = await self._store.read(load_servers)
        now, dead = self._steady(), []
        for row in rows:
            beat, since = self._beats.get(row.id, (-1, now))
            if beat != row.beat:
                beat, since = row.beat, now
            self._beats[row.id] = (beat, since)
            if row.id != self.id and (is_gone(row, self._self.host) or now - since > DEAD_SECONDS):
                dead.append(row.id)
        self._alive = {row.id for row in rows} - {*dead, self.id}
        self._dead = (self._dead | set(dead)) - self._alive
        self._beats = {id_: seen for id_, seen in self._beats.items() if id_ in self._alive}
        for id_ in dead:
            await self._store.write(remove_servers, id_)

    async def keep(self, on_change: Callable[[], None]) -> None:
        """Beats until cancelled; tells when somebody has died."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._beat()
                before = self._alive
                await self.refresh()
                if before - self._alive:
                    on_change()
            except StoreError as error:
                _log.warning("no beat of server %s: %s", self.id, error)

    async def _beat(self) -> bool:
        """Whether it was known all the time."""
        if self._last_beat == float("-inf"):
            return True
        now = self._steady()
        is_known = await self._store.write(beat_servers, self.id)
        if not is_known:
            # Taken for dead: known again under the same name, but its jobs may be others' by now.
            await self._store.write(insert_servers, self._self)
        self._last_beat = now
        return is_known
