"""What a container may take of the machine, held by the kernel: control groups of version 2, or 1.

Where we may not make groups the job runs without, and is told so. Standard library only: the supervisor's.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from astrago_trainer.engines.local.processes import group_name

MOST_PROCESSES = 4096
"""Of a container, unless the engine was told otherwise; a fork bomb ends there instead of taking the machine along."""
_PERIOD = 100_000  # microseconds, as the kubelet has it
_BASE = "/sys/fs/cgroup"
_CONTROLLERS = ("cpu", "memory", "pids")
_PATIENCE = 5.0
"""Seconds in which killed processes are surely collected."""


class Group:
    """The control group of one start of a container; in version 1 one folder for each controller."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    @property
    def entrances(self) -> list[str]:
        """Files that take the number of a process."""
        return [f"{folder}/cgroup.procs" for folder in sorted(set(self._folders.values()))]

    def limit(self, *, cpu: int, memory: int, processes: int) -> None:
        """CPU in thousandths, memory in bytes; 0 of these for no limit."""
        is_one = len(set(self._folders.values())) == 1
        quota = max(cpu * _PERIOD // 1000, 1000)
        if cpu and is_one:
            self._set("cpu", "cpu.max", f"{quota} {_PERIOD}")
        elif cpu:
            self._set("cpu", "cpu.cfs_period_us", str(_PERIOD))
            self._set("cpu", "cpu.cfs_quota_us", str(quota))
        if memory:
            self._set("memory", "memory.max" if is_one else "memory.limit_in_bytes", str(memory))
            with suppress(OSError):  # without swap there is nothing to forbid
                self._set("memory", "memory.swap.max" if is_one else "memory.swappiness", "0")
        if memory and is_one:
            self._set("memory", "memory.oom.group", "1")
        self._set("pids", "pids.max", str(processes))

    @property
    def has_run_out_of_memory(self) -> bool:
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError, KeyError):
                text = _read(f"{self._folders['memory']}/{name}")
                return dict(line.split() for line in text.splitlines()).get("oom_kill", "0") != "0"
        return False

    def remove(self) -> bool:
        """Whether it is gone. It is not as long as a process of it is being collected."""
        for folder in set(self._folders.values()):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                continue
            except OSError:
                return False
        return True

    def _set(self, controller: str, name: str, value: str) -> None:
        _write(f"{self._folders[controller]}/{name}", value)


class Limits:
    """Makes the groups of one job, and removes them."""

    def __init__(self, most_processes: int = MOST_PROCESSES, base: str = _BASE) -> None:
        self._left: list[Group] = []
        self._most_processes = most_processes
        self.trouble = ""
        """Why nothing can be limited."""
        try:
            self._parents = _parents(base)
            self.remove(self.make(f"probe/{os.getpid()}", cpu=1000, memory=2**30))
        except (OSError, KeyError) as error:
            self._parents = {}
            self.trouble = str(error)

    def make(self, mark: str, *, cpu: int, memory: int) -> Group | None:
        """A group for one start of a container; None where there are none."""
        if self.trouble:
            return None
        folders = {each: f"{parent}/{group_name(mark)}" for each, parent in self._parents.items()}
        for folder in set(folders.values()):
            with suppress(FileExistsError):
                os.mkdir(folder)
        group = Group(folders)
        group.limit(cpu=cpu, memory=memory, processes=self._most_processes)
        return group

    def remove(self, group: Group | None) -> None:
        """Now or, where it is still needed, with a later one."""
        if group is not None:
            self._left.append(group)
        self._left = [each for each in self._left if not each.remove()]

    def remove_all(self, prefix: str) -> None:
        """Those with such a mark: at the end of a job, or when its supervisor is gone. Their processes are killed.

        A group is in use until its last process is collected, which the kernel tells nobody of.
        """
        last_try = time.monotonic() + _PATIENCE
        while self._remove_some(prefix) and time.monotonic() < last_try:
            time.sleep(0.005)

    def _remove_some(self, prefix: str) -> bool:
        """Whether some are left."""
        is_left = False
        for parent in set(self._parents.values()):
            for name in os.listdir(parent):
                if name.startswith(group_name(prefix)):
                    try:
                        os.rmdir(f"{parent}/{name}")
                    except OSError:
                        is_left = True
        return is_left


def _parents(base: str) -> dict[str, str]:
    """For each controller the folder in which groups can be made, below what this process has itself."""
    own = _own_groups("/proc/self/cgroup")
    if os.path.exists(f"{base}/cgroup.controllers"):
        parent = _parent_of_version_2(base, own[""])
        return dict.fromkeys(_CONTROLLERS, parent)
    return {each: f"{base}/{each}{own[each].rstrip('/')}" for each in _CONTROLLERS}


def _own_groups(path: str) -> dict[str, str]:
    """Controller -> the group of this process; the empty name is that of version 2."""
    lines = (line.split(":", 2) for line in _read(path).splitlines())
    return {each: path for _, names, path in lines for each in names.split(",")}


def _parent_of_version_2(base: str, own: str) -> str:
    """The nearest group above that may have groups with limits. A group has either those, or processes."""
    here = own.rstrip("/")
    while True:
        folder = f"{base}{here}"
        with suppress(OSError):
            _write(f"{folder}/cgroup.subtree_control", "+cpu +memory +pids")
        granted = _read(f"{folder}/cgroup.subtree_control").split()
        if set(_CONTROLLERS) <= set(granted) and os.access(folder, os.W_OK):
            return folder
        if not here:
            raise PermissionError(1, "no group may be made here")
        here = here.rpartition("/")[0]


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
