"""The folder of a job: what its supervisor is told, what it tells, and the files of its pods.

Everything a later server needs to know is in here, so that it finds the job again without having seen it start.
Imported by the supervisor: standard library only, and little of it.
"""

from __future__ import annotations

from typing import Any

from astrago_trainer.engines.local.formats import read_json, write_json
from astrago_trainer.logs.layout import place_in_job

__all__ = ["JobFolder", "identity", "is_alive", "notice_name", "read_json", "write_json"]

Json = dict[str, Any]

_EXITING = 0x4
"""PF_EXITING of the kernel: what runs nothing any more, though it may not be a zombie yet. Its files are closed after
this is set and before it is one, so that whoever is woken by that would find it alive."""


class JobFolder:
    """Paths below the folder of one job."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def plan(self) -> str:
        """What is to run; written once, before the supervisor starts."""
        return self.path + "/plan.json"

    @property
    def installs(self) -> str:
        """Which environments are installed before its pods start, and how; gone when they are there."""
        return self.path + "/installs.json"

    @property
    def wish(self) -> str:
        """What is asked of the supervisor beyond running: `suspend` or `stop`."""
        return self.path + "/wish"

    @property
    def supervisor(self) -> str:
        """Which process it is: pid, start and boot. Has no version, so that every release knows a running one."""
        return self.path + "/supervisor.json"

    @property
    def supervisor_log(self) -> str:
        """What it should not have said."""
        return self.path + "/supervisor.log"

    @property
    def status(self) -> str:
        """How the job stands; replaced as a whole at each change."""
        return self.path + "/status.json"

    @property
    def journal(self) -> str:
        """What has happened, a line each; only ever longer."""
        return self.path + "/journal.jsonl"

    @property
    def programs(self) -> str:
        """Programs that stand in for those of an image."""
        return self.path + "/bin"

    @property
    def warm_programs(self) -> str:
        return self.path + "/warm"

    def log(self, attempt: int, pod: str, container: str) -> str:
        return f"{self.path}/{place_in_job(attempt, pod, container)}"

    def pod(self, attempt: int, pod: str) -> str:
        """What a pod of an attempt has to itself."""
        return f"{self.path}/pods/{attempt}/{pod}"


def notice_name(namespace: str, name: str, uid: str) -> str:
    """Of a job's news, from which the job can be told; no name of Kubernetes has a `~`."""
    return f"{namespace}~{name}~{uid}"


def identity(pid: int, table: str = "/proc") -> Json | None:
    """Names a process for good: pids are used again, their start times in the same boot are not. None if it ended.

    `table` is the process table that the pid is of: a supervisor in its own namespace still knows the machine's.
    """
    try:
        with open(f"{table}/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
            boot = file.read().strip()
    except OSError:
        return None
    if fields[0] in "ZX" or int(fields[6]) & _EXITING:
        return None
    return {"pid": pid, "start": int(fields[19]), "boot": boot}


def is_alive(who: Json | None, table: str = "/proc") -> bool:
    return who is not None and "pid" in who and identity(who["pid"], table) == who
