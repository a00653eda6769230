"""Work that takes long, shared fairly: a caller with a hundred requests delays its own, not those of others."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from astrago_trainer.server.problems import ApiError

T = TypeVar("T")

_MOST_REMEMBERED = 1000
"""Callers whose place in virtual time is kept before old ones are dropped."""


@dataclass(frozen=True, slots=True)
class Shares:
    """How many may run and wait."""

    running: int
    """Of all callers together."""
    running_each: int
    """Of one caller: fewer than of all, so that one caller never has all of them."""
    waiting_each: int
    """Of one caller; more are refused at once."""
    waiting_bytes_each: int
    """What the requests of one caller that wait may hold in memory; one request alone may hold more."""
    waiting_seconds: float
    """One that has waited for so long is refused."""


@dataclass(eq=False, slots=True)
class _Turn:
    """A request that waits."""

    come: asyncio.Future[None]
    size: int
    tag: int
    """Its place in virtual time; the smallest comes first."""


class FairSlots:
    """Slots for work, by start-time fair queueing; the requests of one caller come in their order.

    Virtual time is that of the newest start. A caller's requests are one apart in it, so callers with many take turns,
    and one that asks rarely comes next instead of waiting for a turn of each of them.
    """

    def __init__(self, shares: Shares, what: str) -> None:
        """`what` names the work in a refusal: previews, searches."""
        self._shares = shares
        self._what = what
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[_Turn]] = {}
        self._time = 0
        self._next_tags: dict[str, int] = {}

    @property
    def running(self) -> int:
        return self._running.total()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def slot(self, caller: str) -> AsyncIterator[None]:
        """A slot for this caller; raises ApiError (429) when too many wait or it takes too long."""
        await self.acquire(caller)
        try:
            yield
        finally:
            self.release(caller)

    async def acquire(self, caller: str, size: int = 0) -> None:
        """`slot` for work that ends elsewhere, with `release`. `size` is what it holds in memory, in bytes."""
        if caller not in self._waiting and self._has_slot(caller):
            self._start(caller, self._tag(caller))
            return
        self._check_queue(caller, size)
        turn = _Turn(asyncio.get_running_loop().create_future(), size, self._tag(caller))
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            async with asyncio.timeout(self._shares.waiting_seconds):
                await turn.come
        except BaseException as error:
            self._give_up(caller, turn)
            if isinstance(error, TimeoutError):
                raise self._refusal(caller) from None
            raise

    def _check_queue(self, caller: str, size: int) -> None:
        queue = self._waiting.get(caller, ())
        held = size + sum(each.size for each in queue)
        is_full = len(queue) > 0 and held > self._shares.waiting_bytes_each
        if is_full or len(queue) >= self._shares.waiting_each:
            raise self._refusal(caller)

    def _give_up(self, caller: str, turn: _Turn) -> None:
        """The request does not wait any more; its turn may have come at the same moment."""
        if turn.come.done() and not turn.come.cancelled():
            self.release(caller)
            return
        queue = self._waiting.get(caller)
        if queue is not None:
            with suppress(ValueError):
                queue.remove(turn)
            if not queue:
                del self._waiting[caller]

    def release(self, caller: str) -> None:
        self._running[caller] -= 1
        if not self._running[caller]:
            del self._running[caller]
        self._grant()

    def _grant(self) -> None:
        """Give free slots to those that wait."""
        while callers := [each for each in self._waiting if self._has_slot(each)]:
            # Among equals, the one that has asked for less.
            caller = min(
                callers, key=lambda each: (self._waiting[each][0].tag, self._next_tags.get(each, 0))
            )
            queue = self._waiting[caller]
            turn = queue.popleft()
            if not queue:
                del self._waiting[caller]
            if not turn.come.done():
                self._start(caller, turn.tag)
                turn.come.set_result(None)

    def _start(self, caller: str, tag: int) -> None:
        self._running[caller] += 1
        self._time = max(self._time, tag)
        if len(self._next_tags) > _MOST_REMEMBERED:  # what lies in the past says nothing any more
            later = {each: at for each, at in self._next_tags.items() if at > self._time}
            self._next_tags = later

    def _tag(self, caller: str) -> int:
        tag = max(self._time, self._next_tags.get(caller, 0))
        self._next_tags[caller] = tag + 1
        return tag

    def _has_slot(self, caller: str) -> bool:
        return (
            self.running < self._shares.running
            and self._running[caller] < self._shares.running_each
        )

    def _refusal(self, caller: str) -> ApiError:
        shares = self._shares
        detail = (
            f"{caller!r} has too many {self._what} at a time: {shares.running_each} run, at most "
            f"{shares.waiting_each} wait for at most {shares.waiting_seconds:g} s. Send fewer at a time, or try again."
        )
        return ApiError(429, "too-many", detail, headers={"retry-after": "5"})


class FairThreads:
    """Runs functions in threads, one in each slot, so that the event loop stays free."""

    def __init__(self, shares: Shares, what: str) -> None:
        self.slots = FairSlots(shares, what)
        self._threads = ThreadPoolExecutor(shares.running, thread_name_prefix=what)

    async def run(self, caller: str, work: Callable[[], T], size: int = 0) -> T:
        """The result of `work`; raises what it raises, or ApiError (429)."""
        await self.slots.acquire(caller, size)
        done = asyncio.get_running_loop().run_in_executor(self._threads, work)
        # The slot is free when the thread is, also where the caller has gone away before.
        done.add_done_callback(lambda _: self.slots.release(caller))
        return await asyncio.shield(done)

    def close(self) -> None:
        """Take no more work; what runs goes on to its end."""
        self._threads.shutdown(wait=False)
