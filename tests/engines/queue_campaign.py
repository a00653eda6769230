"""Many jobs of many namespaces wait for one machine: `python -m tests.engines.queue_campaign --count 5000`.

All wait behind a job that holds the machine; then it ends. Each must run once, namespaces take turns, and each keeps
its order. The engine watches its jobs as a server does. A table, "N passed, M failed", and the exit status 1 when a
figure is beyond its limit. The seed decides the order in which the jobs are submitted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import secrets
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.engines.jobs import a_handle, effective
from tests.figures import Table, cpu_seconds_of, memory_of, percentile

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import Handle
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import read_json

SLOTS = 2
"""Jobs that the machine holds at a time."""
JOB = {"resources": {"requests": {"cpu": "1", "memory": "1Mi"}}}
ALL = {"resources": {"requests": {"cpu": str(SLOTS), "memory": "1Mi"}}}


@dataclass(frozen=True)
class Limits:
    memory: float = 300.0
    """Megabytes of the engine's process and the scheduler together."""
    idle: float = 0.02
    """Share of one core that both take while all jobs wait."""
    next_start: float = 0.1
    """Seconds from a freed share to the next start, p50 and p99 alike."""


@dataclass(frozen=True)
class Start:
    namespace: str
    number: int
    begin: float
    end: float


class Run:
    """The jobs of one data folder, from the first submit to the last end."""

    def __init__(
        self, folder: Path, count: int, namespaces: int, seed: int, idle_seconds: float
    ) -> None:
        self._folder = folder
        self._idle_seconds = idle_seconds
        self._order = folder / "order"
        self._engine = LocalEngine(folder / "data", isolation="plain")
        names = [f"ns{number}" for number in range(namespaces)]
        submits = [names[number % namespaces] for number in range(count)]
        random.Random(seed).shuffle(submits)
        # One namespace sends half of its jobs before anybody else: it must not gain by that.
        early = submits.count(names[0]) // 2
        rest = list(submits)
        for _ in range(early):
            rest.remove(names[0])
        self._submits = [names[0]] * early + rest
        self._handles: dict[Handle, Phase | None] = {}
        self._all_over = asyncio.Event()
        self.memory = 0.0
        self.idle = 0.0
        self.seconds: dict[str, float] = {}

    async def run(self, patience: float) -> None:
        watching = asyncio.create_task(self._watch())
        sampling = asyncio.create_task(self._sample())
        try:
            async with asyncio.timeout(patience):
                await self._submit_and_wait()
        finally:
            for task in (watching, sampling):
                task.cancel()
            await asyncio.gather(watching, sampling, return_exceptions=True)

    async def stop_all(self) -> None:
        """Ends what is left of a run that failed; nothing is left of one that did not."""
        for handle, phase in self._handles.items():
            if phase is None:
                await self._engine.stop(handle)

    async def _submit_and_wait(self) -> None:
        go_on = self._folder / "go-on"
        try:
            gate = f"until [ -e {go_on} ]; do sleep 0.05; done"
            await self._apply(a_handle("gate", "gate"), gate, ALL)
            begin, numbers = time.monotonic(), Counter[str]()
            for namespace in self._submits:
                number = numbers[namespace]
                numbers[namespace] += 1
                line = f'"{namespace} {number} $begin $EPOCHREALTIME"'
                script = f"begin=$EPOCHREALTIME; echo {line} >> {self._order}"
                await self._apply(a_handle(f"j{number}", namespace), script, JOB)
            self.seconds["submit"] = time.monotonic() - begin
            await self._measure_idle()
            begin = time.monotonic()
        finally:
            go_on.touch()
        await self._all_over.wait()
        self.seconds["run"] = time.monotonic() - begin

    async def _apply(self, handle: Handle, script: str, container: dict[str, object]) -> None:
        self._handles[handle] = None
        await self._engine.apply(handle, effective(script, container=container))

    async def _measure_idle(self) -> None:
        pids = (os.getpid(), self._scheduler())
        await asyncio.sleep(1.0)  # what the submits have left to do
        before, begin = sum(map(cpu_seconds_of, pids)), time.monotonic()
        await asyncio.sleep(self._idle_seconds)
        self.idle = (sum(map(cpu_seconds_of, pids)) - before) / (time.monotonic() - begin)

    async def _watch(self) -> None:
        """As the reconciler of a server: it looks at a job when the engine reports a change."""
        async for handle in self._engine.changes():
            if self._handles.get(handle, Phase.COMPLETE) is not None:
                continue
            seen = await self._engine.observe(handle)
            if isinstance(seen.phase, Phase) and is_terminal(seen.phase):
                self._handles[handle] = seen.phase
                if all(phase is not None for phase in self._handles.values()):
                    self._all_over.set()

    async def _sample(self) -> None:
        while True:
            both = memory_of(os.getpid()) + memory_of(self._scheduler())
            self.memory = max(self.memory, both)
            await asyncio.sleep(0.5)

    def _scheduler(self) -> int:
        who = read_json(str(self._folder / "data" / "scheduler.json"))
        return who["pid"] if who else 0

    def phases(self) -> Counter[str]:
        return Counter(str(phase) for phase in self._handles.values())

    def starts(self) -> list[Start]:
        """In their order."""
        lines = self._order.read_text().splitlines() if self._order.exists() else []
        fields = [line.split() for line in lines]
        return sorted(
            (Start(each[0], int(each[1]), float(each[2]), float(each[3])) for each in fields),
            key=lambda start: start.begin,
        )

    def ends(self) -> list[float]:
        """When each supervisor saw its job end; it gives its share back after that."""
        found = []
        for handle in self._handles:
            status = read_json(self._engine.folder(handle).status) or {}
            if handle.name != "gate" and status.get("ended_at"):
                found.append(float(status["ended_at"]))
        return sorted(found)


def unfairness(starts: list[Start]) -> int:
    """How far the counts of starts of any two namespaces are apart at most, while both have jobs that wait."""
    totals = Counter(start.namespace for start in starts)
    counts = Counter(dict.fromkeys(totals, 0))
    worst = 0
    for start in starts:
        counts[start.namespace] += 1
        waiting = [counts[name] for name in totals if counts[name] < totals[name]]
        if waiting:
            worst = max(worst, max(waiting) - min(waiting))
    return worst


def disorder(starts: list[Start]) -> int:
    """How far a job started before an earlier one of its namespace, at most."""
    worst = 0
    for name in {start.namespace for start in starts}:
        numbers = [start.number for start in starts if start.namespace == name]
        worst = max([worst, *(first - second for first, second in pairwise(numbers))])
    return worst


def next_starts(starts: list[Start], ends: list[float]) -> list[float]:
    """Seconds from each end to the first line of the job that got its share; all jobs are of one size."""
    return [
        later.begin - end
        for later, end in zip(starts[SLOTS:], ends, strict=False)
        if later.begin > end
    ]


async def measure(
    folder: Path,
    count: int,
    namespaces: int,
    seed: int,
    limits: Limits,
    *,
    patience: float,
    idle_seconds: float,
) -> Table:
    run = Run(folder, count, namespaces, seed, idle_seconds)
    table = Table()
    try:
        await run.run(patience)
    except TimeoutError:
        table.check("all jobs end in time", f"{patience:.0f} s", False, "no job is forgotten")
    finally:
        await run.stop_all()
    starts = run.starts()
    runs = Counter((start.namespace, start.number) for start in starts)
    table.note("seed", seed)
    table.note("jobs, namespaces", f"{count}, {namespaces}")
    for name, seconds in run.seconds.items():
        table.note(f"seconds to {name}", f"{seconds:.1f}")
    table.equal("jobs that ran", len(runs), count)
    table.equal("jobs that ran twice", sum(times > 1 for times in runs.values()), 0)
    table.equal("jobs that are complete", run.phases()[str(Phase.COMPLETE)], count + 1)
    # Jobs that start at once write their lines in any order.
    table.at_most("starts that namespaces are apart", unfairness(starts), 1 + SLOTS)
    table.at_most("jobs out of their namespace's order", disorder(starts), SLOTS)
    table.at_most("memory of engine and scheduler", run.memory, limits.memory, " MB")
    table.at_most("CPU while all wait", run.idle * 100, limits.idle * 100, " %")
    gaps = next_starts(starts, run.ends())
    for percent in (50, 99):
        found = percentile(gaps, percent) * 1000
        table.at_most(f"end to next start, p{percent}", found, limits.next_start * 1000, " ms")
    return table


def run_campaign(
    count: int,
    namespaces: int,
    seed: int,
    limits: Limits | None = None,
    *,
    patience: float = 3600.0,
    idle_seconds: float = 5.0,
) -> Table:
    # Read by the engine and inherited by nobody else: a small machine, whatever this one has.
    before = os.environ.get("ASTRAGO_LOCAL_CPUS")
    os.environ["ASTRAGO_LOCAL_CPUS"] = str(SLOTS)
    try:
        with tempfile.TemporaryDirectory(prefix="astrago-queue-") as folder:
            work = measure(
                Path(folder),
                count,
                namespaces,
                seed,
                limits or Limits(),
                patience=patience,
                idle_seconds=idle_seconds,
            )
            return asyncio.run(work)
    finally:
        os.environ.pop("ASTRAGO_LOCAL_CPUS")
        if before is not None:
            os.environ["ASTRAGO_LOCAL_CPUS"] = before


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--namespaces", type=int, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    return run_campaign(options.count, options.namespaces, options.seed).print()


if __name__ == "__main__":
    sys.exit(main())
