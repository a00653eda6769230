"""Two servers under steady work with a fault every minute: `python -m tests.server.soak --minutes 240`.

Clients submit, read and delete; each submit has a key and is repeated until it is answered. One server is killed again
and again; the other one lives from the first minute to the last, and its memory must not grow. Every accepted job must
end, having run once for each of its attempts. A table, "N passed, M failed", and the exit status 1 when something
failed. The seed decides the order of the faults.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from astrago_trainer.engines.local.folder import is_alive, read_json
from tests.engines.ending import end_jobs
from tests.figures import Table, memory_of, slope
from tests.server.serving import JOBS, PATIENCE, Process

DISK = "128m"
ANSWER_SECONDS = 15.0
RETRY_SECONDS = 0.2
NO_SPACE = "[Errno 28]"
"""In the message of a job that a full disk has failed: it says so, and is not lost."""
LOST_LOOKS = 5
"""So often in a row, a second apart, an accepted job must be missing to be lost: servers may be a second behind."""
WARM_UP = 0.25
"""The share of the time after which memory counts."""
SLOPE_MINUTES = 60.0
"""A line through less says nothing about an hour."""
MOST_SHOWN = 10


@dataclass(frozen=True)
class Plan:
    seconds: float
    fault_every: float = 60.0
    submit_every: float = 0.25
    pause: float = 5.0
    lock: float = 3.0
    memory_slope: float = 1.0
    """Megabytes an hour."""
    most_growth: float = 40.0
    """Megabytes from the end of the warm-up, where the time is too short for a slope."""


@dataclass
class Job:
    """One that was accepted."""

    uid: str
    misses: int = 0
    is_deleted: bool = False


@dataclass
class Found:
    faults: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    phases: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Answers of 5xx other than 503."""
    starved: int = 0
    """Jobs that failed because the disk was full."""
    tracebacks: list[str] = field(default_factory=list)
    """Of the scheduler and the servers."""
    memory: list[tuple[float, float]] = field(default_factory=list)
    """Hours and megabytes of the server that lives on."""


class Soak:
    def __init__(self, folder: Path, data: Path, plan: Plan, seed: int, *, may_fill: bool) -> None:
        self._data = data
        self._starts = folder / "starts"
        self._starts.touch()
        self._plan = plan
        self._chance = random.Random(seed)
        self._may_fill = may_fill
        self._variables = {"ASTRAGO_LOCAL_CPUS": "2"}
        self.steady = Process(data, **self._variables)
        self._weak = Process(data, **self._variables)
        self._starting: asyncio.Task[None] | None = None
        self._jobs: dict[str, Job] = {}
        self._number = 0
        self.found = Found()

    async def run(self) -> None:
        async with httpx.AsyncClient(timeout=ANSWER_SECONDS) as client:
            tasks = [
                asyncio.create_task(work)
                for work in (
                    self._submit(client), self._read(client), self._verify(client), self._sample(), self._inject(),
                )
            ]  # fmt: skip
            try:
                done, _ = await asyncio.wait(tasks, timeout=self._plan.seconds)
                for task in done:  # none of them ends but by an error
                    task.result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if self._starting is not None:
                    await self._starting
            self._continue()
            await self._finish(client)

    def close(self) -> None:
        self._continue()
        for each in (self.steady, self._weak):
            if each.process.poll() is None:
                each.kill()
            assert each.process.stdout is not None
            each.process.stdout.close()
        end_jobs(self._data)

    async def _finish(self, client: httpx.AsyncClient) -> None:
        """All that was accepted ends, and nothing is left of what was deleted."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                if not await self._look(client):
                    return
            await asyncio.sleep(0.5)
        self.found.lost += [name for name, job in self._jobs.items() if not job.is_deleted]

    def read_logs(self) -> None:
        """What processes have written that nobody asked."""
        for path in (self._data / "scheduler.log", self.steady.stderr):
            text = path.read_text(errors="replace") if path.exists() else ""
            parts = text.split("Traceback (most recent call last):")[1:]
            self.found.tracebacks += [f"{path.name}: {part[:1500].strip()}" for part in parts]

    async def _submit(self, client: httpx.AsyncClient) -> None:
        while True:
            self._number += 1
            name = f"job{self._number}"
            seconds = self._chance.choice((0, 0.2, 1))
            body = {
                "name": name,
                "user": "ann",
                "framework": "pytorch",
                "command": f"bash -c 'echo {name} >> {self._starts}; sleep {seconds}'",
                "resources": {"cpu": "1", "memory": "16Mi"},
                "max_restarts": 3,
            }
            headers = {"Idempotency-Key": name}
            answer = await self._ask(client, "POST", JOBS, json=body, headers=headers)
            self._jobs[name] = Job(answer.json()["uid"])
            await asyncio.sleep(self._plan.submit_every)

    async def _read(self, client: httpx.AsyncClient) -> None:
        while True:
            names = [name for name, job in self._jobs.items() if not job.is_deleted]
            if names:
                path = f"{JOBS}/{self._chance.choice(names)}"
                for each in (path, path + "/logs", path + "/events"):
                    await self._ask(client, "GET", each)
            await asyncio.sleep(0.1)

    async def _verify(self, client: httpx.AsyncClient) -> None:
        while True:
            await self._look(client)
            await asyncio.sleep(1.0)

    async def _look(self, client: httpx.AsyncClient) -> int:
        """Judges jobs that are over, and deletes them; how many that were accepted are there still."""
        page = (await self._ask(client, "GET", JOBS + "?limit=500")).json()["items"]
        there = {each["name"]: each for each in page}
        if len(there) < len(page):
            self.found.doubled.append(f"{len(page) - len(there)} names are listed twice")
        lines = Counter(self._starts.read_text().split())
        for name, job in list(self._jobs.items()):
            seen = there.get(name)
            if seen is None:
                job.misses += 1
                if job.is_deleted:
                    del self._jobs[name]
                elif job.misses == LOST_LOOKS:
                    self.found.lost.append(f"{name} is not there any more")
                    job.is_deleted = True
                continue
            job.misses = 0
            if seen["uid"] != job.uid:
                self.found.doubled.append(f"{name} is {seen['uid']}, and {job.uid} was accepted")
            if not job.is_deleted and seen["phase"] in ("Complete", "Failed"):
                self._judge(name, seen, lines[name])
                await self._ask(client, "DELETE", f"{JOBS}/{name}")
                job.is_deleted = True
        return len(self._jobs)

    def _judge(self, name: str, seen: dict[str, Any], starts: int) -> None:
        self.found.phases[seen["phase"]] += 1
        if seen["phase"] == "Failed" and NO_SPACE in seen["message"] and self._may_fill:
            self.found.starved += 1
        elif seen["phase"] == "Failed":
            self.found.lost.append(f"{name} failed: {seen['reason']} {seen['message'][:200]}")
        elif not starts:
            self.found.lost.append(f"{name} is complete, and never ran")
        if starts > seen["attempt"] + 1 + (seen["run"] - 1) * 4:
            what = f"{name} ran {starts} times in run {seen['run']}, attempt {seen['attempt']}"
            self.found.doubled.append(what)

    async def _ask(
        self, client: httpx.AsyncClient, method: str, path: str, **options: Any
    ) -> httpx.Response:
        """Repeated until a server answers otherwise than with 503; each time the other one is asked."""
        while True:
            server = self._chance.choice((self.steady, self._weak))
            try:
                answer = await client.request(method, server.address + path, **options)
            except httpx.TransportError:
                self.found.statuses["no answer"] += 1
            else:
                self.found.statuses[str(answer.status_code)] += 1
                if answer.status_code > 503 or answer.status_code in (500, 501, 502):
                    text = f"{method} {path}: {answer.status_code} {answer.text[:200]}"
                    self.found.broken.append(text)
                # A read may come to a job that was deleted meanwhile, or that the other server does not know yet.
                is_over = answer.status_code < 300 or (answer.status_code == 404 and method != "POST")  # fmt: skip
                if is_over:
                    return answer
                if answer.status_code < 500:
                    self.found.broken.append(f"{method} {path}: {answer.status_code} {answer.text[:200]}")  # fmt: skip
            await asyncio.sleep(RETRY_SECONDS)

    async def _sample(self) -> None:
        begin = time.monotonic()
        while True:
            hours = (time.monotonic() - begin) / 3600
            self.found.memory.append((hours, memory_of(self.steady.process.pid)))
            await asyncio.sleep(min(5.0, self._plan.seconds / 50))

    async def _inject(self) -> None:
        faults: list[Callable[[], Awaitable[bool]]] = [
            self._kill_server, self._kill_scheduler, self._kill_supervisor, self._pause_server, self._lock_database,
        ]  # fmt: skip
        if self._may_fill:
            faults.append(self._fill_disk)
        while True:
            self._chance.shuffle(faults)
            for fault in faults:
                await asyncio.sleep(self._plan.fault_every)
                name = fault.__name__.strip("_").replace("_", " ")
                self.found.faults[name if await fault() else f"{name}: there was none"] += 1

    async def _kill_server(self) -> bool:
        self._weak.kill()
        assert self._weak.process.stdout is not None
        self._weak.process.stdout.close()
        # To its end: a process that is being started must be known to be ended.
        self._starting = asyncio.create_task(self._start_weak())
        await asyncio.shield(self._starting)
        return True

    async def _start_weak(self) -> None:
        self._weak = await asyncio.to_thread(Process, self._data, **self._variables)

    async def _kill_scheduler(self) -> bool:
        """There is one while jobs wait, which is a matter of moments."""
        end = time.monotonic() + self._plan.fault_every
        while time.monotonic() < end:
            if _kill(self._data / "scheduler.json"):
                return True
            await asyncio.sleep(0.02)
        return False

    async def _kill_supervisor(self) -> bool:
        paths = sorted(self._data.glob("jobs/*/*/supervisor.json"))
        self._chance.shuffle(paths)
        return any(_kill(path) for path in paths)

    async def _pause_server(self) -> bool:
        server = self._chance.choice((self.steady, self._weak))
        server.process.send_signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self._plan.pause)
        finally:
            server.process.send_signal(signal.SIGCONT)
        return True

    async def _lock_database(self) -> bool:
        def lock() -> None:
            path = self._data / "astrago.db"
            with closing(sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)) as other:
                other.execute("BEGIN EXCLUSIVE")
                time.sleep(self._plan.lock)
                other.execute("ROLLBACK")

        await asyncio.to_thread(lock)
        return True

    async def _fill_disk(self) -> bool:
        path = self._data.parent / "filler"
        try:
            with path.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(1 << 16))
            await asyncio.sleep(self._plan.lock)
        finally:
            path.unlink()
        return True

    def _continue(self) -> None:
        """A server that was being paused goes on."""
        for each in (self.steady, self._weak):
            if each.process.poll() is None:
                each.process.send_signal(signal.SIGCONT)

    def table(self, seed: int) -> Table:
        found, table = self.found, Table()
        for line in (found.lost + found.doubled + found.broken + found.tracebacks)[:MOST_SHOWN]:
            table.lines.append(line)
        table.note("seed", seed)
        table.note("minutes", f"{self._plan.seconds / 60:.1f}")
        for name, count in sorted(found.faults.items()):
            table.note(f"fault: {name}", count)
        for name, count in sorted(found.statuses.items()):
            table.note(f"answers: {name}", count)
        for name, count in sorted(found.phases.items()):
            table.note(f"jobs: {name}", count)
        table.note("jobs that a full disk has failed", found.starved)
        table.note("tracebacks in logs", len(found.tracebacks))
        table.check("faults", str(found.faults.total()), found.faults.total() > 0, "at least 1")
        table.check("jobs over", str(found.phases.total()), found.phases.total() > 0, "at least 1")
        table.equal("lost", len(found.lost), 0)
        table.equal("doubled", len(found.doubled), 0)
        table.equal("answers that are faults of a server", len(found.broken), 0)
        self._add_memory(table)
        return table

    def _add_memory(self, table: Table) -> None:
        after = self.found.memory[int(len(self.found.memory) * WARM_UP) :]
        if not after:
            return
        first, last = after[0][1], after[-1][1]
        table.note("memory after the warm-up, at the end", f"{first:.1f}, {last:.1f} MB")
        rate = slope(after)
        if self._plan.seconds >= SLOPE_MINUTES * 60:
            table.at_most("growth of memory", rate, self._plan.memory_slope, " MB/h")
        else:
            table.note("growth of memory", f"{rate:.1f} MB/h")
            table.at_most("growth in this short time", last - first, self._plan.most_growth, " MB")


def _kill(path: Path) -> bool:
    who = read_json(str(path))
    if not is_alive(who):
        return False
    assert who is not None
    with suppress(ProcessLookupError):
        os.kill(who["pid"], signal.SIGKILL)
        return True
    return False


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system that a fault can fill; None where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "astrago", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def run_campaign(folder: Path, plan: Plan, seed: int) -> Table:
    with ExitStack() as stack:
        disk = stack.enter_context(small_disk(folder / "disk"))
        data = (disk or folder) / "data"
        soak = Soak(folder, data, plan, seed, may_fill=disk is not None)
        stack.callback(soak.close)
        asyncio.run(soak.run())
        soak.read_logs()
        return soak.table(seed)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=240)
    parser.add_argument("--fault-seconds", type=float, default=60, help="between two faults")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    plan = Plan(options.minutes * 60, options.fault_seconds)
    with tempfile.TemporaryDirectory(prefix="astrago-soak-") as folder:
        return run_campaign(Path(folder), plan, options.seed).print()


if __name__ == "__main__":
    sys.exit(main())
