"""What running jobs hold of this machine: one file for all of them, under one lock.

A holder is named by pid and start time; a dead one holds nothing. The process that starts a job takes its share first
and hands it to the job's supervisor, so that two starters never give away the same CPU.
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

    def watch(self) -> Watch:
        """News of holders that leave or die."""
        return Watch(self._folder)

    def notice(self, uid: str) -> Notice:
        """Held open by the holder: its end, by a kill too, is news for all that watch."""
        return Notice(self._folder, uid)

    def take(self, uid: str, who: Json, plan: Json) -> Json | str:
        """What the job may use, now in the name of `who`; what is missing, in numbers, when it does not fit.

        A job that already holds its share keeps it, whichever process took it.
        """
        with self._entries() as entries:
            held = next((entry for entry in entries if entry["uid"] == uid), None)
            if held is not None:
                held["who"] = who
                return dict(held["holds"])
            free, needs = self._free(entries), plan["needs"]
            if short := shortage(needs, free, self._machine):
                return short
            holds = self._grant(needs, free, entries, ports_of(plan))
            entries.append({"uid": uid, "who": who, "namespace": plan["namespace"], "holds": holds})
            return dict(holds)

    def shortage(self, needs: Json) -> str:
        """What is missing now for these needs; empty when they fit."""
        with self._entries() as entries:
            return shortage(needs, self._free(entries), self._machine)

    def assign(self, uid: str, who: Json) -> None:
        """From now on the share is this process's, and goes with it."""
        with self._entries() as entries:
            for entry in entries:
                if entry["uid"] == uid:
                    entry["who"] = who

    def leave(self, uid: str) -> None:
        with self._entries() as entries:
            entries[:] = [entry for entry in entries if entry["uid"] != uid]

    def held(self) -> list[Json]:
        """What jobs have now: `uid`, `namespace` and `holds` of each."""
        with self._entries() as entries:
            return [dict(entry) for entry in entries]

    @contextmanager
    def _entries(self) -> Iterator[list[Json]]:
        """Under the lock, without the dead; written back if something changed."""
        lock = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = (read_json(self._path) or {"jobs": []})["jobs"]
            # An earlier release also kept those that waited here, without a share.
            entries = [
                {"namespace": "", **entry}
                for entry in before
                if entry["holds"] and is_alive(entry["who"], self._table)
            ]
            yield entries
            if entries != before:
                write_json(
                    self._path, {"jobs": entries}, is_durable=False
                )  # processes end with the power
        finally:
            os.close(lock)

    def _free(self, entries: list[Json]) -> Json:
        held = [entry["holds"] for entry in entries]
        used = {number for each in held for number in each["gpus"]}
        return {
            "cpu": self._machine["cpu"] - sum(each["cpu"] for each in held),
            "memory": self._machine["memory"] - sum(each["memory"] for each in held),
            "gpus": [number for number in self._machine["gpus"] if number not in used],
        }

    def _grant(self, needs: Json, free: Json, entries: list[Json], ports: int) -> Json:
        taken = {port for entry in entries for port in entry["holds"]["ports"]}
        return {
            "cpu": needs["cpu"],
            "memory": needs["memory"],
            "gpus": free["gpus"][: needs["gpus"]],
            "ports": _free_ports(ports, taken),
        }


def ports_of(plan: Json) -> int:
    """How many ports of the machine a job needs: one to meet, and one for each pod of its largest group."""
    return 1 + max((group["count"] for group in plan["groups"]), default=0)


def shortage(needs: Json, free: Json, machine: Json) -> str:
    """What is missing, in numbers; empty when the needs fit."""
    missing = []
    for name, unit in (("cpu", 1000), ("memory", 2**30)):
        if needs[name] > free[name]:
            asked, left, all_ = (each[name] / unit for each in (needs, free, machine))
            what = "CPU" if name == "cpu" else "GiB of memory"
            missing.append(f"{asked:g} {what} needed, {max(left, 0):.4g} of {all_:.4g} free")
    if needs["gpus"] > len(free["gpus"]):
        missing.append(
            f"{needs['gpus']} GPU needed, {len(free['gpus'])} of {len(machine['gpus'])} free"
        )
    return "; ".join(missing)


def _free_ports(count: int, taken: set[int]) -> list[int]:
    """The first is the one that torch would use, if nobody has it; all differ from those of other jobs."""
    ports: list[int] = []
    wanted = PREFERRED_PORT
    while len(ports) < count:
        probe = socket.socket()
        try:
            probe.bind(("", wanted))
            port = probe.getsockname()[1]
            if port not in taken and port not in ports:
                ports.append(port)
        except OSError:
            pass
        finally:
            probe.close()
        wanted = 0
    return ports
