"""The local engine beside torchrun and bare python: from the request to user code, and from a kill to the next step.

Both sides run the same script of the same environment on two nodes of this machine. Times come from one clock: the
script prints `time_ns`, and who submits holds the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from cluster.frameworks import environment

from astrago_trainer import catalogue
from astrago_trainer.core.lifecycle import is_terminal
from astrago_trainer.core.preview import preview_job
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.base import Effective, Handle
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import identity
from astrago_trainer.engines.local.plan import Images
from astrago_trainer.logs.follow import LogHub
from bench.launcher import free_port, two_nodes
from bench.logs import WRITER
from bench.measure import comparison, interleaved

ROUNDS = 15
JOBS = 50
GOODPUT_SECONDS = int(os.environ.get("ASTRAGO_GOODPUT_SECONDS", "300"))
KILL_EVERY = 30.0
CAP_SECONDS = 60.0
"""A recovery that takes longer counts as this long: torchrun's ranks sometimes miss each other again and again."""
_numbers = itertools.count()

IMPORTS = "import time, torch.distributed\nprint('imported', time.time_ns(), flush=True)\n"
TRIVIAL = "import time\nprint('imported', time.time_ns(), flush=True)\n"
STEPS = r"""
import datetime, os, time
import torch, torch.distributed as dist
folder = os.environ["FOLDER"]
pause = float(os.environ["PAUSE"])
steps = int(os.environ["STEPS"])
torch.manual_seed(0)
torch.set_num_threads(1)
# After a restart torchrun's ranks can wait for each other's old addresses; the usual 30 minutes would hide that.
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
rank = dist.get_rank()
model = torch.nn.Linear(64, 64)
newest = os.path.join(folder, "newest.pt")
first = 0
if os.path.exists(newest):
    state = torch.load(newest)
    model.load_state_dict(state["model"])
    first = state["step"]
for step in range(first, steps):
    begin = time.monotonic()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
        dist.all_reduce(parameter.grad)
        parameter.data -= 1e-3 * parameter.grad
    time.sleep(pause)
    if rank == 0:
        torch.save({"model": model.state_dict(), "step": step + 1}, newest + ".part")
        os.replace(newest + ".part", newest)
    dist.barrier()
    with open(os.path.join(folder, f"steps-{rank}"), "a") as file:
        file.write(f"{step} {time.time_ns()} {os.getpid()} {time.monotonic() - begin}\n")
dist.destroy_process_group()
os._exit(0)
"""


def run() -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        bench = _Bench(Path(folder))
        with asyncio.Runner() as runner:
            bench.runner = runner
            try:
                yield bench.trivial()
                yield bench.launch(warm=False)
                yield bench.launch(warm=True)
                yield bench.recover(warm=False)
                yield bench.recover(warm=True)
                yield bench.goodput(warm=False)
                yield bench.goodput(warm=True)
                yield bench.log_lag()
                yield bench.fifty()
            finally:
                bench.close()


class _Bench:
    runner: asyncio.Runner

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = environment("torch") / "bin"
        images = Images(str(self.programs))
        self.cold = LocalEngine(folder / "cold", images=images, warm="")
        self.warm = LocalEngine(folder / "warm", images=images, warm="torch")
        self._ready: set[bool] = set()

    def close(self) -> None:
        for engine in (self.cold, self.warm):
            assert engine.pool is not None
            self.runner.run(engine.pool.close())

    def engine(self, *, warm: bool) -> LocalEngine:
        """As a server has it: `cold` means without torch, not without a process to fork supervisors from."""
        engine = self.warm if warm else self.cold
        if warm not in self._ready:
            assert engine.pool is not None
            zygote = self.runner.run(engine.pool.warm_up(str(self.programs)))
            if not zygote.is_ready:
                raise RuntimeError(zygote.trouble)
            self._ready.add(warm)
        return engine

    # --- launch

    def trivial(self) -> dict[str, Any]:
        script = self.folder / "trivial.py"
        script.write_text(TRIVIAL)
        bare = [str(self.programs / "python"), str(script)]
        engine = self.engine(warm=False)
        mine, theirs = interleaved(
            lambda: self._submit(engine, TRIVIAL, nodes=1),
            lambda: _imported_ms([(bare, {})]),
            ROUNDS,
        )
        more = statistics.median(mine) - statistics.median(theirs)
        return {
            "id": "local submit to first line, trivial script",
            "unit": "ms",
            "goal": "<= 60 more than bare python",
            "more": round(more, 1),
            "peer_command": "python trivial.py",
            **comparison(mine, theirs),
        }

    def launch(self, *, warm: bool) -> dict[str, Any]:
        script = self.folder / "imports.py"
        script.write_text(IMPORTS)
        engine = self.engine(warm=warm)
        torchrun = [str(self.programs / "torchrun"), str(script)]
        mine, theirs = interleaved(
            lambda: self._submit(engine, IMPORTS, nodes=2),
            lambda: _imported_ms(two_nodes(torchrun)),
            ROUNDS,
        )
        assert engine.pool is not None
        pool = engine.pool.describe()
        return {
            "id": f"local submit to torch imported, 2 nodes, {'warm' if warm else 'cold'}",
            "unit": "ms",
            "goal": "<= 0.10" if warm else "<= 0.60",
            "peer_command": "torchrun on both nodes",
            **comparison(mine, theirs),
            "pool_mb": round(pool[0]["memory_bytes"] / 1e6),
        }

    def _submit(self, engine: LocalEngine, script: str, *, nodes: int) -> float:
        begin = time.time_ns()
        return self.runner.run(self._submit_and_wait(engine, begin, script, nodes))

    async def _submit_and_wait(
        self, engine: LocalEngine, begin: int, script: str, nodes: int
    ) -> float:
        handle = await _apply(engine, code={"inline": script}, nodes=nodes)
        await _until_over(engine, handle)
        texts = [_log(engine, handle, rank) for rank in range(nodes)]
        await engine.stop(handle)
        return max(int(re.findall(r"imported (\d+)", text)[0]) - begin for text in texts) / 1e6

    # --- recovery

    def recover(self, *, warm: bool) -> dict[str, Any]:
        engine = self.engine(warm=warm)
        mine, theirs = interleaved(
            lambda: self.runner.run(self._recover_ours(engine)),
            self._recover_torchrun,
            ROUNDS,
        )
        return {
            "id": f"local kill -9 of a rank to the next step, 2 nodes, {'warm' if warm else 'cold'}",
            "unit": "ms",
            "goal": "<= 0.4" if warm else "<= 0.9",
            "peer_command": "torchrun --max-restarts, c10d, on both nodes",
            **comparison(mine, theirs),
            "capped": [sum(ms >= CAP_SECONDS * 1000 for ms in each) for each in (mine, theirs)],
        }

    async def _recover_ours(self, engine: LocalEngine) -> float:
        folder = self._fresh_folder()
        async with self._steps(engine, folder, pause=0.02, steps=100000):
            return await _kill_and_wait(folder)

    def _recover_torchrun(self) -> float:
        folder = self._fresh_folder()
        script = self.folder / "steps.py"
        script.write_text(STEPS)
        with _torchrun_group(self.programs, script, folder):
            return self.runner.run(_kill_and_wait(folder))

    @contextlib.asynccontextmanager
    async def _steps(
        self, engine: LocalEngine, folder: Path, *, pause: float, steps: int
    ) -> AsyncIterator[Handle]:
        variables = {"FOLDER": str(folder), "PAUSE": str(pause), "STEPS": str(steps)}
        handle = await _apply(
            engine,
            code={"inline": STEPS},
            nodes=2,
            env=[{"name": name, "value": value} for name, value in variables.items()],
            max_restarts=1000,
        )
        try:
            yield handle
        finally:
            await engine.stop(handle)

    def _fresh_folder(self) -> Path:
        folder = self.folder / f"steps-{next(_numbers)}"
        folder.mkdir()
        return folder

    def goodput(self, *, warm: bool) -> dict[str, Any]:
        engine, folder = self.engine(warm=warm), self._fresh_folder()
        wall, useful, kills = self.runner.run(self._goodput(engine, folder))
        return {
            "id": f"local goodput, a kill every {KILL_EVERY:g} s, {'warm' if warm else 'cold'}",
            "unit": "",
            "goal": ">= 0.90",
            "ours": round(useful / wall, 3),
            "peer": None,
            "seconds": round(wall),
            "kills": kills,
            "n": 1,
        }

    async def _goodput(self, engine: LocalEngine, folder: Path) -> tuple[float, float, int]:
        """Time in steps that counted, of the time from the first step to the last: repeated steps do not count."""
        kills = 0
        async with self._steps(engine, folder, pause=0.1, steps=10**9):
            await _next_step(folder, after=0)
            begin = time.monotonic()
            while time.monotonic() - begin < GOODPUT_SECONDS:
                await asyncio.sleep(KILL_EVERY)
                os.kill(_newest_step(folder, 1)[2], signal.SIGKILL)
                kills += 1
            wall = time.monotonic() - begin
        lasts = {int(line.split()[0]): float(line.split()[3]) for line in _lines(folder, 0)}
        return wall, sum(lasts.values()), kills

    # --- logs and numbers

    def log_lag(self) -> dict[str, Any]:
        lags, cpu = self.runner.run(self._log_lag())
        return {
            "id": "local log lag p99 of a job, 10,000 lines/s, 8 followers",
            "unit": "ms",
            "goal": "<= 100",
            "ours": round(sorted(lags)[len(lags) * 99 // 100] / 1e6, 1),
            "peer": None,
            "supervisor_cpu_s": round(cpu, 2),
            "n": 1,
        }

    async def _log_lag(self) -> tuple[list[int], float]:
        lines = 50_000
        command = f"exec python -c {_quoted(WRITER)} {lines}"
        handle = await _apply(self.cold, command=command, nodes=1)
        log = self.cold.logs(handle) / f"logs/0/{handle.name}-node-0-0/node.log"
        hub, done = LogHub(), asyncio.Event()
        lags: list[int] = []

        async def follow() -> None:
            async for chunk in hub.follow(log, done=done):
                now = time.time_ns()
                found = re.findall(rb"^(\d{19})", chunk.data, re.MULTILINE)
                lags.extend(now - int(stamp) for stamp in found)

        supervisor = _supervisor_pid(self.cold, handle)
        cpu = 0.0
        async with asyncio.TaskGroup() as group:
            for _ in range(8):
                group.create_task(follow())
            while not is_terminal((await self.cold.observe(handle)).phase):  # type: ignore[arg-type]
                cpu = max(cpu, _cpu_of(supervisor))
                await asyncio.sleep(0.05)
            done.set()
        hub.close()
        text = log.read_bytes()
        await self.cold.stop(handle)
        if len(re.findall(rb"^\d{19}", text, re.MULTILINE)) != lines:
            raise RuntimeError("lines were lost")
        return lags, cpu

    def fifty(self) -> dict[str, Any]:
        return self.runner.run(self._fifty())

    async def _fifty(self) -> dict[str, Any]:
        begin = time.monotonic()
        small = {"cpu": {"request": "1m"}, "memory": {"request": "1Mi"}}
        handles = [
            await _apply(self.cold, command="exec sleep 1000", nodes=1, resources=small)
            for _ in range(JOBS)
        ]
        running = 0
        while running < JOBS:
            phases = [(await self.cold.observe(each)).phase for each in handles]
            running = sum(phase == "Running" for phase in phases)
        started = time.monotonic() - begin
        pids = [_supervisor_pid(self.cold, each) for each in handles]
        news = asyncio.create_task(_listen(self.cold))
        own, theirs = time.process_time(), sum(_cpu_of(pid) for pid in pids)
        await asyncio.sleep(20)
        own, theirs = time.process_time() - own, sum(_cpu_of(pid) for pid in pids) - theirs
        news.cancel()
        memory = sum(_pss_of(pid) for pid in pids) / JOBS
        await asyncio.gather(*(self.cold.stop(each) for each in handles))
        left = [pid for pid in pids if identity(pid)]
        return {
            "id": f"local {JOBS} jobs at once, nothing happening",
            "unit": "% of a core",
            "goal": "<= 5",
            "ours": round(own / 20 * 100, 2),
            "peer": None,
            "supervisors_percent": round(theirs / 20 * 100, 2),
            "supervisor_mb": round(memory / 1e6, 1),
            "all_running_after_s": round(started, 1),
            "lost": JOBS - running + len(left),
            "n": 1,
        }


async def _listen(engine: LocalEngine) -> None:
    async for _ in engine.changes():
        pass


async def _apply(engine: LocalEngine, **request: Any) -> Handle:
    """As the service does it: rendered, merged, planned, handed over."""
    platform = catalogue.default_platform("2.3")
    number = next(_numbers)
    basis = {"user": "bench", "namespace": "bench", "framework": "pytorch", "name": f"b{number}"}
    spec = parse_job_spec({**basis, **request})
    runtime = catalogue.load_runtime(platform.default_runtimes[spec.framework])
    rendered = render(spec, runtime, platform)
    objects = preview_job(spec, runtime, platform).objects
    handle = Handle("bench", f"b{number}", f"{os.getpid()}-{number}")
    await engine.apply(handle, Effective(objects[0], rendered.objects, beside=objects[1:]))
    return handle


async def _until_over(engine: LocalEngine, handle: Handle) -> None:
    async for _ in engine.changes():
        seen = await engine.observe(handle)
        if seen.phase is not None and is_terminal(seen.phase):
            if seen.phase != "Complete":
                raise RuntimeError(f"{seen.reason}: {seen.message}")
            return


def _log(engine: LocalEngine, handle: Handle, rank: int) -> str:
    path = engine.logs(handle) / f"logs/0/{handle.name}-node-0-{rank}/node.log"
    return path.read_text(encoding="utf-8")


def _imported_ms(nodes: list[tuple[list[str], dict[str, str]]]) -> float:
    begin = time.time_ns()
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for command, more in nodes
    ]
    texts = [process.communicate()[0] for process in started]
    return max(int(re.findall(r"imported (\d+)", text)[0]) - begin for text in texts) / 1e6


@contextlib.contextmanager
def _torchrun_group(programs: Path, script: Path, folder: Path) -> Iterator[None]:
    variables = {"FOLDER": str(folder), "PAUSE": "0.02", "STEPS": "100000"}
    command = [
        *(str(programs / "torchrun"), "--nnodes=2", "--nproc-per-node=1", "--max-restarts=1000"),
        *("--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=bench"),
        str(script),
    ]
    started = [
        subprocess.Popen(
            command,
            env={**os.environ, **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    try:
        yield
    finally:
        for rank in range(2):
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(_newest_step(folder, rank)[2], signal.SIGKILL)
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _kill_and_wait(folder: Path) -> float:
    """Milliseconds from the kill of rank 1 to the next step that both have finished."""
    await _next_step(folder, after=0, count=5)
    victim = _newest_step(folder, 1)[2]
    now = time.time_ns()
    os.kill(victim, signal.SIGKILL)
    return (await _next_step(folder, after=now, others_than=victim) - now) / 1e6


async def _next_step(folder: Path, *, after: int, count: int = 1, others_than: int = 0) -> int:
    """When the first step after that moment was finished by new processes on both ranks."""
    deadline = time.monotonic() + CAP_SECONDS
    while time.monotonic() < deadline:
        ends = []
        for rank in range(2):
            found = [tuple(map(int, line.split()[:3])) for line in _lines(folder, rank)]
            later = [each for each in found if each[1] > after and each[2] != others_than]
            ends.append(later)
        if others_than:
            # Of rank 1: the one that was killed is gone, so a line of another process is a new one.
            if ends[1]:
                return ends[1][0][1]
        elif all(len(each) >= count for each in ends):
            return max(each[0][1] for each in ends)
        await asyncio.sleep(0.005)
    if others_than:
        return after + int(CAP_SECONDS * 1e9)
    raise RuntimeError(f"no first step within {CAP_SECONDS:g} s")


def _lines(folder: Path, rank: int) -> list[str]:
    path = folder / f"steps-{rank}"
    if not path.exists():
        return []
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()


def _newest_step(folder: Path, rank: int) -> tuple[int, int, int]:
    step, when, pid = _lines(folder, rank)[-1].split()[:3]
    return int(step), int(when), _machine_pid(int(pid), folder)


def _machine_pid(pid: int, folder: Path) -> int:
    """The number here of a process that calls itself so, perhaps in a namespace of its own."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = f"FOLDER={folder}".encode() in (path / "environ").read_bytes()
            if not is_ours and not _is_forked(path):
                continue
            numbers = re.search(r"^NSpid:(.*)$", (path / "status").read_text(), re.MULTILINE)
        except OSError:
            continue
        if numbers is not None and int(numbers[1].split()[-1]) == pid:
            return int(path.name)
    raise ProcessLookupError(pid)


def _is_forked(path: Path) -> bool:
    """A warm process shows the environment of its zygote."""
    return b"astrago_trainer.engines.local.zygote" in (path / "cmdline").read_bytes()


def _supervisor_pid(engine: LocalEngine, handle: Handle) -> int:
    import json

    return int(json.loads(Path(engine.folder(handle).supervisor).read_text())["pid"])


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_of(pid: int) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1]) * 1024  # type: ignore[index]


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)


if __name__ == "__main__":
    import json

    for line in run():
        print(json.dumps(line), flush=True)
    sys.exit(0)
