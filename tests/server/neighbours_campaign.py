"""Ten noisy tenants and a quiet one: `python -m tests.server.neighbours_campaign --seconds 60`.

The noisy ones send previews, submits, searches in logs, lists and streams as fast as they are answered, from a process
of their own. The quiet one asks for the status of a job, and submits one from time to time. A table with its times,
then "N passed, M failed"; the exit status is 1 when one is beyond its limit. The seed decides what each noisy tenant
does.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.engines.ending import end_jobs
from tests.figures import Table, percentile
from tests.server.sampling import ROOT, waited_for_core
from tests.server.serving import PATIENCE, Process, a_process, bearer

NOISY = 10
SLOTS = 2
"""Jobs that the machine holds at a time."""
JOB_SECONDS = 0.3
CALLS_EACH = 3
"""Requests of one noisy tenant at a time, beside its streams."""
STREAMS_EACH = 5
KINDS = ("preview", "preview", "list", "search", "submit", "bad")
LONGEST_QUEUE = 40
"""Jobs that a noisy tenant has submitted and not deleted."""
READS_BETWEEN_SUBMITS = 20
PAUSE = 0.02


@dataclass(frozen=True)
class Limits:
    """Seconds, p99, and the starts of others before one's own."""

    status: float = 0.05
    submit: float = 1.0
    turns: int = NOISY + SLOTS

    def times(self, factor: int) -> Limits:
        return Limits(self.status * factor, self.submit * factor, self.turns * factor)


@dataclass
class Figures:
    status: list[float] = field(default_factory=list)
    submit: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    noise: Counter[str] = field(default_factory=Counter)


def a_job(name: str, order: Path, namespace: str, seconds: float) -> dict[str, Any]:
    line = f"echo {namespace} {name} $EPOCHREALTIME >> {order}"
    return {
        "name": name,
        "framework": "pytorch",
        "command": f"bash -c '{line}; sleep {seconds}'",
        "resources": {"cpu": "1", "memory": "16Mi"},
    }


class Noise:
    """One noisy tenant."""

    def __init__(
        self, client: httpx.AsyncClient, namespace: str, token: str, order: Path, seed: str
    ) -> None:
        self._client = client
        self._jobs = f"/api/v1/namespaces/{namespace}/jobs"
        self._namespace = namespace
        self._headers = bearer(token)
        self._order = order
        self._chance = random.Random(seed)
        self._names: list[str] = []
        self._number = 0
        self.counts: Counter[str] = Counter()

    async def call(self) -> None:
        while True:
            kind = self._chance.choice(KINDS)
            answer = await self._ask(kind)
            self.counts[f"{kind} {answer.status_code}"] += 1
            if answer.status_code in (429, 503):
                await asyncio.sleep(0.05)

    async def listen(self) -> None:
        path = self._jobs.removesuffix("/jobs") + "/stream"
        while True:
            async with self._client.stream("GET", path, headers=self._headers) as answer:
                async for _ in answer.aiter_bytes():
                    pass

    async def _ask(self, kind: str) -> httpx.Response:
        send = self._client.request
        if kind == "preview":
            env = [{"name": f"A{number}", "value": "x"} for number in range(1000)]
            body = {"framework": "pytorch", "code": {"inline": "pass"}, "env": env}
            return await send("POST", self._jobs + ":preview", json=body, headers=self._headers)
        if kind == "bad":
            body = {f"field{number}": 1 for number in range(4000)}
            return await send("POST", self._jobs, json=body, headers=self._headers)
        if kind == "search" and self._names:
            path = f"{self._jobs}/{self._chance.choice(self._names)}/logs/hits"
            params = {"q": "(a|b|ab)*c", "regex": "true"}
            return await send("GET", path, params=params, headers=self._headers)
        if kind == "submit":
            if len(self._names) >= LONGEST_QUEUE:
                name = self._names.pop(0)
                return await send("DELETE", f"{self._jobs}/{name}", headers=self._headers)
            self._number += 1
            name = f"n{self._number}"
            job = a_job(name, self._order, self._namespace, JOB_SECONDS)
            answer = await send("POST", self._jobs, json=job, headers=self._headers)
            if answer.status_code == 201:
                self._names.append(name)
            return answer
        return await send("GET", self._jobs, params={"limit": 500}, headers=self._headers)


async def make_noise(address: str, order: Path, tenants: dict[str, str], seed: int) -> Counter[str]:
    """Until the input of this process is closed."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=PATIENCE, limits=limits) as client:
        noises = [
            Noise(client, namespace, token, order, f"{seed} {namespace}")
            for namespace, token in tenants.items()
        ]
        tasks = [asyncio.create_task(each.call()) for each in noises for _ in range(CALLS_EACH)]
        tasks += [
            asyncio.create_task(each.listen()) for each in noises for _ in range(STREAMS_EACH)
        ]
        await asyncio.to_thread(sys.stdin.read)
        broken = [repr(each.exception()) for each in tasks if each.done() and each.exception()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    counts: Counter[str] = sum((each.counts for each in noises), Counter())
    counts["broken callers"] = len(broken)
    return counts


@contextmanager
def noise(address: str, order: Path, tenants: dict[str, str], seed: int, found: Figures) -> Any:
    command = [sys.executable, "-m", "tests.server.neighbours_campaign", "--noise", address]
    process = subprocess.Popen(
        [*command, str(order), json.dumps(tenants), "--seed", str(seed)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield
    finally:
        out, _ = process.communicate(timeout=PATIENCE)
        found.noise.update(json.loads(out) if out else {"broken callers": 1})


class Quiet:
    """The tenant that must not notice the others."""

    def __init__(self, server: Process, token: str, order: Path, found: Figures) -> None:
        self._both = (os.getpid(), server.process.pid)
        self._connection = http.client.HTTPConnection(
            server.address.removeprefix("http://"), timeout=PATIENCE
        )
        self._headers = {**bearer(token), "content-type": "application/json"}
        self._order = order
        self._found = found
        self._jobs = "/api/v1/namespaces/quiet/jobs"

    def work(self, seconds: float) -> None:
        end, number = time.monotonic() + seconds, 0
        while time.monotonic() < end or not number:
            name, asked = f"q{number}", time.time()
            number += 1
            job = json.dumps(a_job(name, self._order, "quiet", 0))
            self._timed(self._found.submit, "POST", self._jobs, 201, job)
            for _ in range(READS_BETWEEN_SUBMITS):
                self._timed(self._found.status, "GET", f"{self._jobs}/{name}", 200)
                time.sleep(PAUSE)
            self._wait_for_start(name, asked)

    def close(self) -> None:
        self._connection.close()

    def _timed(
        self, times: list[float], method: str, path: str, status: int, body: str | None = None
    ) -> None:
        queued, begin = sum(map(waited_for_core, self._both)), time.perf_counter()
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        seconds = time.perf_counter() - begin
        # The machine is shared: what counts is whether the server lets this tenant wait.
        times.append(seconds - (sum(map(waited_for_core, self._both)) - queued))
        if answer.status != status:
            self._found.faults.append(f"{method} {path}: {answer.status} {text[:200]!r}")

    def _wait_for_start(self, name: str, asked: float) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            lines = [line.split() for line in self._order.read_text().splitlines()]
            starts = [(each[0], float(each[2])) for each in lines if len(each) == 3]
            own = [float(each[2]) for each in lines if each[:2] == ["quiet", name]]
            if own:
                self._found.start.append(own[0] - asked)
                others = [at for who, at in starts if who != "quiet" and asked < at < own[0]]
                self._found.turns.append(len(others))
                return
            time.sleep(PAUSE)
        self._found.faults.append(f"{name} did not start in {PATIENCE:.0f} s")


def run_campaign(
    folder: Path, seconds: float, seed: int, limits: Limits | None = None, noisy: int = NOISY
) -> Table:
    found, chosen = Figures(), limits or Limits()
    order = folder / "order"
    order.touch()
    with a_process(folder / "data", ASTRAGO_AUTH="tokens", ASTRAGO_LOCAL_CPUS=str(SLOTS)) as server:
        boss = bearer((folder / "data" / "admin-token").read_text().strip())
        names = [*(f"noisy{number}" for number in range(noisy)), "quiet"]
        with httpx.Client(base_url=server.address, timeout=PATIENCE, headers=boss) as client:
            tokens = {name: _tenant(client, name) for name in names}
        quiet = Quiet(server, tokens.pop("quiet"), order, found)
        try:
            with noise(server.address, order, tokens, seed, found):
                time.sleep(1.0)  # until they make noise
                quiet.work(seconds)
        finally:
            quiet.close()
            with suppress(subprocess.TimeoutExpired):
                server.stop()
            end_jobs(folder / "data")
    return _table(found, chosen, seed)


def _tenant(client: httpx.Client, name: str) -> str:
    client.post("/api/v1/users", json={"name": name}).raise_for_status()
    client.post("/api/v1/tenants", json={"namespace": name}).raise_for_status()
    path = f"/api/v1/tenants/{name}/members/{name}"
    client.put(path, json={"role": "member"}).raise_for_status()
    made = client.post("/api/v1/tokens", json={"user": name}).raise_for_status()
    return str(made.json()["secret"])


def _table(found: Figures, limits: Limits, seed: int) -> Table:
    table = Table(found.faults[:10])
    table.note("seed", seed)
    for what, count in sorted(found.noise.items()):
        if what != "broken callers":
            table.note(f"noise: {what}", count)
    table.equal("noisy callers whose connection broke", found.noise["broken callers"], 0)
    faults = sum(count for what, count in found.noise.items() if " 5" in what)
    table.equal("noise answered with 5xx", faults, 0)
    table.equal("quiet requests answered otherwise", len(found.faults), 0)
    for name, values, limit in (
        ("status", found.status, limits.status),
        ("submit", found.submit, limits.submit),
    ):
        table.note(f"{name}, requests", len(values))
        table.note(f"{name}, p50", f"{percentile(values, 50) * 1000:.1f} ms")
        table.at_most(f"{name}, p99", percentile(values, 99) * 1000, limit * 1000, " ms")
    table.note("submit to start, p50", f"{percentile(found.start, 50):.2f} s")
    table.note("submit to start, longest", f"{max(found.start, default=0):.2f} s")
    table.at_most("starts of others before its own", max(found.turns, default=999), limits.turns)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--noise", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.noise:
        address, order, tenants = options.noise
        made = asyncio.run(make_noise(address, Path(order), json.loads(tenants), options.seed))
        print(json.dumps(made))
        return 0
    with tempfile.TemporaryDirectory(prefix="astrago-neighbours-") as folder:
        return run_campaign(Path(folder), options.seconds, options.seed).print()


if __name__ == "__main__":
    sys.exit(main())
