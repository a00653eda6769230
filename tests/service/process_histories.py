"""Histories of requests to server processes that are killed and paused, checked against the model of one job.

    python -m tests.service.process_histories --count 500 [--seed N] [--database postgresql] [--servers 3]

Servers share a database and an engine whose jobs outlive them. Between the requests of the clients a server is killed
and started again, or stopped for a while and continued. The seed decides requests and faults; their times differ. Wrong
histories are printed; then a table, "N passed, M failed", and the exit status 1 when a history is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx

from tests.figures import Table
from tests.server.serving import PATIENCE, Process, a_request
from tests.service.linear import Operation, State, is_linearizable
from tests.store.postgres import running_postgres

ROOT = Path(__file__).parents[2]
KINDS = (
    "create", "create", "keyed", "keyed", "suspend", "resume", "suspend", "resume", "restart", "delete", "get", "get",
    "list",
)  # fmt: skip
CLIENTS = 3
REQUESTS = 5
AT_ONCE = 6
"""Histories that are recorded at a time, each of a job of its own."""
JOBS = "/api/v1/namespaces/team/jobs"
ANSWER_SECONDS = 20.0
LONGEST_PAUSE = 0.8
FAULT_SECONDS = 0.2
"""Between two faults, on the average."""
MOST_SHOWN = 3


class Server:
    """A server process, and the next one after it was killed."""

    def __init__(self, data: Path, database: str | None) -> None:
        self._data = data
        self._variables = {"ASTRAGO_ENGINE": "fake", "PYTHONPATH": str(ROOT)}
        if database is not None:
            self._variables["ASTRAGO_DATABASE"] = database
        self._process = self._start()
        self.client = self._client()
        self.is_up = True

    def _start(self) -> Process:
        return Process(self._data, module="tests.service.process_server", **self._variables)

    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self._process.address, timeout=ANSWER_SECONDS)

    async def kill(self) -> None:
        """Requests that it has are not answered any more; returns when the next one answers."""
        self.is_up = False
        self._end(signal.SIGKILL)
        await self.client.aclose()
        self._process = await asyncio.to_thread(self._start)
        self.client = self._client()
        self.is_up = True

    async def pause(self, seconds: float) -> None:
        self._process.process.send_signal(signal.SIGSTOP)
        await asyncio.sleep(seconds)
        self._process.process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        await self.client.aclose()
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self._process.process.send_signal(number)
        self._process.process.wait(PATIENCE)
        assert self._process.process.stdout is not None
        self._process.process.stdout.close()


class Injector:
    """Faults until it is cancelled; one server is always left alone, so that somebody answers."""

    def __init__(self, servers: list[Server], chance: random.Random, longest_pause: float) -> None:
        self._idle = list(servers)
        self._chance = chance
        self._longest_pause = longest_pause
        self._faults: set[asyncio.Task[None]] = set()
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        try:
            while True:
                await asyncio.sleep(self._chance.random() * 2 * FAULT_SECONDS)
                if len(self._idle) > 1:
                    server = self._chance.choice(self._idle)
                    self._idle.remove(server)
                    self._faults.add(asyncio.create_task(self._fault(server)))
        finally:
            # To their ends: a server that is being started belongs to nobody else.
            if self._faults:
                await asyncio.wait(self._faults)

    async def _fault(self, server: Server) -> None:
        if self._chance.random() < 0.3:
            self.counts["kills"] += 1
            await server.kill()
        else:
            self.counts["pauses"] += 1
            await server.pause(self._chance.random() * self._longest_pause)
        self._idle.append(server)


class History:
    """Of one job."""

    def __init__(self, servers: list[Server], name: str, seed: str) -> None:
        self._servers = servers
        self._name = name
        self._chance = random.Random(seed)
        self._moments = itertools.count()
        self.operations: list[Operation] = []
        self.served: list[int] = []
        """For a reader: which server each was sent to."""
        self.faults: list[str] = []

    async def record(self) -> None:
        clients = [self._client(random.Random(self._chance.random())) for _ in range(CLIENTS)]
        await asyncio.gather(*clients)

    async def _client(self, chance: random.Random) -> None:
        for number in range(REQUESTS):
            kind = chance.choice(KINDS) if number else chance.choice(("create", "keyed"))
            key = f"{self._name} {chance.randrange(2)}" if kind == "keyed" else ""
            kind = "create" if key else kind
            up = [each for each in self._servers if each.is_up]
            server = chance.choice(up)
            asked = Operation(kind, next(self._moments), None, key=key)
            answer = None
            with suppress(httpx.TransportError, RuntimeError):  # a closed client is a RuntimeError
                answer = await self._ask(server.client, kind, key)
            if answer is None:
                self.operations.append(asked)  # its outcome is unknown
            else:
                moment = next(self._moments)
                self.operations.append(replace(asked, answered_at=moment, answer=answer))
            self.served.append(self._servers.index(server))
            await asyncio.sleep(chance.random() * 0.05)

    async def _ask(self, client: httpx.AsyncClient, kind: str, key: str) -> str | State | None:
        """None where the server could not tell."""
        path = f"{JOBS}/{self._name}"
        if kind == "create":
            headers = {"Idempotency-Key": key} if key else {}
            body = a_request(name=self._name, nodes=1)
            answer = await client.post(JOBS, json=body, headers=headers)
        elif kind == "list":
            answer = await client.get(JOBS, params={"q": self._name, "limit": 500})
        elif kind == "get":
            answer = await client.get(path)
        elif kind == "delete":
            answer = await client.delete(path)
        else:
            answer = await client.post(f"{path}:{kind}")
        if answer.status_code == 503:
            return None
        if answer.status_code == 404:
            return "missing"
        if answer.status_code == 409:
            return "taken" if kind == "create" else "refused"
        if answer.status_code >= 300:
            self.faults.append(f"{kind} of {self._name}: {answer.status_code} {answer.text[:500]}")
            return None
        found = answer.json()
        if kind == "list":
            same = [each for each in found["items"] if each["name"] == self._name]
            assert len(same) <= 1, f"doubled: {same}"
            return _state(same[0]) if same else "missing"
        return _state(found)


def _state(job: dict[str, Any]) -> State:
    return State(job["uid"], job["is_suspended"], job["is_deleting"])


async def check_histories(
    data: Path,
    database: str | None,
    count: int,
    seed: int,
    *,
    servers: int = 3,
    longest_pause: float = LONGEST_PAUSE,
) -> Table:
    made = [await asyncio.to_thread(Server, data, database) for _ in range(servers)]
    injector = Injector(made, random.Random(f"{seed} faults"), longest_pause)
    numbers, histories = iter(range(count)), []
    begin = time.monotonic()

    async def record() -> None:
        for number in numbers:
            history = History(made, f"job{number}", f"{seed} {number}")
            await history.record()
            histories.append((number, history))

    injecting = asyncio.create_task(injector.run())
    try:
        await asyncio.gather(*(record() for _ in range(min(AT_ONCE, count))))
    finally:
        injecting.cancel()
        await asyncio.wait([injecting])
        for each in made:
            await each.close()
    table, wrong = Table(), 0
    for number, history in histories:
        if not is_linearizable(history.operations):
            wrong += 1
            if wrong <= MOST_SHOWN:
                table.lines.append(f"seed {seed}, history {number}:")
                pairs = zip(history.operations, history.served, strict=True)
                table.lines += [f"  server {server}: {each}" for each, server in pairs]
    faults = [each for _, history in histories for each in history.faults]
    if faults:
        log = data.parent / f"{data.name}.stderr"
        table.lines += [*faults[:MOST_SHOWN], _first_traceback(log.read_text(errors="replace"))]
    operations = [each for _, history in histories for each in history.operations]
    table.note("seed", seed)
    table.note("servers, database", f"{servers}, {'PostgreSQL' if database else 'SQLite'}")
    table.note("histories, requests", f"{len(histories)}, {len(operations)}")
    table.note("without an answer", sum(each.answered_at is None for each in operations))
    table.note("kills, pauses", f"{injector.counts['kills']}, {injector.counts['pauses']}")
    table.note("seconds", f"{time.monotonic() - begin:.0f}")
    made_faults = injector.counts.total()
    table.check("kills and pauses in all", str(made_faults), made_faults > 0, "at least 1")
    table.equal("answers that no server should give", len(faults), 0)
    table.equal("histories without an order", wrong, 0)
    return table


def _first_traceback(log: str) -> str:
    """Of what the servers wrote; empty without one."""
    begin = log.find("Traceback (most recent")
    return log[begin : begin + 6000] if begin >= 0 else ""


def run_campaign(
    folder: Path, count: int, seed: int, *, database: str = "sqlite", **options: Any
) -> Table:
    with running_postgres() if database == "postgresql" else nullcontext() as url:
        return asyncio.run(check_histories(folder / "data", url, count, seed, **options))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--longest-pause", type=float, default=LONGEST_PAUSE, help="seconds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="astrago-histories-") as folder:
        table = run_campaign(
            Path(folder),
            options.count,
            options.seed,
            database=options.database,
            servers=options.servers,
            longest_pause=options.longest_pause,
        )
    return table.print()


if __name__ == "__main__":
    sys.exit(main())
