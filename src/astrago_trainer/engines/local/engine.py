"""Runs effective pods as processes of this machine, one supervisor per job.

Nothing of a job is in this object: it is all in the job's folder, so that any process, now or later, finds every job.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import platform
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import (
    GONE,
    TOO_LARGE,
    Ability,
    Amounts,
    Effective,
    Ended,
    EngineRejected,
    Event,
    Handle,
    Node,
    NodeShare,
    Observation,
    Pod,
    PodPhase,
    Shortfall,
)
from astrago_trainer.engines.local import fitting
from astrago_trainer.engines.local.folder import (
    JobFolder,
    is_alive,
    notice_name,
    read_json,
    write_json,
)
from astrago_trainer.engines.local.inherited import inherited
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.limits import MOST_PROCESSES, Limits
from astrago_trainer.engines.local.machine import this_machine
from astrago_trainer.engines.local.notices import Watch, remove_notice
from astrago_trainer.engines.local.plan import Images, make_plan
from astrago_trainer.engines.local.pool import WarmPool
from astrago_trainer.engines.local.processes import kill_marked

Json = dict[str, Any]

_PACKAGES = str(Path(__file__).parents[3])
_START = "import sys; sys.path[0] = {!r}; from astrago_trainer.engines.local.supervisor import main; main()"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Kubernetes calls them."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class LocalEngine:
    """The jobs of one data folder."""

    name: ClassVar[str] = "local"
    abilities = frozenset({Ability.SUSPEND, Ability.NODES})

    def __init__(
        self,
        data: Path,
        *,
        images: Images | None = None,
        isolation: str = "auto",
        node: str = "",
        warm: str | None = None,
        most_processes: int = MOST_PROCESSES,
    ) -> None:
        """`isolation`: view, plain, or auto for the view where it can be had.

        `most_processes`: of one container, where the kernel can hold it.

        `warm`: keep processes ready for the next job, with these modules imported (`torch`), or with none (empty). For
        servers: who starts one job and goes has no use for it.
        """
        self._data = data
        self.images = images or Images(str(Path(sys.executable).parent))
        self._isolation = isolation
        self._node = node or os.uname().nodename
        self._most_processes = most_processes
        self._oversize = fitting.read_oversize(os.environ)
        self._notices = str(data / "notices")
        self.pool = None if warm is None else WarmPool(data, warm, inherited(os.environ))
        data.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def apply(self, handle: Handle, effective: Effective) -> None:
        folder = self.folder(handle)
        if not os.path.exists(folder.plan):
            plan = self._fitted(make_plan(handle, effective, self.images), effective.job_set)
            installs = plan.pop("installs")
            Path(folder.path).mkdir(parents=True, exist_ok=True)
            if installs:
                write_json(folder.installs, {"installs": installs})
                os.chmod(folder.installs, 0o600)
            write_json(folder.plan, plan)
        status = read_json(folder.status)
        if effective.suspend:
            await self._suspend(folder, status)
        elif status is None or status["phase"] == Phase.SUSPENDED:
            await self._start_once(folder)
        elif not is_terminal(Phase(status["phase"])):
            await self._recover(folder)

    async def observe(self, handle: Handle) -> Observation:
        folder = self.folder(handle)
        if not os.path.exists(folder.plan):
            return GONE
        status = read_json(folder.status)
        if status is None:
            who = read_json(folder.supervisor)
            if who is None or is_alive(who):
                return Observation(Phase.PENDING, "Accepted", "its supervisor is about to start")
            return Observation(Phase.FAILED, "SupervisorFailed", _end_of_supervisor(folder))
        if not is_terminal(Phase(status["phase"])) and status["phase"] != Phase.SUSPENDED:
            await self._recover(folder)
            status = read_json(folder.status) or status
        return _observation(status, _events(folder))

    async def stop(self, handle: Handle) -> None:
        folder = self.folder(handle)
        plan = read_json(folder.plan)
        if plan is None:
            return
        await self._wish(folder, "stop")
        await asyncio.to_thread(_end_rest, handle.uid)
        await asyncio.to_thread(_forget, folder)
        remove_notice(f"{self._notices}/{notice_name(plan)}")

    async def changes(self) -> AsyncIterator[Handle]:
        watch = Watch(self._notices)
        try:
            while True:
                await _readable(watch.fileno())
                for name in watch.read():
                    yield Handle(*name.split("~", 2))
        finally:
            watch.close()

    def shortfall(self, job_set: Mapping[str, Any]) -> Shortfall | None:
        """What the JobSet asks for beyond this machine; None when it fits an empty one."""
        needs = fitting.needs_of(job_set)
        return fitting.shortfall(job_set, needs, this_machine(), self._oversize)

    async def nodes(self) -> list[Node]:
        """This machine."""
        return [await asyncio.to_thread(self._machine)]

    def logs(self, handle: Handle) -> Path:
        return Path(self.folder(handle).path)

    def claims(self, namespace: str) -> Path:
        """A folder for each claim of a namespace."""
        return self._data / "claims" / namespace

    def folder(self, handle: Handle) -> JobFolder:
        """Everything of a job; its logs, for one."""
        return JobFolder(
            str(self._data / "jobs" / handle.namespace / f"{handle.name}-{handle.uid}")
        )

    def _fitted(self, plan: Json, job_set: Mapping[str, Any]) -> Json:
        """The plan with what is counted of it; raises EngineRejected for a job that could never start."""
        machine, needs = this_machine(), fitting.needs_of(job_set)
        short = fitting.shortfall(job_set, needs, machine, self._oversize)
        if short is not None and short.is_refused:
            text = (
                f"{short}. Ask for less (all nodes count), or unset {fitting.VARIABLE} where astrago runs: "
                "then such jobs run with what there is."
            )
            raise EngineRejected(text, reason=TOO_LARGE)
        counted = fitting.squeezed(needs, machine)
        return {**plan, "needs": counted, "shortfall": "" if short is None else str(short)}

    def _machine(self) -> Node:
        machine = this_machine()
        shares = [self._share(uid, holds) for uid, holds in Ledger(str(self._data), machine).held()]
        return Node(
            name=self._node,
            is_ready=True,
            capacity=Amounts(machine["cpu"] / 1000, machine["memory"], len(machine["gpus"])),
            used=sum((each.amounts for each in shares), Amounts()),
            architecture=_ARCHITECTURES.get(os.uname().machine, os.uname().machine),
            os_image=_os_name(),
            shares=tuple(sorted(shares, key=lambda each: (each.namespace, each.job))),
        )

    def _share(self, uid: str, holds: Json) -> NodeShare:
        """The ledger knows a job by its uid alone; its folder has the rest."""
        amounts = Amounts(holds["cpu"] / 1000, holds["memory"], len(holds["gpus"]))
        for path in (self._data / "jobs").glob(f"*/*-{uid}"):
            folder = JobFolder(str(path))
            if (plan := read_json(folder.plan)) is not None:
                status = read_json(folder.status) or {"pods": []}
                pods = sum(each["phase"] == PodPhase.RUNNING for each in status["pods"])
                return NodeShare(plan["namespace"], plan["name"], pods, amounts)
        return NodeShare("", "", 0, amounts)

    async def _start_once(self, folder: JobFolder) -> None:
        """A supervisor, unless one runs or somebody else is about to start it."""
        with _lock(folder) as is_ours:
            if is_ours and not is_alive(read_json(folder.supervisor)):
                await self._start(folder)

    async def _start(self, folder: JobFolder) -> None:
        """Returns when the supervisor has its own process; only that one goes on."""
        Path(folder.wish).unlink(missing_ok=True)
        plan = read_json(folder.plan)
        assert plan is not None
        view = self._isolation in ("auto", "view")
        settings: Json = {
            "isolation": "view" if view else "plain",
            "isolation_reason": "each pod has its own view" if view else "plain, as configured",
            "data": str(self._data),
            "notices": self._notices,
            "claims": str(self.claims(plan["namespace"])),
            "machine": this_machine(),
            "node": self._node,
            "most_processes": self._most_processes,
            "path": _PATH,
            "inherited": inherited(os.environ),
        }
        command = (sys.executable, "-I", "-S", "-c", _START.format(_PACKAGES), folder.path)
        with open(folder.supervisor_log, "ab") as errors:
            if self.pool is not None and not os.path.exists(folder.installs):
                first = _environment_of(plan)
                if await self.pool.begin(first, folder.path, settings, errors.fileno()):
                    return
            process = await asyncio.create_subprocess_exec(
                *command,
                json.dumps(settings),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env=settings["inherited"],  # what is in its environment, the job can read
                cwd="/",
            )
        await process.wait()

    async def _suspend(self, folder: JobFolder, status: Json | None) -> None:
        if status is None:
            suspended = {"phase": Phase.SUSPENDED, "reason": "Suspended", "message": "", "pods": []}
            write_json(folder.status, suspended)
        elif not is_terminal(Phase(status["phase"])):
            await self._wish(folder, "suspend")

    async def _wish(self, folder: JobFolder, wish: str) -> None:
        """Tells the supervisor, and waits for its end."""
        Path(folder.wish).write_text(wish, encoding="utf-8")
        who = read_json(folder.supervisor)
        if who is None or not is_alive(who):
            return
        try:
            process = os.pidfd_open(who["pid"])
        except ProcessLookupError:
            return
        try:
            if is_alive(who):  # asked again: the handle cannot come to mean another process
                signal.pidfd_send_signal(process, signal.SIGUSR1)
                await _readable(process)
        finally:
            os.close(process)

    async def _recover(self, folder: JobFolder) -> None:
        """A job whose supervisor is gone without a word: what is left of it is ended, and it starts again."""
        if is_alive(read_json(folder.supervisor)):
            return
        with _lock(folder) as is_ours:
            if is_ours and not is_alive(read_json(folder.supervisor)):
                await self._restart(folder)

    async def _restart(self, folder: JobFolder) -> None:
        status, plan = read_json(folder.status), read_json(folder.plan)
        if status is None or plan is None or is_terminal(Phase(status["phase"])):
            return
        await asyncio.to_thread(_end_rest, plan["uid"])
        lost = {"reason": "SupervisorLost", "message": _end_of_supervisor(folder)}
        if status.get("restarts", 0) < plan["max_restarts"]:
            again = {"phase": Phase.RESTARTING, "next_attempt": 1, "is_failure": True}
            write_json(folder.status, {**status, **lost, **again})
            await self._start(folder)
        else:
            write_json(folder.status, {**status, **lost, "phase": Phase.FAILED})


@contextmanager
def _lock(folder: JobFolder) -> Iterator[bool]:
    """Whether it is ours to start the supervisor; another server, or another task, may be doing it."""
    handle = os.open(folder.path + "/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(handle)


def _end_rest(uid: str) -> None:
    """Whatever of the job its supervisor could not end: it was killed."""
    kill_marked(f"{uid}/")
    Limits().remove_all(f"{uid}/")


def _end_of_supervisor(folder: JobFolder) -> str:
    """What is known of it: a mistake of ours leaves a traceback, a kill leaves nothing."""
    said = Path(folder.supervisor_log).read_text(encoding="utf-8", errors="replace").strip()
    if said:
        return f"its supervisor broke: {said.splitlines()[-1]}; see {folder.supervisor_log}"
    return "its supervisor was ended from outside"


def _forget(folder: JobFolder) -> None:
    """All but the logs; the plan last, so that a stop that was cut short is known as one."""
    for entry in sorted(os.scandir(folder.path), key=lambda entry: entry.path == folder.plan):
        if entry.is_dir(follow_symlinks=False):
            if entry.name != "logs":
                shutil.rmtree(entry.path, ignore_errors=True)
        else:
            os.unlink(entry.path)


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:  # macOS has no such file
        return platform.system()


def _environment_of(plan: Json) -> str:
    """The one whose interpreter the job uses most: that of its first container."""
    programs: str = plan["groups"][0]["pod"]["containers"][0]["programs"]
    return programs.split(":")[0]


async def _readable(handle: int) -> None:
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    loop.add_reader(handle, told.set)
    try:
        await told.wait()
    finally:
        loop.remove_reader(handle)


def _events(folder: JobFolder) -> tuple[Event, ...]:
    try:
        lines = Path(folder.journal).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return ()
    return tuple(Event(**json.loads(line)) for line in lines)


def _observation(status: Json, events: tuple[Event, ...]) -> Observation:
    return Observation(
        Phase(status["phase"]),
        status["reason"],
        status["message"],
        attempt=status.get("attempt", 0),
        restarts=status.get("restarts", 0),
        max_restarts=status.get("max_restarts", 0),
        started_at=status.get("started_at"),
        ended_at=status.get("ended_at"),
        pods=tuple(
            Pod(
                each["name"],
                each["group"],
                each["index"],
                PodPhase(each["phase"]),
                each["restarts"],
                each["exit_code"],
                each["reason"],
                each.get("node"),  # a supervisor of an earlier release does not tell
                each.get("address"),
            )
            for each in status["pods"]
        ),
        events=events,
        ended=tuple(
            Ended(
                each["attempt"],
                each["time"],
                each["reason"],
                each["message"],
                Phase.FAILED if each["is_failure"] else Phase.SUSPENDED,
            )
            for each in status.get("ended", ())  # nor does such a supervisor tell of these
        ),
    )
