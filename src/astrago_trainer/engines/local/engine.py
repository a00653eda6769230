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
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
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
    EngineUnavailable,
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
    identity,
    is_alive,
    notice_name,
    read_json,
    write_json,
)
from astrago_trainer.engines.local.formats import UnreadableFile, read_plan
from astrago_trainer.engines.local.inherited import inherited
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.limits import MOST_PROCESSES, Limits
from astrago_trainer.engines.local.machine import this_machine
from astrago_trainer.engines.local.notices import Watch, remove_notice
from astrago_trainer.engines.local.plan import Images, make_plan
from astrago_trainer.engines.local.pool import WarmPool
from astrago_trainer.engines.local.processes import kill_marked
from astrago_trainer.engines.local.queue import Queue
from astrago_trainer.engines.local.scheduler import is_running
from astrago_trainer.engines.local.supervisor import NOT_ENOUGH_FREE, STOP_SIGNAL
from astrago_trainer.logs.limits import LogLimits

Json = dict[str, Any]

_PACKAGES = str(Path(__file__).parents[3])
_START = "import sys; sys.path[0] = {!r}; from astrago_trainer.engines.local.{} import main; main()"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""As Kubernetes calls them."""
UNREADABLE = "UnreadableJobFolder"
"""The reason of a job whose files are of another release, or broken."""
MOST_FAILED_STARTS = 8
"""Starts of a supervisor that ended before it did anything; then the job has failed."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds before such a start is repeated, twice as long each time."""
SIGNAL_SECONDS = 1.0
"""How often a supervisor that is just starting is asked to stop by a signal."""
DISK_SECONDS = 10.0
"""As often as the kubelet counts what pods have written."""
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
        log_limits: LogLimits = LogLimits(),  # noqa: B008 - a constant
        disk_seconds: float = DISK_SECONDS,
    ) -> None:
        """`isolation`: view, plain, or auto for the view where it can be had.

        `most_processes`: of one container, where the kernel can hold it.

        `disk_seconds`: how often it is checked what pods have written.

        `warm`: keep processes ready for the next job, with these modules imported (`torch`), or with none (empty). For
        servers: who starts one job and goes has no use for it.
        """
        self._data = data
        self.images = images or Images(str(Path(sys.executable).parent))
        self._isolation = isolation
        self._node = node or os.uname().nodename
        self._most_processes = most_processes
        self._log_limits = log_limits
        self._disk_seconds = disk_seconds
        self._wakes: dict[str, asyncio.TimerHandle] = {}
        self._oversize = fitting.read_oversize(os.environ)
        self._notices = str(data / "notices")
        self._queue = Queue(str(data))
        self.pool = None if warm is None else WarmPool(data, warm, inherited(os.environ))
        data.mkdir(parents=True, exist_ok=True, mode=0o700)

    async def apply(self, handle: Handle, effective: Effective) -> None:
        try:
            await self._apply(handle, effective)
        except UnreadableFile as error:
            raise EngineRejected(str(error), reason=UNREADABLE) from None
        except OSError as error:  # a full disk, or one that does not answer: asked again later
            raise _unavailable(error) from error

    async def _apply(self, handle: Handle, effective: Effective) -> None:
        folder = self.folder(handle)
        if not os.path.exists(folder.plan):
            plan = self._fitted(make_plan(handle, effective, self.images), effective.job_set)
            installs = plan.pop("installs")
            Path(folder.path).mkdir(parents=True, exist_ok=True)
            if installs:
                write_json(folder.installs, {"installs": installs}, mode=0o600)
            write_json(folder.plan, plan)
        status = read_json(folder.status)
        if effective.suspend:
            await self._suspend(folder, handle.uid, status)
        elif status is None or status["phase"] == Phase.SUSPENDED:
            await self._start_once(folder)
        elif not is_terminal(Phase(status["phase"])):
            await self._recover(folder, handle.uid)

    async def observe(self, handle: Handle) -> Observation:
        folder = self.folder(handle)
        if not os.path.exists(folder.plan):
            return GONE
        try:
            return await self._observe(folder, handle.uid)
        except UnreadableFile as error:
            await self._end_supervisor(folder)
            await asyncio.to_thread(_end_rest, handle.uid)
            return Observation(Phase.FAILED, UNREADABLE, str(error))
        except OSError as error:
            raise _unavailable(error) from error

    async def _observe(self, folder: JobFolder, uid: str) -> Observation:
        status = read_json(folder.status)
        if status is None:
            who = read_json(folder.supervisor)
            if who is None or is_alive(who):
                return Observation(Phase.PENDING, "Accepted", "its supervisor is about to start")
            return Observation(Phase.FAILED, "SupervisorFailed", _end_of_supervisor(folder))
        if not is_terminal(Phase(status["phase"])) and status["phase"] != Phase.SUSPENDED:
            await self._recover(folder, uid)
            status = read_json(folder.status) or status
        return _observation(status, _events(folder))

    async def stop(self, handle: Handle) -> None:
        folder = self.folder(handle)
        if not os.path.exists(folder.plan):
            return
        await self._leave_queue(folder, handle.uid)
        try:
            await self._wish(folder, "stop")
        except UnreadableFile:
            await self._end_supervisor(folder)
        await asyncio.to_thread(_end_rest, handle.uid)
        with suppress(OSError):  # a full disk: the ledger leaves out who has died
            await asyncio.to_thread(self._ledger().leave, handle.uid)
        await asyncio.to_thread(_forget, folder)
        name = notice_name(handle.namespace, handle.name, handle.uid)
        remove_notice(f"{self._notices}/{name}")

    async def changes(self) -> AsyncIterator[Handle]:
        watch = Watch(self._notices)
        try:
            while True:
                await _readable(watch.fileno())
                await self._ensure_scheduler()
                names = watch.read()
                for name in names:
                    if name.count("~") == 2:  # others are not of jobs
                        yield Handle(*name.split("~"))
                if "" in names:  # events were lost: the caller listens again and looks at all jobs
                    return
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
        held = Ledger(str(self._data), machine).held()
        shares = [self._share(each["uid"], each["holds"]) for each in held]
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
            with suppress(UnreadableFile):
                if (plan := read_plan(folder.plan)) is None:
                    continue
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
        """Starts the job if its share of the machine is free and no other job waits; else it waits in the queue."""
        plan = read_plan(folder.plan)
        assert plan is not None
        Path(folder.wish).unlink(missing_ok=True)
        uid, ledger = plan["uid"], self._ledger()
        if not self._queue.is_empty():
            short = await asyncio.to_thread(ledger.shortage, plan["needs"])
            message = short or "other jobs wait as well, and each starts in its turn"
            await self._enqueue(folder, plan, message)
            return
        share = ledger.notice(uid)
        granted = await asyncio.to_thread(ledger.take, uid, identity(os.getpid()) or {}, plan)
        if isinstance(granted, str):
            share.withdraw()
            await self._enqueue(folder, plan, granted)
            return
        try:
            await self._begin(folder, plan)
        finally:
            # Also after a failure: what a process holds that never was is free.
            who = read_json(folder.supervisor) or {}
            await asyncio.to_thread(ledger.assign, uid, who)
            share.close()

    async def _enqueue(self, folder: JobFolder, plan: Json, message: str) -> None:
        status = read_json(folder.status) or {"attempt": 0, "pods": []}
        waits = {"phase": Phase.QUEUED, "reason": NOT_ENOUGH_FREE, "message": message}
        await asyncio.to_thread(write_json, folder.status, {**status, **waits})
        entry: Json = {
            "folder": folder.path,
            "namespace": plan["namespace"],
            "settings": self._settings(plan),
        }
        if self.pool is not None and not os.path.exists(folder.installs):
            entry["zygote"] = self.pool.for_queue(_environment_of(plan))
        await asyncio.to_thread(self._queue.add, plan["uid"], entry)
        await self._ensure_scheduler()

    async def _ensure_scheduler(self) -> None:
        """Starts the process that starts waiting jobs, if any wait and it does not run; a second one ends by itself."""
        if self._queue.is_empty() or is_running(str(self._data)):
            return
        with open(self._data / "scheduler.log", "ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", "-c", _START.format(_PACKAGES, "scheduler")),
                str(self._data.absolute()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env=inherited(os.environ),
                cwd="/",
            )
        await process.wait()

    async def _leave_queue(self, folder: JobFolder, uid: str) -> bool:
        """Whether the job was waiting; it is not started from now on."""
        if not self._queue.has(uid):
            return False
        lock = await asyncio.to_thread(_wait_for_lock, folder)
        try:
            return self._queue.remove(uid)
        finally:
            os.close(lock)

    def _ledger(self) -> Ledger:
        return Ledger(str(self._data), this_machine())

    async def _begin(self, folder: JobFolder, plan: Json) -> None:
        """Returns when the supervisor has its own process; only that one goes on."""
        settings = self._settings(plan)
        command = (
            *(sys.executable, "-I", "-S", "-c", _START.format(_PACKAGES, "supervisor")),
            folder.path,
        )
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

    def _settings(self, plan: Json) -> Json:
        """Of a supervisor."""
        view = self._isolation in ("auto", "view")
        return {
            "isolation": "view" if view else "plain",
            "isolation_reason": "each pod has its own view" if view else "plain, as configured",
            "data": str(self._data),
            "notices": self._notices,
            "claims": str(self.claims(plan["namespace"])),
            "machine": this_machine(),
            "node": self._node,
            "most_processes": self._most_processes,
            "path": _PATH,
            "log_limits": self._log_limits._asdict(),
            "disk_seconds": self._disk_seconds,
            "inherited": inherited(os.environ),
        }

    async def _suspend(self, folder: JobFolder, uid: str, status: Json | None) -> None:
        if status is None:
            suspended = {"phase": Phase.SUSPENDED, "reason": "Suspended", "message": "", "pods": []}
            write_json(folder.status, suspended)
        elif await self._leave_queue(folder, uid):
            suspended = {"phase": Phase.SUSPENDED, "reason": "Suspended", "message": ""}
            write_json(folder.status, {**status, **suspended})
        elif not is_terminal(Phase(status["phase"])):
            await self._wish(folder, "suspend")

    async def _wish(self, folder: JobFolder, wish: str) -> None:
        """Tells the supervisor, and waits for its end."""
        call = signal.SIGUSR1
        try:
            Path(folder.wish).write_text(wish, encoding="utf-8")
        except OSError:
            if wish != "stop":
                raise
            call = STOP_SIGNAL  # a job can be removed from a full disk
        who = read_json(folder.supervisor)
        if who is None or not is_alive(who):
            return
        try:
            process = os.pidfd_open(who["pid"])
        except ProcessLookupError:
            return
        try:
            if is_alive(who):  # asked again: the handle cannot come to mean another process
                await _end(process, call)
        finally:
            os.close(process)

    async def _end_supervisor(self, folder: JobFolder) -> None:
        """End the supervisor of a job whose folder cannot be used."""
        with suppress(UnreadableFile, ProcessLookupError):
            who = read_json(folder.supervisor)
            if who is not None and is_alive(who):
                process = os.pidfd_open(who["pid"])
                try:
                    if is_alive(who):
                        await _end(process, signal.SIGKILL)
                finally:
                    os.close(process)

    async def _recover(self, folder: JobFolder, uid: str) -> None:
        """A job whose supervisor is gone without a word: what is left of it is ended, and it starts again."""
        if is_alive(read_json(folder.supervisor)):
            return
        if self._queue.has(uid):
            await self._ensure_scheduler()
            return
        with _lock(folder) as is_ours:
            if is_ours and not is_alive(read_json(folder.supervisor)):
                await self._restart(folder)

    async def _restart(self, folder: JobFolder) -> None:
        status, plan = read_json(folder.status), read_plan(folder.plan)
        if status is None or plan is None or is_terminal(Phase(status["phase"])):
            return
        # Starts since a supervisor last wrote how the job stands: it leaves these fields out.
        starts: int = status.get("starts", 0)
        left = status.get("next_start", 0.0) - time.time()
        if (
            starts and 0 < left <= LONGEST_PAUSE
        ):  # more, when the clock was set back: then it is due
            self._say_pause(folder, status)
            self._wake_later(folder, plan, left)
            return
        await asyncio.to_thread(_end_rest, plan["uid"])
        lost = {"reason": "SupervisorLost", "message": _end_of_supervisor(folder)}
        if starts > MOST_FAILED_STARTS:
            text = f"its supervisor ended at once {starts} times: {lost['message']}"
            failed = {"reason": "SupervisorFailed", "message": text, "phase": Phase.FAILED}
            write_json(folder.status, {**status, **failed})
        elif starts or status.get("restarts", 0) < plan["max_restarts"]:
            pause = min(FIRST_PAUSE * 2**starts, LONGEST_PAUSE)
            again = {"phase": Phase.RESTARTING, "next_attempt": 1, "is_failure": True}
            count = {"starts": starts + 1, "next_start": time.time() + pause}
            write_json(folder.status, {**status, **lost, **again, **count})
            await self._start(folder)
        else:
            write_json(folder.status, {**status, **lost, "phase": Phase.FAILED})

    def _say_pause(self, folder: JobFolder, status: Json) -> None:
        """In the job's status, once for each start that failed."""
        starts = status["starts"]
        if status.get("said") == starts:
            return
        text = (
            f"its supervisor ended at once {starts} times, and is started again at most "
            f"{MOST_FAILED_STARTS - starts + 1} times with longer pauses: {_end_of_supervisor(folder)}"
        )
        write_json(folder.status, {**status, "message": text, "said": starts})

    def _wake_later(self, folder: JobFolder, plan: Json, seconds: float) -> None:
        """Makes news of the job when its next start is due."""
        notice = f"{self._notices}/{notice_name(plan['namespace'], plan['name'], plan['uid'])}"

        def wake() -> None:
            self._wakes.pop(folder.path, None)
            if os.path.exists(folder.plan):
                with suppress(OSError):
                    os.close(os.open(notice, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

        if folder.path not in self._wakes:
            loop = asyncio.get_running_loop()
            self._wakes[folder.path] = loop.call_later(seconds, wake)


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


def _wait_for_lock(folder: JobFolder) -> int:
    """The same lock, for a thread: others have it while they start the job."""
    handle = os.open(folder.path + "/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def _unavailable(error: OSError) -> EngineUnavailable:
    return EngineUnavailable(f"the job waits: {error.strerror}: {error.filename}")


def _end_rest(uid: str) -> None:
    """Whatever of the job its supervisor could not end: it was killed."""
    kill_marked(f"{uid}/")
    Limits().remove_all(f"{uid}/")


def _end_of_supervisor(folder: JobFolder) -> str:
    """What is known of it: a mistake of ours leaves a traceback, a kill leaves nothing."""
    said = ""
    with suppress(FileNotFoundError):
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


async def _end(process: int, call: signal.Signals) -> None:
    """Sends a signal and waits for the end. A stop is repeated: a supervisor that just starts does not hear it."""
    while True:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(process, call)
        try:
            async with asyncio.timeout(SIGNAL_SECONDS if call == STOP_SIGNAL else None):
                await _readable(process)
                return
        except TimeoutError:
            pass


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
