"""Small jobs for engines, made as users' are: a runtime and a TrainJob through the preview."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from tests.builders import a_container, a_job, a_runtime, a_trainjob

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.core.preview import preview_pair
from astrago_trainer.engines.base import Effective, Engine, Handle, Observation

Json = dict[str, Any]
T = TypeVar("T")

PATIENCE = 180.0
"""Seconds; only a failing test takes them."""

_numbers = itertools.count()


def a_handle(name: str = "job", namespace: str = "team") -> Handle:
    """Unique on this machine: processes are told apart by the uid of their job."""
    return Handle(namespace, name, f"{os.getpid()}-{next(_numbers)}")


def effective(
    script: str = "exit 0",
    *,
    name: str = "job",
    nodes: int = 1,
    container: Json | None = None,
    pod: Json | None = None,
    job: Json | None = None,
    job_set: Json | None = None,
    objects: tuple[Json, ...] = (),
    policy: Json | None = None,
    suspend: bool = False,
    deadline: int | None = None,
) -> Effective:
    """A job whose containers run a shell script."""
    node = a_container(**{"command": ["bash", "-c", script], **(container or {})})
    runtime = a_runtime(
        a_job(pod={"containers": [node], **(pod or {})}, **(job or {})), policy=policy
    )
    runtime["spec"]["template"]["spec"] |= job_set or {}
    trainjob = a_trainjob(trainer={"numNodes": nodes})
    trainjob["metadata"]["name"] = name
    preview = preview_pair(runtime, trainjob, "2.1")
    return Effective(preview.objects[0], objects, suspend, deadline)


def run(engine: Engine, scenario: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs a scenario and ends what the engine itself has running, where it has a way to; jobs go on."""

    async def whole() -> T:
        try:
            return await scenario()
        finally:
            if (close := getattr(engine, "close", None)) is not None:
                await close()

    return asyncio.run(whole())


async def until(
    engine: Engine, handle: Handle, claim: Callable[[Observation], object]
) -> Observation:
    """Observes until the claim holds. Engines tell of changes to whoever asks, so a test has to ask."""
    async with asyncio.timeout(PATIENCE):
        while True:
            seen = await engine.observe(handle)
            if claim(seen):
                return seen
            await asyncio.sleep(0.01)


async def until_over(engine: Engine, handle: Handle) -> Observation:
    return await until(
        engine, handle, lambda seen: isinstance(seen.phase, Phase) and is_terminal(seen.phase)
    )


def log(folder: str, attempt: int = 0, rank: int = 0, container: str = "node") -> str:
    return Path(f"{folder}/logs/{attempt}/job-node-0-{rank}/{container}.log").read_text(
        encoding="utf-8"
    )
