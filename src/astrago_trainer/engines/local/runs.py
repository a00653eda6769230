"""The state of an attempt: its groups (replicated jobs), their pods, and the containers of these."""

from __future__ import annotations

import contextlib
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from astrago_trainer.engines.local.container import Start
    from astrago_trainer.engines.local.limits import Group
    from astrago_trainer.engines.local.output import Output

Json = dict[str, Any]


class Container:
    """One container of a pod, started perhaps several times."""

    def __init__(self, pod: PodRun, plan: Json) -> None:
        self.pod = pod
        self.plan = plan
        self.pid = 0
        self.starts = 0
        self.code: int | None = None
        self.told = -1
        """The pipe that tells of a failed start."""
        self.output: Output | None = None
        self.start: Start | None = None
        """As what it was started last."""
        self.group: Group | None = None
        self.beside: set[int] = set()
        """Processes that run in it, and that it did not start: pids of children of ours, until they are collected."""
        self.has_run_out_of_memory = False
        self.lasting: list[tuple[str, str, bool]] = []
        """What is mounted for its checkpoints: source, path, read-only."""
        self.mark = f"{pod.attempt_mark}/{pod.plan['name']}/{plan['name']}"

    @property
    def is_running(self) -> bool:
        return self.pid != 0

    def end(self, told: str) -> str:
        """How it ended, in words; `told` is what it said itself."""
        code = self.code or 0
        how = f"exit code {code}"
        if code > 128:
            with contextlib.suppress(ValueError):  # no signal of that number
                how = f"{signal.Signals(code - 128).name} (exit code {code})"
        if self.has_run_out_of_memory:
            limit = self.plan["memory_limit"] / 2**20
            how = f"exit code {code}: out of memory at its limit of {limit:g} MiB (OOMKilled)"
        where = f"{self.pod.plan['name']}/{self.plan['name']}"
        return f"{where} ended with {how}" + (f": {told}" if told else "")


class PodRun:
    """One pod of the current attempt."""

    def __init__(self, plan: Json, group: GroupRun, attempt_mark: str, folder: str) -> None:
        self.plan = plan
        self.group = group
        self.attempt_mark = attempt_mark
        self.folder = folder
        self.init = [Container(self, each) for each in plan["init"]]
        self.containers = [Container(self, each) for each in plan["containers"]]
        self.phase = "Pending"
        self.reason = ""
        self.code: int | None = None
        self.restarts = 0
        self.is_stopping = False
        self.volumes: dict[str, str] = {}
        self.shared_memory = ""
        """What its containers have as /dev/shm; empty where they have that of the machine."""
        self.gpus: list[int] = []

    def again(self) -> PodRun:
        """A new pod in the place of this one."""
        new = PodRun(self.plan, self.group, self.attempt_mark, self.folder)
        new.gpus = self.gpus
        return new

    @property
    def running(self) -> list[Container]:
        return [each for each in (*self.init, *self.containers) if each.is_running]

    @property
    def first_failed(self) -> Container:
        return next(each for each in (*self.init, *self.containers) if each.code)


class GroupRun:
    """One replicated job of the current attempt."""

    def __init__(self, plan: Json) -> None:
        self.plan = plan
        self.pods: list[PodRun] = []
        self.failures = 0
        self.is_started = False

    @property
    def is_complete(self) -> bool:
        return self.is_started and all(pod.phase == "Succeeded" for pod in self.pods)

    @property
    def is_ready(self) -> bool:
        return self.is_started and all(pod.phase in ("Running", "Succeeded") for pod in self.pods)

    @property
    def is_used_up(self) -> bool:
        """Whether it has failed more often than it may."""
        return bool(self.failures > self.plan["backoff_limit"])


def phase_of(groups: list[GroupRun]) -> str:
    """What the phases of all pods come to."""
    phases = {pod.phase for group in groups for pod in group.pods}
    if "Initializing" in phases:
        return "Initializing"
    return "Pending" if "Pending" in phases and "Running" not in phases else "Running"


def is_success(success: Json, groups: list[GroupRun]) -> bool:
    """Whether the job is done, as its success policy has it."""
    targets = success.get("targetReplicatedJobs") or [group.plan["name"] for group in groups]
    done = [group.is_complete for group in groups if group.plan["name"] in targets]
    return all(done) if success.get("operator", "All") == "All" else any(done)


def is_met(dependency: Json, groups: list[GroupRun]) -> bool:
    """Whether a group that waits for another one may start."""
    group = next(each for each in groups if each.plan["name"] == dependency["name"])
    return group.is_complete if dependency["status"] == "Complete" else group.is_ready


def back_off(times: int) -> float:
    """Seconds before the next start after so many failures: as the kubelet and the Job controller have it."""
    return 0.0 if times == 0 else min(10.0 * 2.0 ** (times - 1), 300.0)
