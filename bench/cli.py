"""CPU time of the command line, beside kubectl's (performance goal H)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from bench.measure import comparison, cpu_ms, interleaved

ROUNDS = 25
_ASTRAGO = str(Path(sys.executable).with_name("astrago"))
_SAMPLE = Path(__file__).parents[1] / "runtimes" / "pytorch"
COMMANDS = {
    "--help": ([_ASTRAGO, "--help"], 100),
    "preview": (
        [
            _ASTRAGO,
            "preview",
            "--runtime",
            str(_SAMPLE / "runtime.yaml"),
            "--trainjob",
            str(_SAMPLE / "trainjob.yaml"),
        ],
        250,
    ),
}


JOBS = 100
LIST_GOAL = 150


def run() -> Iterator[dict[str, Any]]:
    yield from _measured(COMMANDS)
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_fill(Path(folder)))
        here = {"list": ([_ASTRAGO, "list", "--data", folder, "-n", "team"], LIST_GOAL)}
        yield from _measured(here, f"embedded, {JOBS} jobs")
        with _server(folder) as url:
            there = {"list": ([_ASTRAGO, "list", "--server", url, "-n", "team"], LIST_GOAL)}
            yield from _measured(there, f"remote, {JOBS} jobs")


async def _fill(data: Path) -> None:
    """Jobs that have ended, as most have: an engine in memory ends them at once."""
    engine = FakeEngine(data=data / "fake")
    spec = parse_job_spec(
        {"user": "ann", "namespace": "team", "framework": "pytorch", "code": {"inline": "pass"}}
    )
    async with Service(Settings(data=data), engine) as service:
        for _ in range(JOBS):
            name = (await service.submit(Identity("ann"), "team", spec)).job.name
            with service.subscribe("team") as news:
                while service.get("team", name).job.phase != "Running":
                    await anext(news)
            engine.finish(handle_of(service.get("team", name).job))
            await service.until_over("team", name)


@contextmanager
def _server(folder: str) -> Iterator[str]:
    """With an engine in memory: nothing is run here."""
    env = {**os.environ, "ASTRAGO_ENGINE": "fake"}
    process = subprocess.Popen(
        [_ASTRAGO, "up", "--port", "0", "--data", folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    assert process.stdout is not None
    try:
        yield next(word for word in process.stdout.readline().split() if "://" in word)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _measured(
    commands: Mapping[str, tuple[list[str], int]], how: str = ""
) -> Iterator[dict[str, Any]]:
    kubectl = shutil.which("kubectl")
    for name, (command, most) in commands.items():
        described = {
            "id": f"cli {name}",
            **({"how": how} if how else {}),
            "unit": "ms CPU",
            "goal": f"<= {most}",
        }
        cpu_ms(command)  # bytecode and page cache are warm for both
        if kubectl is None:
            mine = sorted(cpu_ms(command) for _ in range(ROUNDS))
            yield {
                **described,
                "ours": round(mine[ROUNDS // 2], 1),
                "peer": None,
                "why": "kubectl is missing",
            }
            continue
        peer = [kubectl, "version", "--client"]
        cpu_ms(peer)
        mine, theirs = interleaved(lambda: cpu_ms(command), lambda: cpu_ms(peer), ROUNDS)  # noqa: B023
        yield {**described, "peer_command": "kubectl version --client", **comparison(mine, theirs)}
