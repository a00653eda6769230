"""Says when to look at a file again: at once when the kernel reports a change, and then at most once a tick.

A process that writes 10,000 lines a second would make as many events. So a watch fires once and is gone; while the
file grows its owner looks at it by the clock, and only when a look finds nothing new the watch is set again. A quiet
file costs nothing, a busy one costs a look per tick, and the writer pays for no event.

No loop is meant in particular: whoever has one waits for `fileno()` or for the seconds that `step` gave back.
"""

from __future__ import annotations

import heapq
import itertools
import os
import select
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from astrago_trainer.logs import inotify
from astrago_trainer.logs.inotify import Event, Inotify

if TYPE_CHECKING:
    from pathlib import Path

TICK = 0.02
"""Seconds between two looks at a file that grows: 50 batches a second look live to people."""
UNWATCHED = 0.25
"""Seconds between two looks where the kernel gives us no watch (its limits are used up)."""

_FILE = inotify.MODIFY | inotify.ATTRIB | inotify.MOVE_SELF | inotify.DELETE_SELF
_FOLDER = inotify.CREATE | inotify.MOVED_TO | inotify.DELETE | _FILE & ~inotify.MODIFY

Probe = Callable[[], float | None]
"""Looks at the file. The seconds after which to look again, or None when there was nothing new."""


class Watched:
    """One path and who looks at it."""

    __slots__ = ("due", "looked", "path", "probe", "watch")

    def __init__(self, path: str, probe: Probe) -> None:
        self.path = path
        self.probe = probe
        self.due: float | None = None
        self.looked = float("-inf")
        self.watch: int | None = None


class Watcher:
    """All the paths that one process looks at, over one inotify descriptor."""

    def __init__(self, source: Inotify | None) -> None:
        """Without a source it looks at every path four times a second."""
        self._source = source
        self._by_watch: dict[int, set[Watched]] = {}
        self._all: set[Watched] = set()
        self._due: list[tuple[float, int, Watched]] = []
        self._order = itertools.count()
        self._looks = 0

    def fileno(self) -> int | None:
        return None if self._source is None else self._source.fileno()

    def add(self, path: str | Path, probe: Probe, *, now: float) -> Watched:
        """Looks at once, and from then on whenever the file, or the folder, may have changed.

        A path that does not exist is waited for, through the nearest folder that does.
        """
        watched = Watched(os.path.abspath(path), probe)
        self._all.add(watched)
        self._look(watched, now)
        return watched

    def remove(self, watched: Watched) -> None:
        self._all.discard(watched)
        self._disarm(watched)
        watched.due = None

    def step(self, now: float, events: Iterable[Event] | None = None) -> float | None:
        """Looks where it is time; the seconds until it must be called again, None: not before the next event.

        `now` is from a monotonic clock. Who reads the inotify descriptor himself passes the events on.
        """
        if events is None:
            events = () if self._source is None else self._source.read()
        for event in events:
            for watched in self._fired(event):
                if watched.due is None and watched in self._all:
                    self._look_or_wait(watched, now)
        while self._due and self._due[0][0] <= now:
            due, _, watched = heapq.heappop(self._due)
            if watched.due == due and watched in self._all:
                self._look(watched, now)
        while self._due and self._due[0][2].due != self._due[0][0]:
            heapq.heappop(self._due)
        return max(0.0, self._due[0][0] - now) if self._due else None

    def wait(self) -> None:
        """For programs without a loop: until something was looked at, or a signal came."""
        looks = self._looks
        pause = self.step(time.monotonic())
        if self._looks != looks:
            return
        waiting = select.poll()
        if (descriptor := self.fileno()) is not None:
            waiting.register(descriptor, select.POLLIN)
        # Rounded up, or the last fraction of a millisecond would be spent spinning.
        waiting.poll(None if pause is None else int(pause * 1000) + 1)
        self.step(time.monotonic())

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
        self._all.clear()

    def _fired(self, event: Event) -> Iterable[Watched]:
        if event.mask & inotify.Q_OVERFLOW:  # any of them may have fired, and its event is lost
            for watched in self._all:
                self._disarm(watched)
            return list(self._all)
        fired = self._by_watch.pop(event.watch, set())
        for watched in fired:
            watched.watch = None
        return fired

    def _look_or_wait(self, watched: Watched, now: float) -> None:
        soonest = watched.looked + TICK
        if soonest <= now:
            self._look(watched, now)
        else:
            self._set_due(watched, soonest)

    def _look(self, watched: Watched, now: float) -> None:
        watched.looked = now
        watched.due = None
        self._looks += 1
        pause = watched.probe()
        if pause is None:
            # Once more after the watch is set: what came before it made no event.
            pause = watched.probe() if self._arm(watched) else UNWATCHED
        if pause is not None and watched in self._all:
            self._set_due(watched, now + pause)

    def _set_due(self, watched: Watched, due: float) -> None:
        watched.due = due
        heapq.heappush(self._due, (due, next(self._order), watched))

    def _arm(self, watched: Watched) -> bool:
        """Sets the watch on the path, or on the nearest folder above that exists; False: impossible."""
        if watched.watch is not None:
            return True
        if self._source is None or watched not in self._all:
            return False
        missing: str | None = None
        target = watched.path
        while True:
            try:
                watch = _add_watch(self._source, target, may_be_file=missing is None)
            except (FileNotFoundError, NotADirectoryError):
                missing, target = target, os.path.dirname(target)
                continue
            except OSError:  # ENOSPC: the user's watches are used up
                return False
            watched.watch = watch
            self._by_watch.setdefault(watch, set()).add(watched)
            if missing is None or not os.path.exists(missing):
                return True
            # It appeared while we set the watch above it: go down again.
            self._disarm(watched)
            missing, target = None, watched.path

    def _disarm(self, watched: Watched) -> None:
        if watched.watch is None:
            return
        sharing = self._by_watch.get(watched.watch, set())
        sharing.discard(watched)
        if not sharing:
            self._by_watch.pop(watched.watch, None)
            if self._source is not None:
                self._source.remove_watch(watched.watch)
        watched.watch = None


def _add_watch(source: Inotify, target: str, *, may_be_file: bool) -> int:
    """The kernel says which of both it is, at the moment of the watch: asked before, it could appear in between."""
    try:
        return source.add_watch(target, _FOLDER | inotify.ONLYDIR | inotify.ONESHOT)
    except NotADirectoryError:
        if not may_be_file:
            raise
    return source.add_watch(target, _FILE | inotify.ONESHOT)
