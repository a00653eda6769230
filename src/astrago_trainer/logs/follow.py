"""Follow logs in asyncio: the server's side.

One hub per process shares one inotify descriptor, and one open file per log, among all followers. A follower is a place
in a file and nothing more: it can be cancelled while it waits and go on later, here or after a restart, by its offset.
The event loop never waits for a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from types import TracebackType

from astrago_trainer.logs.feed import Feed, Place
from astrago_trainer.logs.inotify import open_inotify
from astrago_trainer.logs.lines import Chunk, Line
from astrago_trainer.logs.live import LiveLines
from astrago_trainer.logs.watch import Watched, Watcher

Done = asyncio.Event | Callable[[], bool] | None
"""No more will be written: the log ends where the file ends. Without it a log ends only when it is deleted. A function
is asked whenever the log, or a path in `watch`, changed."""


class LogHub:
    """The logs that are being followed by one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._watcher = Watcher(open_inotify())
        self._feeds: dict[Path, Feed] = {}
        self._watched: dict[Feed, Watched] = {}
        self._timer: asyncio.TimerHandle | None = None
        if (descriptor := self._watcher.fileno()) is not None:
            self._loop.add_reader(descriptor, self._step)

    async def follow(
        self, path: Path, offset: int = 0, *, done: Done = None, watch: Iterable[Path] = ()
    ) -> AsyncGenerator[Chunk, None]:
        """The bytes from `offset` on as they come, in chunks of whole characters; waits for the file to appear."""
        with self.follower(path, offset, done=done, watch=watch) as follower:
            while (chunk := await follower.read()) is not None:
                yield chunk

    async def follow_lines(
        self, path: Path, offset: int = 0, *, done: Done = None, watch: Iterable[Path] = ()
    ) -> AsyncGenerator[list[Line], None]:
        """Lines for people, a batch per tick; see `live` for lines that have not ended."""
        live = LiveLines(offset)
        with self.follower(path, offset, done=done, watch=watch) as follower:
            while (chunk := await follower.read()) is not None:
                if lines := live.accept(chunk, is_behind=follower.is_behind):
                    yield lines
        if lines := live.finish():
            yield lines

    def follower(
        self, path: Path, offset: int = 0, *, done: Done = None, watch: Iterable[Path] = ()
    ) -> Follower:
        """For who wants to wait for something else as well; to be closed."""
        return Follower(self, [(path, offset)], done=done, watch=watch)

    def close(self) -> None:
        """After the last follower was closed."""
        if (descriptor := self._watcher.fileno()) is not None:
            self._loop.remove_reader(descriptor)
        if self._timer is not None:
            self._timer.cancel()
        self._watcher.close()

    def add_listener(self, path: Path, wake: Callable[[], None]) -> Feed:
        feed = self._feeds.get(path)
        if feed is None or feed.is_gone:
            feed = Feed(path)
            self._watched[feed] = self.watch(path, feed.probe)
            self._feeds[path] = feed
        feed.listeners.add(wake)
        return feed

    def remove_listener(self, feed: Feed, wake: Callable[[], None]) -> None:
        feed.listeners.discard(wake)
        if not feed.listeners:
            self.unwatch(self._watched.pop(feed))
            feed.close()
            if self._feeds.get(feed.path) is feed:
                del self._feeds[feed.path]

    async def fetch(self, place: Place) -> None:
        """Lets a thread wait for the disk."""
        await self._loop.run_in_executor(None, place.feed.fetch, place.offset)

    def watch(self, path: Path, probe: Callable[[], float | None]) -> Watched:
        watched = self._watcher.add(path, probe, now=self._loop.time())
        self._step()
        return watched

    def unwatch(self, watched: Watched) -> None:
        self._watcher.remove(watched)

    def _step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        pause = self._watcher.step(self._loop.time())
        self._timer = None if pause is None else self._loop.call_later(pause, self._step)


class Follower:
    """One reader of one log, or of several at once."""

    def __init__(
        self,
        hub: LogHub,
        logs: Iterable[tuple[Path, int]],
        *,
        done: Done,
        watch: Iterable[Path],
    ) -> None:
        self._hub = hub
        self._done = done
        self._changed = asyncio.Event()
        self._fresh: dict[int, None] = {}  # in the order of their turns
        self._wakes: list[Callable[[], None]] = []
        self.places: list[Place] = []
        for number, (path, offset) in enumerate(logs):
            wake = self._wake_for(number)
            self.places.append(Place(hub.add_listener(path, wake), max(0, offset)))
            self._wakes.append(wake)
            self._fresh[number] = None
        self._watched = [hub.watch(path, self._look_again) for path in watch]
        self._ending = (
            asyncio.ensure_future(self._wait_for(done)) if isinstance(done, asyncio.Event) else None
        )

    async def read(self) -> Chunk | None:
        """The next bytes of the only log; None: this was all. May be cancelled and called again."""
        found = await self.read_any()
        return None if found is None else found[1]

    async def read_any(self) -> tuple[int, Chunk] | None:
        """The next bytes of any of the logs, with its number; each that has some gets its turn."""
        while True:
            self._changed.clear()
            ends = self._is_done()
            if ends:
                self._fresh |= dict.fromkeys(range(len(self.places)))
            while self._fresh:
                number = next(iter(self._fresh))
                chunk = await self._take(number, ends=ends)
                # Only now, because a call that is cancelled while it waits must leave it to the next.
                del self._fresh[number]
                if chunk is not None:
                    self._fresh[number] = None  # as the last in the row
                    return number, chunk
            if ends or all(place.feed.is_gone for place in self.places):
                return None
            await self._changed.wait()

    @property
    def is_behind(self) -> bool:
        """The last read did not reach the end of the file."""
        return any(place.is_behind for place in self.places)

    def close(self) -> None:
        for place, wake in zip(self.places, self._wakes, strict=True):
            self._hub.remove_listener(place.feed, wake)
        for watched in self._watched:
            self._hub.unwatch(watched)
        if self._ending is not None:
            self._ending.cancel()
        self.places, self._wakes, self._watched = [], [], []

    def __enter__(self) -> Follower:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _take(self, number: int, *, ends: bool) -> Chunk | None:
        place = self.places[number]
        if place.is_behind:
            await asyncio.sleep(0)  # a long history must not keep the others waiting
        try:
            chunk = place.take(ends=ends, waits=False)
        except BlockingIOError:
            await self._hub.fetch(place)
            chunk = place.take(ends=ends)
        return chunk

    def _wake_for(self, number: int) -> Callable[[], None]:
        def wake() -> None:
            self._fresh[number] = None
            self._changed.set()

        return wake

    def _look_again(self) -> None:
        self._changed.set()

    def _is_done(self) -> bool:
        if isinstance(self._done, asyncio.Event):
            return self._done.is_set()
        return self._done is not None and self._done()

    async def _wait_for(self, done: asyncio.Event) -> None:
        await done.wait()
        self._changed.set()
