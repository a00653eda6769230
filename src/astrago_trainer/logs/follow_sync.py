"""Follow logs without a loop: the command line's side. Same promises as `follow`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from astrago_trainer.logs.feed import Feed, Place
from astrago_trainer.logs.inotify import open_inotify
from astrago_trainer.logs.lines import Chunk, Line
from astrago_trainer.logs.live import LiveLines
from astrago_trainer.logs.watch import Watcher

Done = Callable[[], bool]
"""No more will be written. Asked whenever the log, or a path in `watch`, changed."""


def never() -> bool:
    return False


def follow(
    path: Path, offset: int = 0, *, done: Done = never, watch: Iterable[Path] = ()
) -> Iterator[Chunk]:
    """The bytes from `offset` on as they come, in chunks of whole characters; waits for the file to appear."""
    for _, chunk, _ in follow_any([(path, offset)], done=done, watch=watch):
        yield chunk


def follow_lines(
    path: Path, offset: int = 0, *, done: Done = never, watch: Iterable[Path] = ()
) -> Iterator[list[Line]]:
    """Lines for people, a batch per tick; see `live` for lines that have not ended."""
    live = LiveLines(offset)
    for _, chunk, is_behind in follow_any([(path, offset)], done=done, watch=watch):
        if lines := live.accept(chunk, is_behind=is_behind):
            yield lines
    if lines := live.finish():
        yield lines


def follow_any(
    logs: Sequence[tuple[Path, int]], *, done: Done, watch: Iterable[Path] = ()
) -> Iterator[tuple[int, Chunk, bool]]:
    """Of several logs: number, next bytes, and whether there are more behind them already."""
    watcher = Watcher(open_inotify())
    places = [Place(Feed(path), max(0, offset)) for path, offset in logs]
    fresh = dict.fromkeys(range(len(places)))
    try:
        for number, place in enumerate(places):
            place.feed.listeners.add(partial(fresh.setdefault, number))
            watcher.add(place.feed.path, place.feed.probe, now=time.monotonic())
        for path in watch:
            watcher.add(path, lambda: None, now=time.monotonic())
        while True:
            ends = done()
            turns = range(len(places)) if ends else tuple(fresh)
            fresh.clear()
            for number in turns:
                chunk = places[number].take(ends=ends)
                if chunk is not None:
                    fresh[number] = None
                    yield number, chunk, places[number].is_behind
            if not fresh:
                if ends or all(place.feed.is_gone for place in places):
                    return
                watcher.wait()
    finally:
        watcher.close()
        for place in places:
            place.feed.close()
