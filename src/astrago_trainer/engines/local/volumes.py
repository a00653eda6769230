"""The volumes of a pod as folders of this machine."""

from __future__ import annotations

import binascii
import os
from contextlib import suppress
from typing import Any

from astrago_trainer.engines.local import kernel
from astrago_trainer.engines.local.env import field_value

Json = dict[str, Any]

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - the place, not a temporary file


def make_volumes(pod: Json, folder: str, claims: str, *, can_mount: bool) -> dict[str, str]:
    """A folder for each volume, by name; what it holds is there when this returns."""
    return {
        volume["name"]: _make(volume, pod, f"{folder}/volumes/{volume['name']}", claims, can_mount)
        for volume in pod["volumes"]
    }


def make_shared_memory(folder: str) -> str:
    """What the containers of a pod share as /dev/shm, so that what they leave there goes with the pod.

    Larger than the 64 MiB of a cluster: half of the machine's memory, as on the machine itself.
    """
    path = f"{folder}/shm"
    os.makedirs(path, exist_ok=True)
    kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "mode=1777")
    return path


def is_read_only(volume: Json) -> bool:
    """For every mount of it: a claim that says so, and whatever is made of other objects."""
    return bool(volume.get("read_only")) or volume["kind"] == "files"


def remove_volumes(pod: Json, folder: str, *, can_mount: bool) -> None:
    """What the pod had to itself; claims and folders of the machine stay."""
    for volume in pod["volumes"]:
        if volume["kind"] == "empty" and volume["in_memory"] and can_mount:
            with suppress(OSError):  # was never mounted: the pod ended before
                kernel.unmount(f"{folder}/volumes/{volume['name']}")
    if can_mount:
        with suppress(OSError):
            kernel.unmount(f"{folder}/shm")
    import shutil  # brings three compressors along: not before the job has started

    shutil.rmtree(folder, ignore_errors=True)


def _make(volume: Json, pod: Json, path: str, claims: str, can_mount: bool) -> str:
    if volume["kind"] == "host":
        return _host_folder(volume)
    if volume["kind"] == "claim":
        path = f"{claims}/{volume['claim']}"
    os.makedirs(path, exist_ok=True)
    if volume["kind"] == "empty" and volume["in_memory"] and can_mount:
        size = f",size={volume['size']}" if volume["size"] else ""
        kernel.mount("tmpfs", path, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, f"mode=1777{size}")
    elif volume["kind"] == "empty":
        os.chmod(path, 0o777)  # noqa: S103 - as Kubernetes makes them; the folder above is ours alone
    for file in volume.get("files", ()):
        _write(f"{path}/{file['path']}", file, pod)
    return path


def _host_folder(volume: Json) -> str:
    path: str = volume["path"]
    if volume["type"] == "DirectoryOrCreate":
        os.makedirs(path, exist_ok=True)
    if not os.path.exists(path):
        raise OSError(f"volume {volume['name']}: {path} is not there")
    return path


def _write(path: str, file: Json, pod: Json) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    field = file.get("field")
    content = field_value(field, pod).encode() if field else binascii.a2b_base64(file["content"])
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
    handle = os.open(path, flags, 0o600)
    try:
        _write_all(handle, content)
        os.fchmod(handle, file["mode"])
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(handle, view) :]
