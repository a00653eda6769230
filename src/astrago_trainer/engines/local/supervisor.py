"""The process that runs one job and outlives whoever started it. Standard library only.

It starts the pods of the plan, does what Kubernetes and JobSet would do when one of them ends, and writes down how the
job stands. Where it may, it is process 1 of a namespace, so that the kernel ends everything of the job with it.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from astrago_trainer.engines.local import kernel
from astrago_trainer.engines.local.addresses import (
    addresses,
    names,
    pod_name,
    use_own_ports,
    write_hosts,
)
from astrago_trainer.engines.local.container import Start, start, start_beside
from astrago_trainer.engines.local.env import container_env, expand
from astrago_trainer.engines.local.eviction import find_eviction
from astrago_trainer.engines.local.folder import (
    JobFolder,
    identity,
    notice_name,
    read_json,
    write_json,
)
from astrago_trainer.engines.local.formats import read_plan
from astrago_trainer.engines.local.installs import CONTAINER as INSTALL_LOG
from astrago_trainer.engines.local.installs import Install
from astrago_trainer.engines.local.lasting import lasting_mounts
from astrago_trainer.engines.local.ledger import Ledger
from astrago_trainer.engines.local.limits import Limits
from astrago_trainer.engines.local.loop import Loop
from astrago_trainer.engines.local.notices import Notice, Watch
from astrago_trainer.engines.local.output import Output
from astrago_trainer.engines.local.permanent import permanent_error
from astrago_trainer.engines.local.plainly import translate
from astrago_trainer.engines.local.processes import MARK, kill_all, signal_all
from astrago_trainer.engines.local.reports import Reports
from astrago_trainer.engines.local.runs import (
    Container,
    GroupRun,
    PodRun,
    back_off,
    is_met,
    is_success,
    phase_of,
)
from astrago_trainer.engines.local.volumes import (
    SHARED_MEMORY,
    is_read_only,
    make_shared_memory,
    make_volumes,
    remove_volumes,
)
from astrago_trainer.engines.local.warm import Asked
from astrago_trainer.logs.limits import LogLimits
from astrago_trainer.logs.share import TenantShare

if TYPE_CHECKING:
    from astrago_trainer.engines.local.sessions import Request, Sessions

Json = dict[str, Any]
T = TypeVar("T")

SSH_PLACES = {
    "ssh": "/usr/bin/ssh",
    "sshd": "/usr/sbin/sshd",
    "ssh-keygen": "/usr/bin/ssh-keygen",
}
"""Where images have the programs that `sessions` replaces."""
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
RESTART_LABEL = "jobset.sigs.k8s.io/restart-attempt"
TURN_SECONDS = 1.0
"""How often a job looks whether its share is free, where the kernel gives no watch."""
NOT_ENOUGH_FREE = "NoRoom"
"""The reason of a job that waits for other jobs to end."""
NOT_RETRYABLE = "NotRetryable"
"""The reason of a job that failed by an error that a restart does not change."""
MOST_ENDED = 10
"""Earlier attempts of which it is told how they ended."""
INSTALLING = "InstallingEnvironment"
STOP_SIGNAL = signal.SIGUSR2
"""Stops the job without a file that says so: a full disk has no space for one."""
SAVE_SECONDS = 1.0
"""How long to wait before what found no room on the disk is written again."""


class Supervisor:
    """One job from its start to its end, or to its suspension."""

    def __init__(self, folder: JobFolder, settings: Json) -> None:
        self._folder = folder
        self._settings = settings
        self._plan: Json = read_plan(folder.plan) or {}
        plan = self._plan
        self._notice = Notice(
            settings["notices"], notice_name(plan["namespace"], plan["name"], plan["uid"])
        )
        self._log_limits = LogLimits.read(settings.get("log_limits"))
        self._log_share = TenantShare(
            f"{settings['data']}/jobs/{plan['namespace']}", self._log_limits.tenant
        )
        self._reports = Reports(folder, self._notice)
        self._loop = Loop()
        known = self._reports.known
        again = known.get("next_attempt", 0)
        self._attempt: int = known.get("attempt", 0) + again
        self._ended: list[Json] = known.get("ended", [])
        is_failure = bool(known.get("is_failure"))  # else people had suspended it
        if again:
            self._note_end_of_attempt(known["reason"], known["message"], is_failure=is_failure)
        self._restarts: int = known.get("restarts", 0) + (again if is_failure else 0)
        self._has_view: bool = settings["isolation"] == "view"
        self._addresses = addresses(self._plan, has_view=self._has_view)
        self._names = names(self._plan, self._addresses)
        self._groups: list[GroupRun] = []
        self._granted: Json = {"gpus": [], "ports": []}
        self._ledger = Ledger(settings["data"], settings["machine"], settings["table"])
        self._share: Notice | None = None
        self._limits = Limits(settings["most_processes"])
        self._started_at: float | None = known.get("started_at")
        self._by_pid: dict[int, Container] = {}
        self._after_stop: Callable[[], None] | None = None
        self._is_over = False
        self._is_stopped = False
        self._shortage = ""
        self._news: Watch | None = None
        self._sessions: Sessions | None = None
        self._is_save_due = False
        self._install: Install | None = None
        found = read_json(folder.installs) or {}
        self._to_install: list[Json] = found.get("installs", [])

    def run(self) -> None:
        wish = self._do_wish
        self._loop.on_signals(
            {
                signal.SIGCHLD: self._collect,
                signal.SIGUSR1: wish,
                signal.SIGTERM: wish,
                STOP_SIGNAL: self._stop,
            }
        )
        self._reports.tell("Accepted", f"isolation: {self._settings['isolation_reason']}")
        for note in self._plan["notes"]:
            self._reports.tell("NotApplied", note)
        if self._plan["shortfall"]:
            self._reports.tell_once("Squeezed", self._plan["shortfall"])
        if self._limits.trouble:
            text = f"limits of CPU, memory and processes are not enforced: {self._limits.trouble}"
            self._reports.tell("NotEnforced", text)
        self._begin_sessions()
        self._prepare()
        self._do_wish()
        while not self._is_over:
            self._loop.wait()
            self._save_later()
        self._limits.remove_all(f"{self._plan['uid']}/")
        with suppress(OSError):  # a full disk: the ledger leaves out who has died
            self._ledger.leave(self._plan["uid"])
        if self._share is not None:
            self._share.withdraw()
        self._log_share.finish()
        # How it ended is worth waiting for a disk with space, unless the job is about to be removed.
        while self._reports.is_behind and not self._is_stopped:
            self._save_later()
            self._loop.wait()
        self._notice.withdraw()

    def _begin_sessions(self) -> None:
        warm = self._settings.get("warm")
        if not (self._plan["has_ssh"] or warm):
            return
        from astrago_trainer.engines.local.sessions import Sessions, write_python, write_ssh

        if self._plan["has_ssh"]:
            write_ssh(self._folder.programs, self._folder.path)
        if warm:
            write_python(self._folder.warm_programs, self._folder.path, warm["interpreter"])
            self._reports.tell("Warm", f"processes begin with {warm['modules']} imported")
        runs = {
            "ssh": (self._run_in_pod, signal.SIGHUP),
            "python": (self._run_warm, signal.SIGKILL),
        }
        self._sessions = Sessions(self._folder.path, self._loop, runs)

    def _save_later(self) -> None:
        """For what found no room on the disk."""
        if self._reports.is_behind and not self._is_save_due:
            self._is_save_due = True
            self._loop.later(SAVE_SECONDS, self._save)

    def _save(self) -> None:
        self._is_save_due = False
        self._reports.save()

    # --- environments

    def _prepare(self) -> None:
        """Install what is missing, one after the other; then the pods start."""
        if self._to_install:
            self._begin_install(self._to_install.pop(0))
            return
        with suppress(FileNotFoundError):  # it may hold settings of a package index
            os.unlink(self._folder.installs)
        self._take_share()

    def _begin_install(self, what: Json) -> None:
        text = f"installing {what['title']} for {what['image'] or 'the job'} (one time)"
        self._reports.tell(INSTALLING, text)
        self._set("Pulling", INSTALLING, text)
        group = self._plan["groups"][0]
        log = self._folder.log(self._attempt, pod_name(self._plan, group, 0), INSTALL_LOG)
        output = self._output(log)
        self._install = Install(what, output, self._loop, self._show_install)

    def _output(self, log: str) -> Output:
        return Output(log, self._loop, self._reports.tell_once, self._log_limits, self._log_share)

    def _show_install(self, text: str) -> None:
        if self._after_stop is None and not self._is_over:
            self._set("Pulling", INSTALLING, text)

    def _end_install(self, install: Install, code: int) -> None:
        install.finish()
        self._install = None
        if self._is_over or self._after_stop is not None:
            return
        if code == 0:
            self._reports.tell("EnvironmentReady", f"{install.title} is ready")
            self._prepare()
            return
        error = install.error or f"the install of {install.title} ended with exit code {code}"
        self._end("Failed", "EnvironmentFailed", error)

    # --- the share of this machine

    def _wait_for_disk(self, error: OSError, again: Callable[[], None]) -> None:
        self._reports.tell_once("DiskFull", f"the job waits: {error.strerror}: {error.filename}")
        self._loop.later(SAVE_SECONDS, again)

    def _take_share(self) -> None:
        """Begin when the job has its share of the machine, which the starter of this process usually took already."""
        if self._groups or self._is_over or self._after_stop is not None:
            return
        uid = self._plan["uid"]
        try:
            self._share = self._share or self._ledger.notice(uid)
            granted = self._ledger.take(uid, self._settings["who"], self._plan)
        except OSError as error:
            self._wait_for_disk(error, self._take_share)
            return
        if isinstance(granted, str):
            self._wait_for_share(granted)
            return
        if self._news is not None:
            self._loop.forget(self._news.fileno())
            self._news.close()
        self._granted = granted
        self._started_at = self._started_at or time.time()
        if self._plan["deadline_seconds"]:
            left = self._started_at + self._plan["deadline_seconds"] - time.time()
            self._loop.later(max(0.0, left), self._pass_deadline)
        self._begin_attempt()

    def _wait_for_share(self, shortage: str) -> None:
        """Wait for a share that was lost: its taker died before this process had it, and another job took it."""
        if shortage != self._shortage:
            self._shortage = shortage
            self._set("Queued", NOT_ENOUGH_FREE, shortage)
        if self._news is not None:
            return
        try:
            self._news = self._ledger.watch()
        except OSError:  # the user's watches are used up: look by the clock
            self._loop.later(TURN_SECONDS, self._take_share)
            return
        self._loop.on_readable(self._news.fileno(), self._hear_news)
        self._take_share()  # somebody may have left before the watch was set

    def _hear_news(self) -> None:
        assert self._news is not None
        self._news.read()
        self._take_share()

    # --- attempts and groups

    def _begin_attempt(self) -> None:
        self._groups = [GroupRun(group) for group in self._plan["groups"]]
        free = list(self._granted["gpus"])
        mark = f"{self._plan['uid']}/{self._attempt}"
        for group in self._groups:
            for index in range(group.plan["count"]):
                plan = self._pod_plan(group.plan, index)
                folder = self._folder.pod(self._attempt, plan["name"])
                pod = PodRun(plan, group, mark, folder)
                count = sum(each["gpus"] for each in plan["containers"])
                pod.gpus, free = free[:count], free[count:]
                group.pods.append(pod)
        self._set("Pending", "Starting", f"attempt {self._attempt} starts")
        self._start_groups()
        self._watch_disk(self._attempt)

    def _watch_disk(self, attempt: int) -> None:
        """Evicts a pod of this attempt whose files are too large; looks by the clock, as the kubelet does."""
        if self._is_over or self._after_stop is not None or attempt != self._attempt:
            return
        pods = [pod for group in self._groups for pod in group.pods if pod.running]
        with suppress(OSError):
            found = find_eviction(
                ((pod.plan, pod.folder) for pod in pods), self._log_limits.reserve
            )
            if found is not None:
                pod = next(each for each in pods if each.plan["name"] == found.pod)
                pod.code, pod.reason = 137, "Evicted"
                self._fail(pod.group, "Evicted", found.message)
                return
        self._loop.later(self._settings["disk_seconds"], lambda: self._watch_disk(attempt))

    def _pod_plan(self, group: Json, index: int) -> Json:
        """The group's pod with its index, and what only the start of an attempt knows."""
        pod, name = group["pod"], pod_name(self._plan, group, index)
        own = {INDEX_LABEL: str(index), RESTART_LABEL: str(self._attempt)}
        return {
            **pod,
            "name": name,
            "index": index,
            "namespace": self._plan["namespace"],
            "uid": f"{self._plan['uid']}-{self._attempt}-{index}",
            "node": self._settings["node"],
            "address": self._addresses[name],
            "labels": {**pod["labels"], **own},
            "annotations": {**pod["annotations"], **own},
        }

    def _start_groups(self) -> None:
        """Those that wait for nobody, or for nobody any more."""
        for group in self._groups:
            waits_for = group.plan["depends_on"]
            if not group.is_started and all(is_met(each, self._groups) for each in waits_for):
                group.is_started = True
                for pod in list(group.pods):
                    self._start_pod(pod)
                self._guard(group)

    def _guard(self, group: GroupRun) -> None:
        seconds = group.plan["deadline_seconds"]

        def pass_deadline() -> None:
            if group in self._groups and not group.is_complete:
                text = (
                    f"job {group.plan['name']} was active longer than its deadline of {seconds} s"
                )
                self._fail(group, "DeadlineExceeded", text)

        if seconds:
            self._loop.later(seconds, pass_deadline)

    def _pass_deadline(self) -> None:
        if not self._is_over and self._after_stop is None:
            text = f"the job exceeded its deadline of {self._plan['deadline_seconds']} s"
            self._stop_all(lambda: self._end("Failed", "DeadlineExceeded", text))

    def _fail(self, group: GroupRun, reason: str, message: str) -> None:
        """A group has failed for good: everything starts again, if that is allowed, or the job has failed."""
        if self._after_stop is not None or self._is_over:
            return
        self._reports.tell(reason, message)
        most = self._plan["max_restarts"]
        if self._restarts < most:
            self._set("Restarting", reason, f"{message}; restart {self._restarts + 1} of {most}")
            self._stop_all(lambda: self._next_attempt(reason, message))
        else:
            final = "ReachedMaxRestarts" if self._plan["has_failure_policy"] else "FailedJobs"
            self._stop_all(lambda: self._end("Failed", final, message))

    def _next_attempt(self, reason: str, message: str) -> None:
        self._attempt += 1
        self._restarts += 1
        self._note_end_of_attempt(reason, message, is_failure=True)
        self._reports.tell("Restarted", f"attempt {self._attempt}")
        self._begin_attempt()

    def _note_end_of_attempt(self, reason: str, message: str, *, is_failure: bool) -> None:
        """For whoever looks when the next one has begun."""
        end = {
            "attempt": self._attempt - 1,
            "time": time.time(),
            "reason": reason,
            "message": message,
            "is_failure": is_failure,
        }
        self._ended = [*self._ended, end][-MOST_ENDED:]

    # --- pods and containers

    def _start_pod(self, pod: PodRun) -> None:
        try:
            os.makedirs(pod.folder, exist_ok=True)
            claims = self._settings["claims"]
            pod.volumes = make_volumes(pod.plan, pod.folder, claims, can_mount=self._has_view)
            if self._has_view:
                pod.shared_memory = make_shared_memory(pod.folder)
            for container in pod.containers:
                container.lasting = lasting_mounts(container.plan, claims)
            write_hosts(f"{pod.folder}/hosts", self._names)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self._end_pod(pod, 128, "VolumeFailed", str(error))
                return
            # Space may come back, and a restart would not make any.
            remove_volumes(pod.plan, pod.folder, can_mount=self._has_view)
            self._wait_for_disk(error, lambda: self._unless_over(pod, self._start_pod, pod))
            return
        self._go_on(pod)

    def _unless_over(self, pod: PodRun, call: Callable[[T], None], argument: T) -> None:
        """For what was put off: not when the pod was stopped or replaced meanwhile."""
        is_current = any(pod in group.pods for group in self._groups)
        if is_current and not self._is_over and self._after_stop is None:
            call(argument)

    def _go_on(self, pod: PodRun) -> None:
        """The next init container, or all containers when these are through."""
        waiting = [each for each in pod.init if each.code != 0]
        pod.phase = "Initializing" if waiting else "Running"
        for container in waiting[:1] or pod.containers:
            self._start(container)
        self._show()
        self._start_groups()

    def _start(self, container: Container) -> None:
        pod = container.pod
        try:
            what = self._describe(container)
            log = self._folder.log(self._attempt, pod.plan["name"], container.plan["name"])
            output = self._output(log)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._wait_for_disk(error, lambda: self._unless_over(pod, self._start, container))
            return
        what.output = output.write
        container.group = self._limits.make(
            container.mark,
            cpu=container.plan["cpu_limit"],
            memory=container.plan["memory_limit"],
        )
        what.group_files = container.group.entrances if container.group else []
        container.pid, container.told = start(what, has_view=self._has_view)
        container.output, container.start = output, what
        output.started()
        container.code = None
        container.starts += 1
        self._by_pid[container.pid] = container

    def _run_in_pod(self, request: Request) -> int:
        """A command that one pod runs in another."""
        host, command = request.words
        name = host.partition(".")[0]
        pods = (pod for group in self._groups for pod in group.pods)
        pod = next((each for each in pods if each.plan["name"] == name), None)
        container = pod.containers[0] if pod is not None else None
        if container is None or container.start is None or not container.is_running:
            raise LookupError(f"the job has no pod {name} that runs")
        return self._start_beside(container, container.pid, ["/bin/sh", "-c", command], request)

    def _run_warm(self, request: Request) -> int:
        """A `python` of a container as a fork of this process, which has the framework imported."""
        asked = Asked(request.words)
        refusal = asked.refusal()
        mark = asked.env.get(MARK)
        container = next((each for each in self._by_pid.values() if each.mark == mark), None)
        if refusal or container is None:
            reason = refusal or "no container of the job"
            self._reports.tell_once("Cold", f"a fresh interpreter is started: {reason}")
            raise LookupError(reason)
        asked.program = f"{self._folder.warm_programs}/python"
        return self._start_beside(container, request.pid, asked, request)

    def _start_beside(
        self, container: Container, pid: int, what: list[str] | Asked, request: Request
    ) -> int:
        assert container.start is not None
        new = start_beside(container.start, pid, what, request.streams, has_view=self._has_view)
        container.beside.add(new)
        return new

    def _describe(self, container: Container) -> Start:
        """All that the process needs to know; its folders are there when this returns."""
        pod, plan = container.pod, container.plan
        what = Start()
        what.scratch = f"{pod.folder}/{plan['name']}"
        what.mark = container.mark
        what.hostname = pod.plan["name"]
        what.folder = plan["folder"]
        os.makedirs(what.scratch, exist_ok=True)
        message = what.scratch + "/termination-log"
        open(message, "wb").close()
        what.files = [(f"{pod.folder}/hosts", "/etc/hosts"), (message, plan["termination_path"])]
        if self._plan["has_ssh"]:
            what.files += [(f"{self._folder.programs}/{k}", v) for k, v in SSH_PLACES.items()]
        what.mounts = [_mount(mount, pod) for mount in plan["mounts"]] + container.lasting
        if pod.shared_memory and all(path != SHARED_MEMORY for _, path, _ in what.mounts):
            what.mounts.append((pod.shared_memory, SHARED_MEMORY, False))
        what.env = self._env(container, what.scratch, message)
        what.command = [expand(word, what.env) for word in plan["command"]]
        if not self._has_view:
            translate(what, self._names)
        return what

    def _env(self, container: Container, scratch: str, message: str) -> dict[str, str]:
        pod, plan = container.pod, container.plan
        before = {
            **self._settings["inherited"],
            "PATH": ":".join((*self._own_programs(plan), plan["programs"], self._settings["path"])),
            "HOSTNAME": pod.plan["name"],
            "TMPDIR": scratch,
            "ASTRAGO_ATTEMPT": str(self._attempt),
            "ASTRAGO_TERMINATION_LOG": message,
        }
        env = container_env(plan["env"], pod.plan, before)
        env["JOB_COMPLETION_INDEX"] = str(pod.plan["index"])
        # Also where there are none, or only some are counted: what was not granted must not be used.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, pod.gpus))
        ports = self._granted["ports"]
        use_own_ports(env, self._plan, pod.group.plan, ports, has_view=self._has_view)
        return env

    def _own_programs(self, plan: Json) -> list[str]:
        """Folders with programs that stand in for others."""
        warm = self._settings.get("warm")
        is_warm = warm and plan["programs"].split(":")[0] == warm["programs"]
        return [self._folder.programs] * self._plan["has_ssh"] + (
            [self._folder.warm_programs] if is_warm else []
        )

    # --- ends

    def _collect(self) -> None:
        """The dead. A container's first process is looked at before it is collected: until then its number is its."""
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            container = self._by_pid.pop(found.si_pid, None)
            if container is not None:
                self._kill(container, found.si_pid)
            os.waitpid(found.si_pid, 0)
            killed = found.si_code != os.CLD_EXITED
            if container is not None:
                self._note_end(container, 128 + found.si_status if killed else found.si_status)
            elif self._install is not None and self._install.pid == found.si_pid:
                self._end_install(self._install, 128 * killed + found.si_status)
            elif self._sessions is not None:
                self._sessions.end(found.si_pid, -found.si_status if killed else found.si_status)

    def _note_end(self, container: Container, code: int) -> None:
        failed_start = os.read(container.told, 4096).decode("utf-8", "replace")
        os.close(container.told)
        container.pid, container.code, pod = 0, code, container.pod
        assert container.output is not None
        if failed_start:
            container.output.add(f"{failed_start}\n")
        container.output.finish()
        if container.group is not None:
            container.has_run_out_of_memory = code != 0 and container.group.has_run_out_of_memory
            self._limits.remove(container.group)
        if pod.is_stopping:
            if not pod.running:
                self._pod_is_gone(pod)
        elif code == 0 and container in pod.init:
            self._go_on(pod)
        elif code != 0 and (error := self._permanent_error(container)):
            self._give_up(container, error)
        elif code != 0 and pod.plan["restart_policy"] != "Never":
            self._start_again(container)
        elif not pod.running:
            if all(each.code == 0 for each in pod.containers):
                self._end_pod(pod, 0, "Completed", "")
            else:
                failed = pod.first_failed
                reason = "OOMKilled" if failed.has_run_out_of_memory else "Error"
                self._end_pod(pod, failed.code or 1, reason, self._end_of(failed))

    def _end_of(self, container: Container) -> str:
        return container.end(self._reports.last_words(self._attempt, container))

    def _permanent_error(self, container: Container) -> str:
        """What it says of an error that would come again with each start; empty for any other end."""
        if container.has_run_out_of_memory:
            return ""
        code = container.code or 0
        message, log = self._reports.ends(self._attempt, container)
        return (permanent_error(code, message) if message else "") or permanent_error(code, log)

    def _give_up(self, container: Container, error: str) -> None:
        """No restart, in place or of the group: it would only repeat the error."""
        pod = container.pod
        pod.code, pod.reason = container.code, "Error"
        if pod.running:
            self._stop_pod(pod)
        else:
            pod.phase = "Failed"
            remove_volumes(pod.plan, pod.folder, can_mount=self._has_view)
        message = container.end(error)
        if self._after_stop is None and not self._is_over:
            self._stop_all(lambda: self._end("Failed", NOT_RETRYABLE, message))

    def _start_again(self, container: Container) -> None:
        """In its place, after a pause; the others see nothing of it."""
        pod = container.pod
        pod.restarts += 1
        pod.group.failures += 1
        if pod.group.is_used_up:
            self._fail(pod.group, "BackoffLimitExceeded", self._end_of(container))
            return
        self._reports.tell("ContainerRestarted", self._end_of(container))

        def again() -> None:
            if pod.group in self._groups and not pod.is_stopping and not self._is_over:
                self._start(container)

        self._loop.later(back_off(container.starts - 1), again)
        self._show()

    def _end_pod(self, pod: PodRun, code: int, reason: str, message: str) -> None:
        pod.phase = "Succeeded" if code == 0 else "Failed"
        pod.code, pod.reason = code, reason
        remove_volumes(pod.plan, pod.folder, can_mount=self._has_view)
        if code == 0:
            self._start_groups()
            if is_success(self._plan["success"], self._groups):
                text = "jobset completed successfully"
                self._stop_all(lambda: self._end("Complete", "AllJobsCompleted", text))
            else:
                self._show()
            return
        group = pod.group
        group.failures += 1
        if group.is_used_up:
            self._fail(group, "BackoffLimitExceeded", message)
            return
        self._reports.tell("PodReplaced", message)

        def replace() -> None:
            if group in self._groups and not self._is_over and self._after_stop is None:
                place = group.pods.index(pod)
                group.pods[place] = pod.again()
                self._start_pod(group.pods[place])

        self._loop.later(back_off(group.failures), replace)
        self._show()

    # --- stopping

    def _do_wish(self) -> None:
        try:
            with open(self._folder.wish, encoding="utf-8") as file:
                wish = file.read().strip()
        except FileNotFoundError:
            return
        ends = {
            "suspend": ("Suspended", "Suspended", "suspended on request"),
            "stop": ("Failed", "Stopped", "stopped on request"),
        }
        if wish in ends:
            self._is_stopped = wish == "stop"
            self._stop_all(lambda: self._end(*ends[wish]))

    def _stop(self) -> None:
        """Asked for by a signal, because the disk has no space for the file with the wish."""
        self._is_stopped = True
        self._stop_all(lambda: self._end("Failed", "Stopped", "stopped on request"))

    def _stop_all(self, then: Callable[[], None]) -> None:
        """Ends all pods, each with its grace; `then` is called when none is left. A later call replaces the earlier."""
        is_new = self._after_stop is None
        self._after_stop = then
        if self._install is not None:
            self._install.stop()
        running = [pod for group in self._groups for pod in group.pods if pod.running]
        for pod in running:
            if not pod.is_stopping:
                self._stop_pod(pod)
        if is_new and not running:
            self._all_gone()

    def _stop_pod(self, pod: PodRun) -> None:
        pod.is_stopping = True
        for container in pod.running:
            signal_all(container.mark, container.pid, signal.SIGTERM)

        def kill() -> None:
            for container in pod.running:
                self._kill(container, container.pid)

        self._loop.later(pod.plan["grace_seconds"], kill)

    def _kill(self, container: Container, session: int) -> None:
        """Everything of it, whoever started it."""
        if self._sessions is not None:
            self._sessions.kill(container.beside)
        kill_all(container.mark, session)

    def _pod_is_gone(self, pod: PodRun) -> None:
        pod.phase = "Failed"
        remove_volumes(pod.plan, pod.folder, can_mount=self._has_view)
        if not any(each.running for group in self._groups for each in group.pods):
            self._all_gone()

    def _all_gone(self) -> None:
        then, self._after_stop = self._after_stop, None
        if then is not None:
            then()

    def _end(self, phase: str, reason: str, message: str) -> None:
        self._is_over = True
        self._reports.tell(reason, message)
        self._set(phase, reason, message)

    # --- telling

    def _show(self) -> None:
        if self._after_stop is None and not self._is_over:
            self._set(phase_of(self._groups), "", "")

    def _set(self, phase: str, reason: str, message: str) -> None:
        status = {
            "phase": phase,
            "reason": reason,
            "message": message,
            "attempt": self._attempt,
            "next_attempt": int(phase == "Suspended"),
            "restarts": self._restarts,
            "max_restarts": self._plan["max_restarts"],
            "started_at": self._started_at,
            "ended_at": time.time() if self._is_over else None,
            "isolation": self._settings["isolation"],
            "ended": self._ended,
        }
        self._reports.write(status, self._groups)


def _mount(mount: Json, pod: PodRun) -> tuple[str, str, bool]:
    source = pod.volumes[mount["volume"]]
    volume = next(each for each in pod.plan["volumes"] if each["name"] == mount["volume"])
    if mount["sub_path"]:
        source = f"{source}/{mount['sub_path']}"
        if not os.path.exists(source):
            os.makedirs(source)
    return source, mount["path"], mount["read_only"] or is_read_only(volume)


def main() -> None:
    """`<job folder> <settings as JSON>`."""
    begin(sys.argv[1], json.loads(sys.argv[2]), lambda: None)


def become_starter(errors: int) -> None:
    """Leave the session and the streams of the parent; errors go to the given stream."""
    os.setsid()
    os.chdir("/")
    nothing = os.open("/dev/null", os.O_RDWR)
    for number, stream in enumerate((nothing, nothing, errors)):
        os.dup2(stream, number)


def begin(path: str, settings: Json, on_started: Callable[[], None]) -> None:
    """Ends the calling process once the job has one of its own, which goes on from here to the end of the job."""
    folder = JobFolder(path)
    table = os.open("/proc", os.O_PATH | os.O_CLOEXEC)  # stays the machine's, whatever comes later
    settings["table"] = f"/proc/self/fd/{table}"
    heard, told = os.pipe2(os.O_CLOEXEC)
    if settings["isolation"] == "view":
        try:
            enter_namespaces()
        except OSError as error:
            settings["isolation"] = "plain"
            settings["isolation_reason"] = f"plain, for there are no namespaces: {error.strerror}"
    pid = os.fork()
    if pid:
        who = identity(pid)
        known = who or {"pid": pid, "start": 0, "boot": ""}
        write_json(folder.supervisor, known, has_version=False)
        os.write(told, json.dumps(who).encode())
        on_started()
        os._exit(0)
    os.close(told)
    settings["who"] = json.loads(os.read(heard, 4096))
    kernel.set_process_name("astrago-job")
    if settings["isolation"] == "view":
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
        kernel.mount("proc", "/proc", "proc")
    Supervisor(folder, settings).run()


def enter_namespaces() -> None:
    """A view of processes, mounts and names of our own; as an ordinary user, in a user namespace."""
    flags = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWUTS
    user, group = os.getuid(), os.getgid()
    if user == 0:
        kernel.unshare(flags)
        return
    kernel.unshare(flags | kernel.CLONE_NEWUSER)
    ids = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in ids.items():
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)
