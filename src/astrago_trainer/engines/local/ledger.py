"""Who holds how much of this machine, and who waits: one file for all jobs, under one lock.

Every supervisor enters its job here and waits for its turn, so that no server is needed for the order. A holder is
named by pid and start time; one that has died holds nothing any more.
"""

from __future__ import annotations

import _socket as socket  # the other one builds enums for longer than all this takes
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from astrago_trainer.engines.local.folder import is_alive, read_json, write_json
from astrago_trainer.engines.local.notices import Notice, Watch

Json = dict[str, Any]

PREFERRED_PORT = 29500


class Ledger:
    """The file `ledger.json` of a data folder."""

    def __init__(self, data: str, machine: Json, table: str = "/proc") -> None:
        self._folder = data + "/ledger"
        self._table = table
        self._path = data + "/ledger.json"
        self._machine = machine
        self._notice: Notice | None = None

    def watch(self) -> Watch:
        """News of those who take their turn or leave, also of those who die."""
        return Watch(self._folder)

    def enter(self, uid: str, who: Json, needs: Json) -> None:
        """Takes a place at the end of the queue; a job that is in it already keeps its place."""
        self._notice = self._notice or Notice(self._folder, uid)
        with self._entries() as entries:
            if all(entry["uid"] != uid for entry in entries):
                entries.append({"uid": uid, "who": who, "needs": needs, "holds": None})

    def take(self, uid: str, *, ports: int) -> Json | str:
        """What the job may use, if it is its turn and there is room; else why not, in numbers."""
        with self._entries() as entries:
            taken = self._take(uid, entries, ports)
            is_awaited = any(entry["holds"] is None for entry in entries)
        if is_awaited and not isinstance(taken, str) and self._notice is not None:
            self._notice.tell()  # the next one may have looked before us, and found us in its way
        return taken

    def _take(self, uid: str, entries: list[Json], ports: int) -> Json | str:
        free = self._free(entries)
        for entry in entries:
            if entry["uid"] == uid:
                if entry["holds"] is None:
                    short = _shortage(entry["needs"], free, self._machine)
                    if short:
                        return short
                    entry["holds"] = self._grant(entry["needs"], free, entries, ports)
                return dict(entry["holds"])
            if entry["holds"] is None:
                return "another job has waited for longer; jobs start in their order"
        return "the job is not in the queue"

    def leave(self, uid: str) -> None:
        with self._entries() as entries:
            entries[:] = [entry for entry in entries if entry["uid"] != uid]
        if self._notice is not None:
            self._notice.withdraw()

    def held(self) -> list[tuple[str, Json]]:
        """What jobs have now, by uid."""
        with self._entries() as entries:
            return [(each["uid"], dict(each["holds"])) for each in entries if each["holds"]]

    @contextmanager
    def _entries(self) -> Iterator[list[Json]]:
        """Under the lock, without the dead; written back if something changed."""
        lock = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = (read_json(self._path) or {"jobs": []})["jobs"]
            entries = [dict(entry) for entry in before if is_alive(entry["who"], self._table)]
            yield entries
            if entries != before:
                write_json(self._path, {"jobs": entries})
        finally:
            os.close(lock)

    def _free(self, entries: list[Json]) -> Json:
        held = [entry["holds"] for entry in entries if entry["holds"] is not None]
        used = {number for each in held for number in each["gpus"]}
        return {
            "cpu": self._machine["cpu"] - sum(each["cpu"] for each in held),
            "memory": self._machine["memory"] - sum(each["memory"] for each in held),
            "gpus": [number for number in self._machine["gpus"] if number not in used],
        }

    def _grant(self, needs: Json, free: Json, entries: list[Json], ports: int) -> Json:
        taken = {port for entry in entries if entry["holds"] for port in entry["holds"]["ports"]}
        return {
            "cpu": needs["cpu"],
            "memory": needs["memory"],
            "gpus": free["gpus"][: needs["gpus"]],
            "ports": _free_ports(ports, taken),
        }


def _shortage(needs: Json, free: Json, machine: Json) -> str:
    """Empty when there is room."""
    told = []
    for name, unit in (("cpu", 1000), ("memory", 2**30)):
        if needs[name] > free[name]:
            asked, left, all_ = (each[name] / unit for each in (needs, free, machine))
            what = "CPU" if name == "cpu" else "GiB of memory"
            told.append(f"{asked:g} {what} needed, {max(left, 0):.4g} of {all_:.4g} free")
    if needs["gpus"] > len(free["gpus"]):
        told.append(
            f"{needs['gpus']} GPU needed, {len(free['gpus'])} of {len(machine['gpus'])} free"
        )
    return "; ".join(told)


def _free_ports(count: int, taken: set[int]) -> list[int]:
    """The first is the one that torch would use, if nobody has it; all differ from those of other jobs."""
    ports: list[int] = []
    wish = PREFERRED_PORT
    while len(ports) < count:
        probe = socket.socket()
        try:
            probe.bind(("", wish))
            port = probe.getsockname()[1]
            if port not in taken and port not in ports:
                ports.append(port)
        except OSError:
            pass
        finally:
            probe.close()
        wish = 0
    return ports
