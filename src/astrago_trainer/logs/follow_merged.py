"""The logs of all ranks as one, in asyncio; see `merged`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path

from astrago_trainer.logs.follow import Done, Follower, LogHub
from astrago_trainer.logs.merged import Live, MergedLine, Past, Source


async def follow_merged(
    hub: LogHub, sources: Sequence[Source], *, done: Done = None, watch: Iterable[Path] = ()
) -> AsyncGenerator[list[MergedLine], None]:
    """What is there, in the order of time, then what comes, as it comes; in batches."""
    past = Past(sources)
    loop = asyncio.get_running_loop()
    while batch := await loop.run_in_executor(None, past.batch):
        yield batch
    live = Live(sources, past.offsets)
    with Follower(hub, live.logs, done=done, watch=watch) as follower:
        while (found := await follower.read_any()) is not None:
            number, chunk = found
            is_behind = follower.places[number].is_behind
            if lines := live.accept(number, chunk, is_behind=is_behind):
                yield lines
    if lines := live.finish():
        yield lines
