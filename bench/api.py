"""The server over HTTP: status and lists, submits, changes to streams, log downloads, memory (goals C, D1, J, K).

A client in a process of its own asks over 16 connections; server and client each have a core. The peer is an empty
route of FastAPI under the same uvicorn: what the framework costs when it does nothing.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
from tests.store.databases import a_new_job

from astrago_trainer.store import Store
from astrago_trainer.store.jobs import insert_jobs
from bench.measure import comparison, interleaved

_OUR_CORE = 1 if (os.cpu_count() or 1) > 1 else 0
"""The server has the first one."""
_ON_OUR_CORE = ("taskset", "-c", str(_OUR_CORE))
ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = 16
SUBMITTERS, SUBMITS = 32, 600
SIZES = (100, 1_000, 10_000, 100_000)
_PEER = """
import sys, uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/")
async def nothing() -> dict[str, str]:
    return {}
uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", log_level="warning", access_log=False)
"""


def run() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        yield from _memory_and_reads(base)
        yield from _submits(base)
        yield _first_line(base)
        yield _stream(base)
        yield from _download(base)


def _memory_and_reads(base: Path) -> Iterator[dict[str, Any]]:
    with _server(base / "idle") as (_, process):
        yield {
            "id": "server memory, idle",
            "unit": "MB",
            "goal": "<= 90",
            "ours": _resident(process),
            "peer": None,
            "n": 1,
        }
    medians: dict[str, list[float]] = {"status": [], "list": []}
    for size in SIZES:
        data = base / f"jobs{size}"
        asyncio.run(_fill(data, size))
        with _server(data) as (address, process), _peer() as peer:
            paths = {
                "status": f"/api/v1/namespaces/team/jobs/job-{size // 2}",
                "list": "/api/v1/namespaces/team/jobs?limit=50",
            }
            for name, path in paths.items():
                latencies: list[float] = []

                def ours(path: str = path, seen: list[float] = latencies) -> float:
                    rate, times = load(address, path)
                    seen += times
                    return rate

                if size != SIZES[-1]:
                    medians[name].append(1e6 / ours())
                    continue
                mine, theirs = interleaved(ours, lambda: load(peer, "/")[0], ROUNDS)
                medians[name].append(1e6 / sorted(mine)[len(mine) // 2])
                latencies.sort()
                yield {
                    "id": f"http {name}, {size} jobs, {CONNECTIONS} connections, one core",
                    "unit": "requests/s",
                    "goal": ">= 8000, p99 <= 10 ms" if name == "status" else "p99 <= 20 ms",
                    **comparison(mine, theirs),
                    "peer_command": "an empty FastAPI route",
                    "p50_ms": round(latencies[len(latencies) // 2] * 1e3, 2),
                    "p99_ms": round(latencies[len(latencies) * 99 // 100] * 1e3, 2),
                    "us_by_size": [round(each, 1) for each in medians[name]],
                    "growth_k": _growth(medians[name]),
                }
            if size == SIZES[-1]:
                yield {
                    "id": f"server memory, {size} jobs",
                    "unit": "MB",
                    "goal": "<= 400",
                    "ours": _resident(process),
                    "peer": None,
                    "n": 1,
                }


def _submits(base: Path) -> Iterator[dict[str, Any]]:
    """Each is validated, previewed and synced to the disk before its answer; then handed to an engine in memory."""
    with _server(base / "submits", ASTRAGO_ENGINE="fake") as (address, process):
        _client("submit", address, "warm", "100")
        rates, costs = [], []
        for number in range(ROUNDS):
            before = _cpu_seconds(process)
            rates.append(_client("submit", address, str(number), str(SUBMITS)))
            costs.append((_cpu_seconds(process) - before) / SUBMITS * 1e3)
        yield {
            "id": f"http durable submits, {SUBMITTERS} clients, one core",
            "unit": "jobs/s",
            "goal": ">= 300",
            "ours": round(statistics.median(rates), 1),
            "all": [round(rate) for rate in rates],
            "cpu_ms_each": round(statistics.median(costs), 2),
            "peer": None,
            "n": ROUNDS,
        }


async def _submit_many(address: str, round_: str, count: int) -> float:
    """Over plain sockets, so that the client is not what is measured."""
    host, _, port = address.removeprefix("http://").partition(":")
    body = {
        "user": "ann",
        "framework": "pytorch",
        "nodes": 2,
        "resources": {"cpu": "100m", "memory": "100Mi"},
        "code": {"inline": "print('hello')\n"},
    }
    head = (
        "POST /api/v1/namespaces/team/jobs HTTP/1.1\r\n"
        f"Host: {host}:{port}\r\nContent-Type: application/json\r\nContent-Length: "
    )

    async def one(first: int) -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        for number in range(first, count, SUBMITTERS):
            data = json.dumps({**body, "name": f"s{round_}-{number}"})
            writer.write(f"{head}{len(data)}\r\n\r\n{data}".encode())
            answer = await reader.readuntil(b"\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 201"), answer
            length = answer.split(b"content-length: ")[1].split(b"\r\n")[0]
            await reader.readexactly(int(length))
        writer.close()

    start = time.perf_counter()
    await asyncio.gather(*(one(first) for first in range(SUBMITTERS)))
    return count / (time.perf_counter() - start)


def _first_line(base: Path) -> dict[str, Any]:
    """From the sending of the request to a line of the user's code, beside what python itself needs for it."""
    script = base / "trivial.py"
    script.write_text("import time\nprint(time.time_ns(), flush=True)\n")
    with (
        _server(base / "first", pinned=False, ASTRAGO_ENGINE="local") as (address, _),
        httpx.Client(base_url=f"{address}/api/v1/namespaces/team", timeout=60) as client,
    ):

        def ours() -> float:
            body = {
                "user": "ann",
                "framework": "pytorch",
                "code": {"inline": script.read_text()},
                "resources": {"cpu": "1", "memory": "100Mi"},  # less of a core would be slower
            }
            start = time.time_ns()
            made = client.post("/jobs", json=body).raise_for_status().json()
            said = client.get(f"/jobs/{made['name']}/logs", params={"follow": "true"}).text
            return (int(said.split()[-1]) - start) / 1e6

        def bare() -> float:
            start = time.time_ns()
            done = subprocess.run([sys.executable, script], capture_output=True, check=True)
            return (int(done.stdout) - start) / 1e6

        ours(), bare()
        mine, theirs = interleaved(ours, bare, 15)
        return {
            "id": "http submit to first line, trivial script",
            "unit": "ms",
            "goal": "<= 100 ms more than python",
            **comparison(mine, theirs),
            "more_ms": round(statistics.median(mine) - statistics.median(theirs), 1),
            "peer_command": "python trivial.py",
        }


def _stream(base: Path) -> dict[str, Any]:
    with _server(base / "stream", ASTRAGO_ENGINE="fake") as (address, _):
        times = sorted(asyncio.run(_freshness(address)))
    return {
        "id": "http change to 50 streams, p99",
        "unit": "ms",
        "goal": "<= 200",
        "ours": round(times[len(times) * 99 // 100] * 1e3, 1),
        "p50_ms": round(times[len(times) // 2] * 1e3, 1),
        "peer": None,
        "n": len(times),
    }


async def _freshness(address: str) -> list[float]:
    """From the sending of a suspend to the change on every stream: the write is in it."""
    times: list[float] = []
    limits = httpx.Limits(max_connections=100)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        body = {
            "user": "ann",
            "framework": "pytorch",
            "name": "watched",
            "code": {"inline": "print(1)"},
        }
        await client.post("/api/v1/namespaces/team/jobs", json=body)
        seen: asyncio.Queue[tuple[bool, float]] = asyncio.Queue()
        ready = asyncio.Semaphore(0)

        async def listen() -> None:
            async with client.stream("GET", "/api/v1/namespaces/team/stream") as answer:
                name = ""
                async for line in answer.aiter_lines():
                    if line.startswith("event: "):
                        name = line[7:]
                        if name == "ready":
                            ready.release()
                    elif line.startswith("data: ") and name == "changed":
                        wish = json.loads(line[6:])["is_suspended"]
                        seen.put_nowait((wish, time.perf_counter()))

        tasks = [asyncio.create_task(listen()) for _ in range(50)]
        for _ in tasks:
            await ready.acquire()
        for number in range(60):
            verb = "suspend" if number % 2 == 0 else "resume"
            start = time.perf_counter()
            await client.post(f"/api/v1/namespaces/team/jobs/watched:{verb}")
            missing = len(tasks)
            while missing:
                wish, when = await seen.get()
                if wish == (verb == "suspend") and when >= start:
                    times.append(when - start)
                    missing -= 1
            await asyncio.sleep(0.05)
            while not seen.empty():
                seen.get_nowait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return times


def _download(base: Path) -> Iterator[dict[str, Any]]:
    """A log that lies in memory, by a client on the other core.

    A new log is also read for its numbers, on the same core; that takes seconds for so much at once. So it is measured
    twice: while that goes on, and afterwards.
    """
    size = 256 << 20
    with _server(base / "logs", ASTRAGO_ENGINE="fake") as (address, process):
        body = {
            "user": "ann",
            "framework": "pytorch",
            "name": "big",
            "code": {"inline": "print(1)"},
        }
        made = httpx.post(f"{address}/api/v1/namespaces/team/jobs", json=body).json()
        log = base / f"logs/fake/team/big-{made['uid']}/logs/0/big-node-0-0/node.log"
        line = b"Epoch 1, Batch 10/47, Loss: 2.1\n"
        part = base / "part.log"
        with part.open("wb") as file:
            for _ in range(size >> 20):
                file.write(line * ((1 << 20) // len(line)))
            file.flush()
            os.fsync(file.fileno())  # so that the disk does not write beside us
        log.parent.mkdir(parents=True)
        part.rename(log)
        url = f"{address}/api/v1/namespaces/team/jobs/big/logs?rank=0"
        before = _resident(process)

        def ours() -> float:
            start = time.perf_counter()
            subprocess.run([*_ON_OUR_CORE, "curl", "-so", "/dev/null", url], check=True)
            return size / 1e6 / (time.perf_counter() - start)

        def peer() -> float:
            start = time.perf_counter()
            copy = f"cat {log} | cat > /dev/null"
            subprocess.run([*_ON_OUR_CORE, "sh", "-c", copy], check=True)
            return size / 1e6 / (time.perf_counter() - start)

        yield {
            "id": "http log download, 256 MB, while its numbers are read",
            "unit": "MB/s",
            "goal": "",
            "ours": round(ours(), 1),
            "peer": None,
            "n": 1,
        }
        _until_idle(process)
        yield {
            "id": "http log download, 256 MB",
            "unit": "MB/s",
            "goal": ">= 300, +32 MB",
            **comparison(*interleaved(ours, peer, ROUNDS)),
            "peer_command": "cat | cat",
            "memory_mb": round(_resident(process) - before, 1),
        }


def _until_idle(process: subprocess.Popen[str]) -> None:
    """Returns when the server has nothing to do: no CPU time worth mentioning in half a second."""
    before = -1.0
    while _cpu_seconds(process) - before > 0.02:
        before = _cpu_seconds(process)
        time.sleep(0.5)


async def _fill(data: Path, size: int) -> None:
    data.mkdir(parents=True)
    store = await Store.open(f"sqlite:///{data / 'astrago.db'}")
    for first in range(0, size, 1000):
        news = (
            a_new_job(
                f"job-{number}",
                phase="Complete",
                outcome="Complete",
                is_handed=True,
                is_reaped=True,
                started_at=1.8e9,
                finished_at=1.8e9,
                settled_at=1.8e9,
            )
            for number in range(first, min(first + 1000, size))
        )
        await asyncio.gather(*(store.write(insert_jobs, new) for new in news))
    await store.close()


@contextmanager
def _server(
    data: Path, *, pinned: bool = True, **variables: str
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "astrago_trainer", "up", "--port", "0", "--data", str(data)]
    environment = {**os.environ, "ASTRAGO_ENGINE": "fake", **variables}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    try:
        if pinned:
            os.sched_setaffinity(process.pid, {0})
        address = process.stdout.readline().split()[3]
        yield address, process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _peer() -> Iterator[str]:
    port = 18431
    process = subprocess.Popen([sys.executable, "-c", _PEER, str(port)])
    try:
        os.sched_setaffinity(process.pid, {0})
        address = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx.get(address)
                break
            except httpx.ConnectError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait()


def load(
    address: str,
    path: str,
    *,
    token: str = "",
    connections: int = CONNECTIONS,
    seconds: float = SECONDS,
) -> tuple[float, list[float]]:
    """Requests a second, and the times of some."""
    count, times = _client("read", address, path, str(seconds), str(connections), token)
    return count / seconds, times


def _client(*words: str) -> Any:
    """What a client of ours says, in a process that has a core of its own."""
    command = [sys.executable, "-m", "bench.api", *words]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class _Client(asyncio.Protocol):
    """Asks again as soon as it has the whole answer, which is as long as the first."""

    def __init__(self, request: bytes, times: list[float], is_over: Callable[[], bool]) -> None:
        self._request = request
        self._times = times
        self._is_over = is_over
        self._held = b""
        self._length = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._held += data
        if not self._length:
            head, _, _ = self._held.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            marker = b"content-length: "
            at = head.index(marker) + len(marker)
            self._length = len(head) + 4 + int(head[at:].split(b"\r\n")[0])
        if len(self._held) >= self._length:
            self._times.append(time.perf_counter() - self._begin)
            self._held = b""
            if self._is_over():
                self._transport.close()
            else:
                self._ask()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(None)

    def _ask(self) -> None:
        self._begin = time.perf_counter()
        self._transport.write(self._request)


async def _ask_for(
    address: str, path: str, seconds: float, connections: int, token: str
) -> list[float]:
    host, _, port = address.removeprefix("http://").partition(":")
    who = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\n{who}\r\n".encode()
    times: list[float] = []
    end = time.perf_counter() + seconds
    loop = asyncio.get_running_loop()
    clients = [
        (
            await loop.create_connection(
                lambda: _Client(request, times, lambda: time.perf_counter() > end), host, int(port)
            )
        )[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*(client.closed for client in clients))
    return times


def _growth(costs: list[float]) -> float:
    points = [(math.log(size), math.log(cost)) for size, cost in zip(SIZES, costs, strict=True)]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope: float = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return round(slope, 3)


def _resident(process: subprocess.Popen[str]) -> float:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def _cpu_seconds(process: subprocess.Popen[str]) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _main(kind: str, address: str, *words: str) -> Any:
    import uvloop

    os.sched_setaffinity(0, {_OUR_CORE})
    if kind == "submit":
        return uvloop.run(_submit_many(address, words[0], int(words[1])))
    path, seconds, connections, token = words
    found = sorted(uvloop.run(_ask_for(address, path, float(seconds), int(connections), token)))
    # Every so many of them, in their order: the percentiles are the same, and it fits into a pipe.
    return [len(found), [round(each, 6) for each in found[:: len(found) // 2000 + 1]]]


if __name__ == "__main__":
    print(json.dumps(_main(*sys.argv[1:])))
