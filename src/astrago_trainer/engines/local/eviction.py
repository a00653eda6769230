"""Which pod must go because of the files that it writes, as the kubelet decides it.

A volume may be limited in size. On a disk that has less than the reserve left, a pod whose temporary files take more
than that is evicted and its files are removed, so that one job cannot stop the others. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from astrago_trainer.logs.limits import disk_of

Json = dict[str, Any]

_BLOCK = 512


class Eviction(NamedTuple):
    """Why a pod must go."""

    pod: str
    volume: str
    """The one that is too large; empty when the disk is nearly full."""
    used: int
    limit: int
    """Of the volume, or the reserve of the disk; both in bytes."""

    @property
    def message(self) -> str:
        used, limit = _mebibytes(self.used), _mebibytes(self.limit)
        if self.volume:
            return f"pod {self.pod} was evicted: volume {self.volume} holds {used}, and its limit is {limit}"
        return (
            f"pod {self.pod} was evicted: its temporary files hold {used} of a disk "
            f"that has less than its reserve of {limit} left"
        )


def find_eviction(pods: Iterable[tuple[Json, str]], reserve: int) -> Eviction | None:
    """The first pod that must go; each is its plan and its folder. Files are only counted where it may matter."""
    for plan, folder in pods:
        for volume in plan["volumes"]:
            if volume["kind"] == "empty" and volume["size"] and not volume["in_memory"]:
                used = usage(f"{folder}/volumes/{volume['name']}")
                if used > volume["size"]:
                    return Eviction(plan["name"], volume["name"], used, volume["size"])
        disk = disk_of(folder)
        kept = disk.reserve(reserve)
        if disk.free < kept and (used := usage(folder)) > kept:
            return Eviction(plan["name"], "", used, kept)
    return None


def usage(folder: str) -> int:
    """Bytes on the disk of all files below; those of other file systems, mounted below, do not count."""
    total, folders = 0, [folder]
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return 0
    while folders:
        try:
            entries = list(os.scandir(folders.pop()))
        except OSError:  # it went meanwhile
            continue
        for entry in entries:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if found.st_dev != device:
                continue
            total += found.st_blocks * _BLOCK
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    return total


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.4g} MiB"
