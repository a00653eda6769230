"""Around a store: a database without tables, a store for one scenario, rows that are valid as they are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from sqlalchemy import text

from astrago_trainer.store import Store
from astrago_trainer.store.audit import AuditRow
from astrago_trainer.store.drivers import make_driver
from astrago_trainer.store.jobs import Accepted, Event, Job, Key, NewJob, insert_jobs

T = TypeVar("T")
NOW = 1_800_000_000.0

_numbers = itertools.count(1)


def with_store(url: str, scenario: Callable[[Store], Awaitable[T]]) -> T:
    """Runs it on an open store."""

    async def run() -> T:
        store = await Store.open(url)
        try:
            return await scenario(store)
        finally:
            await store.close()

    return asyncio.run(run())


def on_database(url: str, *statements: str) -> list[Any]:
    """Rows of the last of some statements, past all of our code."""

    async def run() -> list[Any]:
        driver = make_driver(url)
        try:
            return await driver.write(
                lambda connection: [_rows(connection.execute(text(each))) for each in statements][
                    -1
                ]
            )
        finally:
            await driver.close()

    return asyncio.run(run())


def _rows(result: Any) -> list[Any]:
    return list(result) if result.returns_rows else []


def empty_postgres(url: str) -> None:
    on_database(url, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def a_new_job(
    name: str = "", *, key: Key | None = None, code: tuple[str, str] | None = None, **fields: Any
) -> NewJob:
    number = next(_numbers)
    job = Job(
        **{
            "number": 0,
            "uid": f"uid{number}",
            "namespace": "team",
            "name": name or f"job{number}",
            "owner": "ann",
            "framework": "pytorch",
            "runtime": "pytorch-simple",
            "nodes": 2,
            "gpus": 0,
            "engine": "fake",
            "code_name": code[0] if code else None,
            "ttl_seconds": 60,
            "max_restarts": 1,
            "created_at": NOW,
            "events": 1,
            **fields,
        }
    )
    return NewJob(
        job,
        digest="d" * 64,
        spec='{"user":"ann"}',
        runtime=("r" * 64, '{"kind":"ClusterTrainingRuntime"}'),
        shared=("s" * 64, '{"kind":"ConfigMap"}'),
        objects='[{"kind":"TrainJob"}]',
        effective='[{"kind":"JobSet"}]',
        code_digest=code[1] if code else None,
        events=(Event(0, NOW, "ann", "Accepted", "as asked"),),
        audit=AuditRow(NOW, "ann", "team", "job.submit", job.name, job.uid),
        key=key,
        answer=f'{{"uid":"{job.uid}"}}' if key else "",
    )


async def accept(store: Store, new: NewJob | None = None) -> Job:
    answer = await store.write(insert_jobs, new or a_new_job())
    assert isinstance(answer, Accepted), answer
    return answer.job
