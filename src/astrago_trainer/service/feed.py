"""Changes as they happen, for whoever listens; a listener that is slow costs a bounded amount of memory.

News of one job replace older news of it that nobody has fetched yet. A listener with too many jobs waiting is told to
look at everything again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from astrago_trainer.service.board import Record

MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class News:
    """`resync` means: more has changed than is told, read the list again."""

    kind: Literal["changed", "removed", "resync"]
    record: Record | None = None


RESYNC = News("resync")


class Feed:
    """Those who listen, by namespace; the empty one hears all."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Subscription]] = {}

    def subscribe(self, namespace: str) -> Subscription:
        subscription = Subscription(self, namespace)
        self._listeners.setdefault(namespace, set()).add(subscription)
        return subscription

    def tell(self, namespace: str, news: News) -> None:
        for place in (namespace, ""):
            for subscription in self._listeners.get(place, ()):
                subscription._hear(news)

    def close(self) -> None:
        """Ends every iteration."""
        for listeners in list(self._listeners.values()):
            for subscription in list(listeners):
                subscription.close()

    def _forget(self, subscription: Subscription) -> None:
        listeners = self._listeners.get(subscription.namespace, set())
        listeners.discard(subscription)
        if not listeners:
            self._listeners.pop(subscription.namespace, None)


class Subscription:
    """An async iterator of news from the moment it was made; close it, or use it in a `with`."""

    def __init__(self, feed: Feed, namespace: str) -> None:
        self.namespace = namespace
        self._feed = feed
        self._waiting: dict[int, News] = {}
        self._is_overrun = False
        self._is_closed = False
        self._told = asyncio.Event()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> News:
        while True:
            if self._is_overrun:
                self._is_overrun = False
                return RESYNC
            if self._waiting:
                return self._waiting.pop(next(iter(self._waiting)))
            if self._is_closed:
                raise StopAsyncIteration
            self._told.clear()
            await self._told.wait()

    def close(self) -> None:
        self._is_closed = True
        self._feed._forget(self)
        self._told.set()

    def _hear(self, news: News) -> None:
        assert news.record is not None
        # Put at the end: the order in which jobs are told is that of their last change.
        self._waiting.pop(news.record.job.number, None)
        self._waiting[news.record.job.number] = news
        if len(self._waiting) > MOST_WAITING:
            self._waiting.clear()
            self._is_overrun = True
        self._told.set()
