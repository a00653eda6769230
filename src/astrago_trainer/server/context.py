"""What the routes share: one object per running server."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from astrago_trainer.logs.follow import LogHub
from astrago_trainer.logs.numbered import LineIndexes
from astrago_trainer.server.collecting import Collector
from astrago_trainer.server.counting import Counters
from astrago_trainer.server.fair import FairSlots, FairThreads, Shares
from astrago_trainer.server.gate import Gate
from astrago_trainer.server.loop_times import LoopTimes
from astrago_trainer.server.problems import ApiError, unauthenticated
from astrago_trainer.server.settings import ServerSettings
from astrago_trainer.server.watching import JobWatch
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.service import Service

SEARCHES = Shares(
    running=4, running_each=2, waiting_each=64, waiting_bytes_each=1 << 20, waiting_seconds=10.0
)
"""By tenant. A search may take a core for ten seconds; status and streams must not wait for it."""
PLANS = Shares(
    running=2, running_each=1, waiting_each=1000, waiting_bytes_each=16 << 20, waiting_seconds=10.0
)
"""By caller: reading, checking, rendering and merging of a job. The largest takes a core for some seconds. Many wait: a
backend sends the requests of all its users. Threads of one interpreter run in turns: more of them finish nothing
sooner, and let the event loop wait."""

T = TypeVar("T")


class Allowance:
    """So many in a stretch of time, all at once or one by one."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most = most
        self._seconds = seconds
        self._times: list[float] = []

    def take(self) -> None:
        """Raises ApiError when there are none left."""
        now = time.monotonic()
        self._times = [each for each in self._times if each > now - self._seconds]
        if len(self._times) >= self._most:
            wait = int(self._times[0] + self._seconds - now) + 1
            detail = f"this was asked {self._most} times in {self._seconds:g} s; wait {wait} s."
            raise ApiError(429, "too-many", detail, headers={"retry-after": str(wait)})
        self._times.append(now)


@dataclass(frozen=True, slots=True)
class OwnRights:
    """Whose rights on a cluster a server without authentication uses: a person's, out of a kubeconfig."""

    user: str
    """As the cluster knows the person."""
    context: str
    namespace: str
    """Of the context, where kubectl works when none is named."""


@dataclass
class Context:
    """Opened by `app.opened`, closed by it."""

    settings: ServerSettings
    service: Service
    gate: Gate
    hub: LogHub
    watch: JobWatch
    collector: Collector
    plans: FairThreads
    rights: OwnRights | None = None
    """Set for a server on a cluster without authentication."""
    counters: Counters = field(default_factory=Counters)
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server is told to stop: streams end."""
    searches: FairSlots = field(default_factory=lambda: FairSlots(SEARCHES, "searches"))
    line_indexes: LineIndexes = field(default_factory=LineIndexes)
    loop_times: LoopTimes = field(default_factory=LoopTimes)
    sign_ups: Allowance = field(default_factory=lambda: Allowance(30, 60.0))
    """Of all callers together: whoever signs up is nobody yet, so there is nobody to count by."""
    streams: Counter[str] = field(default_factory=Counter)
    """Open ones, by caller."""

    async def plan(self, caller: Identity, work: Callable[[], T], size: int = 0) -> T:
        """Run work on a job in a thread, in the caller's share; `size` is the size of its body in bytes."""
        return await self.plans.run(caller.name, work, size)

    @contextmanager
    def stream(self, caller: str) -> Iterator[None]:
        """A place for a stream; raises ApiError when there is none."""
        settings = self.settings
        if self.streams.total() >= settings.max_streams:
            raise _too_many("the server has", settings.max_streams, 503)
        if self.streams[caller] >= settings.max_streams_each:
            raise _too_many(f"{caller!r} has", settings.max_streams_each, 429)
        self.streams[caller] += 1
        try:
            yield
        finally:
            self.streams[caller] -= 1
            if not self.streams[caller]:
                del self.streams[caller]


def _too_many(who: str, most: int, status: int) -> ApiError:
    code = "too-many" if status == 429 else "unavailable"
    detail = f"{who} {most} streams open, and that is all there may be. Close one, or try again."
    return ApiError(status, code, detail, headers={"retry-after": "5"})


async def context_of(
    request: Request,
) -> Context:  # not a plain function: those are given to threads
    context: Context = request.app.state.context
    return context


async def caller_of(request: Request) -> Identity:
    """Who is calling; the rule of the route has been checked."""
    identity: Identity | None = request.scope["identity"]
    if identity is None:
        raise unauthenticated("this needs a token: Authorization: Bearer …")
    return identity


Shared = Annotated[Context, Depends(context_of)]
Caller = Annotated[Identity, Depends(caller_of)]
