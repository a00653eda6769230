"""Servers for tests: in this process with a client that needs no port, or as a process of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from astrago_trainer.engines.base import Engine, Handle
from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.logs.layout import log_path
from astrago_trainer.server.app import make_app, opened
from astrago_trainer.server.context import Context
from astrago_trainer.server.settings import ServerSettings
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.identity import Identity, Role

PATIENCE = 120.0
"""Seconds; only a failing test takes them."""
HERE = "http://127.0.0.1:8000"
JOBS = "/api/v1/namespaces/team/jobs"
BOSS = Identity("boss", is_administrator=True)


class Site:
    """A server in this process, and a client of it."""

    def __init__(self, context: Context, engine: FakeEngine, client: httpx.AsyncClient) -> None:
        self.context = context
        self.service = context.service
        self.engine = engine
        self.client = client
        self.app = client._transport.app  # type: ignore[attr-defined]

    async def submit(self, **fields: Any) -> dict[str, Any]:
        answer = await self.client.post(JOBS, json=a_request(**fields))
        assert answer.status_code == 201, answer.text
        return answer.json()

    async def running(self, **fields: Any) -> dict[str, Any]:
        made = await self.submit(**fields)
        await self.until(made["name"], "Running")
        return made

    async def until(self, name: str, *phases: str) -> None:
        with self.service.subscribe("team") as news:
            while self.service.get("team", name).job.phase not in phases:
                await anext(news)

    def handle(self, name: str, namespace: str = "team") -> Handle:
        return handle_of(self.service.get(namespace, name).job)

    def log(self, name: str, rank: int = 0, attempt: int = 0, namespace: str = "team") -> Path:
        """The log of a rank, to be written to as a training would."""
        folder = self.engine.logs(self.handle(name, namespace))
        path = log_path(folder, attempt, f"{name}-node-0-{rank}", "node")
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    async def token(self, user: str, **roles: Role) -> str:
        """Of a user with these roles; underscores in names of namespaces are dashes."""
        access = self.service.access
        if access.find(user) is None:
            await access.create_user(BOSS, user)
        for name, role in roles.items():
            namespace = name.replace("_", "-")
            if all(each.namespace != namespace for each in access.tenants()):
                await access.create_tenant(BOSS, namespace)
            await access.set_member(BOSS, namespace, user, role)
        return (await access.create_token(BOSS, user)).secret


def a_request(**fields: Any) -> dict[str, Any]:
    """A valid body; a test changes what it is about."""
    return {
        "user": "ann",
        "framework": "pytorch",
        "nodes": 2,
        "code": {"inline": "print('hello')\n"},
        "resources": {"cpu": "100m", "memory": "100Mi"},
        **fields,
    }


@asynccontextmanager
async def a_site(
    data: Path,
    engine: Engine | None = None,
    *,
    clock: Clock | None = None,
    on_cluster: bool = False,
    **settings: Any,
) -> AsyncIterator[Site]:
    """`on_cluster`: with the settings of a server on a cluster; the engine itself is in memory."""
    name = "kubernetes" if on_cluster else "local"
    made = ServerSettings(data=data, engine=name, **settings)
    fake = engine or FakeEngine(data=data / "fake")
    async with asyncio.timeout(PATIENCE), opened(made, fake, clock=clock) as context:
        transport = httpx.ASGITransport(make_app(context), raise_app_exceptions=True)
        async with httpx.AsyncClient(
            transport=transport, base_url=HERE, timeout=PATIENCE
        ) as client:
            yield Site(context, fake, client)  # type: ignore[arg-type]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


class Process:
    """`astrago up` as people start it."""

    def __init__(
        self, data: Path, port: str = "0", *, module: str = "astrago_trainer", **variables: str
    ) -> None:
        """`module`: a program that is `astrago` but for what a test changes in it."""
        command = [sys.executable, "-m", module, "up", "--port", port]
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("ASTRAGO_")
        }
        self.stderr = data.parent / f"{data.name}.stderr"
        with self.stderr.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*command, "--data", str(data)],
                env={**environment, "ASTRAGO_LOCAL_USERS": "trusted", **variables},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert "answers at" in line, self.stderr.read_text()
        self.address = line.split()[3]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def health_seconds(client: httpx.Client, server: Process) -> float:
    """How long /healthz takes to answer, without the time in which the machine had no core for one of the two.

    So it shows whether the server lets a request wait, on a busy machine too.
    """
    both = (os.getpid(), server.process.pid)
    queued, begin = sum(map(_without_core, both)), time.perf_counter()
    assert client.get(f"{server.address}/healthz").status_code == 200
    seconds = time.perf_counter() - begin
    return seconds - (sum(map(_without_core, both)) - queued)


def _without_core(pid: int) -> float:
    """Seconds that its main thread could have run but had to queue; see the kernel's sched-stats."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


@contextmanager
def a_process(data: Path, port: str = "0", **variables: str) -> Iterator[Process]:
    process = Process(data, port, **variables)
    try:
        yield process
    finally:
        if process.process.poll() is None:
            process.stop()
        assert process.process.stdout is not None
        process.process.stdout.close()


def events_of(text: str) -> list[dict[str, str]]:
    """Server-sent events as a browser reads them."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and line[0] != ":")
        if fields:
            found.append(fields)
    return found
