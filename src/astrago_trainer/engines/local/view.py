"""A container's own view of the file system: the machine's, with the pod's volumes where the job wants them.

A fresh tmpfs becomes the root, and every entry of the old root is bound into it. So there is room for mount points that
the machine does not have, and nothing outside changes. A folder that lacks a mount point is laid out the same way: an
empty tmpfs over it, its entries bound in. Runs in a child between fork and exec, in a mount namespace of its own.
"""

from __future__ import annotations

import os
import stat

from astrago_trainer.engines.local import kernel

OLD_ROOT = ".astrago-old-root"


class View:
    """Built below `root`, a folder of ours; entered at the end."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._laid_out: set[str] = set()
        self._volumes: list[str] = []
        kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
        self._lay_out("/")

    def add(self, source: str, path: str, *, read_only: bool = False) -> None:
        """The folder or file `source` at `path`."""
        is_folder = os.path.isdir(source)
        kernel.bind(source, self._mount_point(path, is_folder=is_folder), read_only=read_only)
        if is_folder:
            self._volumes.append(_real(path))

    def make_room(self, path: str, *, is_folder: bool) -> None:
        """A place for something at `path`, or a folder that the machine may not have.

        For all of them before the first is added: a folder that is laid out later would hide what is in it already.
        """
        self._mount_point(path, is_folder=is_folder)

    def enter(self) -> None:
        """Makes it this process's root; the old one is out of reach."""
        os.mkdir(self._root + "/" + OLD_ROOT)
        kernel.pivot_root(self._root, self._root + "/" + OLD_ROOT)
        os.chdir("/")
        kernel.unmount("/" + OLD_ROOT)
        os.rmdir("/" + OLD_ROOT)

    def _mount_point(self, path: str, *, is_folder: bool) -> str:
        """The place in the new root for something at `path`; made where the machine has none."""
        real = _real(path)
        here = ""
        for step in real.strip("/").split("/"):
            parent, here = here or "/", f"{here}/{step}"
            if os.path.lexists(self._root + here):
                continue
            if not self._is_ours(parent):
                self._lay_out(parent)
            if here == real and not is_folder:
                os.close(os.open(self._root + here, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
            else:
                os.mkdir(self._root + here)
        return self._root + real

    def _is_ours(self, folder: str) -> bool:
        """Whether something may be made in it: laid out already, new, or part of a volume."""
        inside = folder.rstrip("/") + "/"
        if folder in self._laid_out or any(
            inside.startswith(v.rstrip("/") + "/") for v in self._volumes
        ):
            return True
        return not os.path.lexists(folder)

    def _lay_out(self, folder: str) -> None:
        target = self._root + folder.rstrip("/")
        mode = stat.S_IMODE(os.stat(folder).st_mode)
        kernel.mount("tmpfs", target, "tmpfs", kernel.MS_NOSUID, f"mode={mode:o}")
        self._laid_out.add(folder)
        for entry in os.scandir(folder):
            place = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
                continue
            if entry.is_dir():
                os.mkdir(place)
            else:
                os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            try:
                kernel.bind(entry.path, place)
            except (
                OSError
            ):  # e.g. a mount of another user: it is missing in here, as it was out of reach before
                os.rmdir(place) if entry.is_dir() else os.unlink(place)


def _real(path: str) -> str:
    return os.path.realpath(path)
