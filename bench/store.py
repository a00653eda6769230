"""Durable submits a second, and how long the service takes to start (performance goals K1, G1).

The peer of a submit is the same job as one transaction after the other, with the same durability (WAL, synchronous =
FULL), which is what a server without group commit does.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.service.jobs import ANN, a_service, a_spec
from tests.store.databases import a_new_job

from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.store import Store
from astrago_trainer.store.jobs import Job, insert_jobs
from bench.measure import comparison, interleaved

ROUNDS = 15
JOBS = 2_000
AT_ONCE = 64
MANY = 100_000
_OPEN = """
import asyncio, os, sys, time
from pathlib import Path
begin = time.process_time()
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from astrago_trainer.engines.fake import FakeEngine
imported = time.process_time()

async def main():
    service = Service(Settings(data=Path(sys.argv[1])), FakeEngine())
    start = time.perf_counter()
    await service.open(tend=False)
    opened = time.perf_counter() - start
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    print(opened * 1000, (imported - begin) * 1000, pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    await service.close()

asyncio.run(main())
"""


def run() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        yield _durable(base)
        yield _submits(base)
        yield _empty(base)
        yield _many(base)


def _durable(base: Path) -> dict[str, Any]:
    number = 0

    def ours() -> float:
        nonlocal number
        number += 1
        return asyncio.run(_write(f"sqlite:///{base / f'{number}.db'}"))

    def peer() -> float:
        nonlocal number
        number += 1
        return _one_by_one(base / f"{number}.db")

    return {
        "id": f"store: durable submits, {AT_ONCE} at once",
        "unit": "jobs/s",
        "goal": ">= 2000",
        **comparison(*interleaved(ours, peer, ROUNDS)),
        "peer_command": "sqlite3, one transaction each",
    }


async def _write(url: str) -> float:
    store = await Store.open(url)
    news = [a_new_job() for _ in range(JOBS)]

    async def writer(first: int) -> None:
        for new in news[first::AT_ONCE]:
            await store.write(insert_jobs, new)

    start = time.perf_counter()
    await asyncio.gather(*(writer(first) for first in range(AT_ONCE)))
    seconds = time.perf_counter() - start
    await store.close()
    return JOBS / seconds


def _one_by_one(path: Path) -> float:
    """The rows of a job, without any of our code."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        for name in ("jobs", "documents", "events", "audit"):
            connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, a, b, c, d, e, f)")
        count = JOBS // 10
        start = time.perf_counter()
        for number in range(count):
            connection.execute("BEGIN IMMEDIATE")
            for name in ("jobs", "documents", "events", "audit"):
                row = (number, "team", "job" * 10, "x" * 100, "y" * 20, time.time())
                connection.execute(
                    f"INSERT INTO {name} (a, b, c, d, e, f) VALUES (?, ?, ?, ?, ?, ?)", row
                )
            connection.execute("COMMIT")
        return count / (time.perf_counter() - start)


def _submits(base: Path) -> dict[str, Any]:
    """Validated, planned, previewed, stored, and handed to an engine that does nothing."""

    async def measure(data: Path) -> tuple[float, float]:
        async with a_service(data, FakeEngine()) as service:
            spec, count = a_spec(), 500
            begin, start = time.process_time(), time.perf_counter()

            async def client(number: int) -> None:
                for _ in range(number, count, 32):
                    await service.submit(ANN, "team", spec)

            await asyncio.gather(*(client(number) for number in range(32)))
            seconds = time.perf_counter() - start
            return count / seconds, (time.process_time() - begin) / count * 1000

    found = sorted(asyncio.run(measure(base / f"service{number}")) for number in range(7))
    rate, cpu = found[3]
    return {
        "id": "service: submits, 32 clients, without HTTP",
        "unit": "jobs/s",
        "goal": ">= 300 through HTTP",
        "ours": round(rate),
        "peer": None,
        "n": len(found),
        "cpu_ms_each": round(cpu, 2),
    }


def _opened(data: Path) -> list[float]:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(data)],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return [float(word) for word in done.stdout.split()]


def _empty(base: Path) -> dict[str, Any]:
    found = sorted(_opened(base / f"empty{number}") for number in range(ROUNDS))
    opened, imported, memory = found[ROUNDS // 2]
    again = sorted(_opened(base / "empty0") for _ in range(ROUNDS))[ROUNDS // 2]
    return {
        "id": "service: open an empty data folder",
        "unit": "ms",
        "goal": "<= 150",
        "ours": round(opened, 1),
        "peer": None,
        "n": ROUNDS,
        "again_ms": round(again[0], 1),
        "import_cpu_ms": round(imported),
        "memory_mb": round(memory, 1),
    }


def _many(base: Path) -> dict[str, Any]:
    data = base / "many"

    async def fill() -> None:
        store = await Store.open(f"sqlite:///{data / 'astrago.db'}")
        for _ in range(MANY // 500):
            news = [
                a_new_job(
                    phase="Complete", outcome="Complete", is_handed=True, message="all ended well"
                )
                for _ in range(500)
            ]
            await asyncio.gather(*(store.write(insert_jobs, new) for new in news))
        await store.close()

    asyncio.run(fill())
    opened, _, memory = sorted(_opened(data) for _ in range(3))[1]
    return {
        "id": f"service: open a data folder with {MANY} jobs",
        "unit": "ms",
        "goal": "<= 5000, memory <= 400 MB",
        "ours": round(opened),
        "peer": None,
        "n": 3,
        "memory_mb": round(memory, 1),
        "fields": len(Job._fields),
    }
