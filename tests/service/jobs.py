"""Requests, services and waiting, for tests of the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from astrago_trainer.core.spec import JobSpec, parse_job_spec
from astrago_trainer.engines.base import Engine, Handle
from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from astrago_trainer.store.jobs import Job

PATIENCE = 120.0
"""Seconds; only a failing test takes them."""
ANN = Identity("ann")
SCRIPT = "print('hello')\n"


def a_spec(**fields: Any) -> JobSpec:
    """A valid request; a test changes what it is about."""
    return parse_job_spec(
        {
            "user": "ann",
            "namespace": "team",
            "framework": "pytorch",
            "nodes": 2,
            "code": {"inline": SCRIPT},
            "resources": {"cpu": "100m", "memory": "100Mi"},
            **fields,
        }
    )


def a_service(
    data: Path, engine: Engine | None = None, *, clock: Clock | None = None, **settings: Any
) -> Service:
    return Service(Settings(data=data, **settings), engine or FakeEngine(), clock=clock)


@asynccontextmanager
async def serving(
    data: Path, engine: Engine | None = None, *, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[Service]:
    async with (
        asyncio.timeout(PATIENCE),
        a_service(data, engine, clock=clock, **settings) as service,
    ):
        yield service


async def until(service: Service, claim: Callable[[], object]) -> None:
    """Waits for changes of the board until the claim holds."""
    with service.subscribe() as news:
        while not claim():
            await anext(news)


async def until_phase(service: Service, name: str, *phases: str) -> Job:
    def claim() -> bool:
        record = service.board.find("team", name)
        return record is not None and record.job.phase in phases

    await until(service, claim)
    return service.get("team", name).job


async def until_gone(service: Service, name: str) -> None:
    await until(service, lambda: service.board.find("team", name) is None)


async def running(service: Service, **fields: Any) -> Job:
    """A job that was submitted and runs."""
    record = await service.submit(ANN, "team", a_spec(**fields))
    return await until_phase(service, record.job.name, "Running")


def handle(job: Job) -> Handle:
    return handle_of(job)


class SetClock:
    """A clock for tests: somebody may set it, and time passes only when told."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.wall = now
        self.passed = 0.0
        self.clock = Clock(lambda: self.wall, lambda: self.passed)

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.passed += seconds

    def set_by(self, seconds: float) -> None:
        self.wall += seconds
