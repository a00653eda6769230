"""Starts waiting jobs: one process for each data folder, while any job waits. Standard library only.

It does not depend on the process that started it: servers and commands come and go, the queue stays. It sleeps until a
job is added, removed or ends. Its state is in files, so a killed scheduler is simply started again.

Run as a program: `<data folder>`.
"""

from __future__ import annotations

import fcntl
import os
import sys
from typing import TYPE_CHECKING, Any

from astrago_trainer.engines.local import kernel
from astrago_trainer.engines.local.folder import (
    JobFolder,
    identity,
    is_alive,
    read_json,
    write_json,
)
from astrago_trainer.engines.local.formats import UnreadableFile, read_plan
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.engines.local.notices import Watch
from astrago_trainer.engines.local.queue import Queue, uid_of
from astrago_trainer.engines.local.supervisor import become_starter, begin
from astrago_trainer.engines.local.turns import Waiting, next_turn

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]

DISK_SECONDS = 1.0
"""After which a start that a full disk prevented is tried again."""


def is_running(data: str) -> bool:
    """Whether the queue of this data folder is looked after."""
    return is_alive(read_json(_claim(data)))


def _claim(data: str) -> str:
    """Which process the scheduler is, while it promises to see every job that is added."""
    return data + "/scheduler.json"


def _try_lock(path: str) -> int | None:
    """A handle that holds the lock until it is closed; None while another scheduler has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle


class Scheduler:
    """Starts jobs in their turn until none waits."""

    def __init__(self, data: str, lock: int) -> None:
        self._data = data
        self._lock = lock
        self._queue = Queue(data)
        self._loop = Loop()
        self._who = identity(os.getpid())
        self._waiting: dict[str, dict[str, Waiting]] = {}
        """By namespace and uid."""
        self._namespaces: dict[str, str] = {}
        """Of each waiting job."""
        self._last_start: dict[str, int] = {}
        self._starts = 0
        self._is_disk_full = False
        self._watches: list[Watch] = []
        self._listen(self._queue.watch(), self._hear_queue)
        self._listen(Watch(data + "/ledger"), lambda _: None)

    def run(self) -> None:
        """Returns when no job waits."""
        self._read_all()
        while self._namespaces:
            self._start_all_that_fit()
            if self._namespaces:
                self._loop.wait()

    def _listen(self, watch: Watch, hear: Callable[[set[str]], None]) -> None:
        self._watches.append(watch)
        self._loop.on_readable(watch.fileno(), lambda: hear(watch.read()))

    def _hear_queue(self, names: set[str]) -> None:
        if "" in names:  # some news were lost
            self._read_all()
            return
        for uid in filter(None, map(uid_of, names)):
            self._read(uid)

    def _read_all(self) -> None:
        self._waiting.clear()
        self._namespaces.clear()
        for uid in list(self._queue.uids()):
            self._read(uid)

    def _read(self, uid: str) -> None:
        self._forget(uid)
        try:
            entry = self._queue.read(uid)
        except UnreadableFile as error:
            print(error, file=sys.stderr)
            self._queue.remove(uid)
            return
        if entry is not None:
            namespace = entry["namespace"]
            self._namespaces[uid] = namespace
            jobs = self._waiting.setdefault(namespace, {})
            jobs[uid] = Waiting(entry["since"], uid, namespace)

    def _forget(self, uid: str) -> None:
        namespace = self._namespaces.pop(uid, None)
        if namespace is not None:
            jobs = self._waiting[namespace]
            del jobs[uid]
            if not jobs:
                del self._waiting[namespace]

    def _start_all_that_fit(self) -> None:
        while self._namespaces and not self._is_disk_full:
            try:
                if not self._start_next():
                    return
            except OSError as error:
                print(f"no job can be started now: {error}", file=sys.stderr)
                self._is_disk_full = True
                self._loop.later(DISK_SECONDS, self._try_again)

    def _try_again(self) -> None:
        self._is_disk_full = False

    def _start_next(self) -> bool:
        """Whether the next job in turn is no longer in the queue."""
        machine = self._machine()
        if machine is None:
            return False
        held = Ledger(self._data, machine).held()
        by_namespace = {name: jobs.values() for name, jobs in self._waiting.items()}
        job = next_turn(by_namespace, held, machine, self._last_start)
        if job is None:
            return False
        entry = self._queue.read(job.uid)
        if entry is not None and not self._start(job.uid, entry):
            return False
        self._forget(job.uid)
        self._starts += 1
        self._last_start[job.namespace] = self._starts
        return True

    def _machine(self) -> Json | None:
        """As the one saw it that added the oldest job: settings of the server may say less or more."""
        for uid in list(self._namespaces):
            entry = self._queue.read(uid)
            if entry is not None:
                found: Json = entry["settings"]["machine"]
                return found
            self._forget(uid)
        return None

    def _start(self, uid: str, entry: Json) -> bool:
        """Whether it left the queue; not when there is not enough free for it."""
        folder = JobFolder(entry["folder"])
        try:
            lock = os.open(folder.path + "/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # the job was removed
            self._queue.remove(uid)
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # The previous holder of the lock may have started the job, or taken it out of the queue.
            if not self._queue.has(uid):
                return True
            plan = None
            if not is_alive(read_json(folder.supervisor)):
                plan = read_plan(folder.plan)
            if plan is None:
                self._queue.remove(uid)
                return True
            ledger = Ledger(self._data, entry["settings"]["machine"])
            if isinstance(ledger.take(uid, self._who or {}, plan), str):
                return False
            self._begin(folder, entry, lock)
            ledger.assign(uid, read_json(folder.supervisor) or {})
            self._queue.remove(uid)
            return True
        except UnreadableFile:  # the engine says so when it looks at the job
            self._queue.remove(uid)
            return True
        finally:
            os.close(lock)

    def _begin(self, folder: JobFolder, entry: Json, lock: int) -> None:
        """Returns when the supervisor has a process of its own."""
        errors = os.open(
            folder.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            if entry.get("zygote") and _is_begun_warm(folder, entry, errors):
                return
            child = os.fork()
            if child == 0:
                try:
                    self._close_after_fork(lock)
                    become_starter(errors)
                    begin(folder.path, entry["settings"], lambda: None)
                finally:
                    os._exit(1)
            os.waitpid(child, 0)
        finally:
            os.close(errors)

    def _close_after_fork(self, lock: int) -> None:
        """What the supervisor must not hold: the locks above all."""
        for handle in (self._lock, lock):
            os.close(handle)
        for watch in self._watches:
            watch.close()
        self._loop.close()


def _is_begun_warm(folder: JobFolder, entry: Json, errors: int) -> bool:
    from astrago_trainer.engines.local.zygote import ask

    settings = {**entry["settings"], "warm": entry["zygote"]["warm"]}
    try:
        return ask(
            entry["zygote"]["address"], {"folder": folder.path, "settings": settings}, errors
        )
    except OSError:  # its server has ended
        return False


def main() -> None:
    data = sys.argv[1]
    ready, when_ready = os.pipe2(os.O_CLOEXEC)
    if os.fork():  # the starter waits until the scheduler runs, and no longer
        os.close(when_ready)
        os.read(ready, 1)
        os._exit(0)
    kernel.set_process_name("astrago-queue")
    queue = Queue(data)
    while True:
        lock = _try_lock(data + "/scheduler.lock")
        if lock is None:
            return
        write_json(_claim(data), identity(os.getpid()) or {}, has_version=False, is_durable=False)
        if when_ready >= 0:
            os.close(when_ready)
            when_ready = -1
        Scheduler(data, lock).run()
        # A job that is added from now on finds no scheduler; one that was added before is found below.
        os.unlink(_claim(data))
        os.close(lock)
        if queue.is_empty():
            return
