"""`python -m tests.web.fill FOLDER NUMBER`: a data folder with so many jobs that have ended."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from astrago_trainer.store import Store
from astrago_trainer.store.jobs import insert_jobs
from tests.store.databases import NOW, a_new_job


async def fill(data: Path, jobs: int) -> None:
    """By the store's own fast path: a thousand rows in one commit."""
    data.mkdir(parents=True)
    store = await Store.open(f"sqlite:///{data / 'astrago.db'}")
    phases = ("Complete", "Failed")
    for first in range(0, jobs, 1000):
        news = (
            a_new_job(
                f"job-{number}",
                engine="local",
                phase=phases[number % 7 == 0],
                outcome=phases[number % 7 == 0],
                message="rank 1 ended with exit code 1: no space left on device"
                * (number % 7 == 0),
                is_handed=True,
                is_reaped=True,
                ttl_seconds=None,
                created_at=NOW + number,
                started_at=NOW + number,
                finished_at=NOW + number + 60,
                settled_at=NOW + number + 60,
            )
            for number in range(first, first + 1000)
        )
        await asyncio.gather(*(store.write(insert_jobs, new) for new in news))
    await store.close()


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), int(sys.argv[2])))
