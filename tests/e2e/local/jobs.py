"""Jobs as users ask for them, run by the local engine with the real frameworks."""

from __future__ import annotations

import asyncio
import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster.frameworks import environment
from tests.engines.jobs import until

from astrago_trainer import catalogue
from astrago_trainer.core.lifecycle import is_terminal
from astrago_trainer.core.preview import Preview, preview_job
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.base import Effective, Handle, Observation
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.plan import Images

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
_numbers = itertools.count()


@functools.cache
def programs(*names: str) -> str:
    return ":".join(str(environment(name) / "bin") for name in names)


def an_engine(data: Path, isolation: str) -> LocalEngine:
    patterns = {
        "pytorch/*": programs("torch"),
        "tensorflow/*": programs("tensorflow"),
        "horovod/*": programs("horovod"),
    }
    return LocalEngine(data, isolation=isolation, images=Images(programs("torch"), patterns))


def a_job(framework: str, *, name: str, version: str = "2.3", **changes: Any) -> Job:
    platform = catalogue.default_platform(version)  # type: ignore[arg-type]
    request = {"user": "kim", "namespace": "team", "framework": framework, "name": name, **changes}
    spec = parse_job_spec(request)
    runtime = catalogue.load_runtime(platform.default_runtimes[spec.framework])
    rendered = render(spec, runtime, platform)
    return Job(name, preview_job(spec, runtime, platform), rendered.objects)


class Job:
    """What was asked for, as the preview shows it."""

    def __init__(self, name: str, preview: Preview, objects: tuple[Json, ...]) -> None:
        assert not preview.is_refused, preview.problems
        self.handle = Handle("team", name, f"{os.getpid()}-e2e-{next(_numbers)}")
        self.preview = preview
        self.effective = Effective(preview.objects[0], objects, beside=preview.objects[1:])


def run(
    engine: LocalEngine, job: Job, *, meanwhile: Callable[[], Any] | None = None
) -> Observation:
    """To its end; `meanwhile` is awaited once it runs."""

    async def scenario() -> Observation:
        await engine.apply(job.handle, job.effective)
        if meanwhile is not None:
            await meanwhile()
        return await until(engine, job.handle, lambda seen: seen.phase and is_terminal(seen.phase))

    return asyncio.run(scenario())


def log(engine: LocalEngine, job: Job, pod: str, attempt: int = 0) -> str:
    path = engine.logs(job.handle) / f"logs/{attempt}/{job.handle.name}-{pod}/node.log"
    return path.read_text(encoding="utf-8")


def told(seen: Observation) -> str:
    return "\n".join(f"{event.reason}: {event.message}" for event in seen.events)
