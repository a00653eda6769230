"""Folders for checkpoints that no volume covers: they outlive attempts and jobs. Standard library only.

On a cluster such a folder goes with its pod, and the preview warns of it. Here the machine has a disk: a path of the
machine is used as it is, any other one is a folder of the namespace, the same for all of its jobs. So a restart, a
clone and `resume_from` find what was saved, and a deletion of the job leaves it, as it leaves claims.
"""

from __future__ import annotations

import os
from typing import Any

Json = dict[str, Any]
Mount = tuple[str, str, bool]

FOLDER = "_checkpoints"
"""Beside the claims of the namespace; no claim can have this name."""


def lasting_mounts(container: Json, claims: str) -> list[Mount]:
    """Source, path, read-only of what is to be mounted for a container of a plan; raises OSError."""
    found: list[Mount] = []
    for path, is_made in (
        (container.get("checkpoints", ""), True),
        (container.get("resume_from", ""), False),
    ):
        taken = [each["path"] for each in container["mounts"]] + [each[1] for each in found]
        if path and not any(_is_below(path, each) for each in taken):
            source = _source(path, claims, is_made=is_made)
            if source:
                found.append((source, path, False))
    return found


def _source(path: str, claims: str, *, is_made: bool) -> str:
    """The folder to mount at `path`; empty where the machine's own is used, or there is nothing to resume from."""
    if os.path.isdir(path):
        return ""
    if is_made and _can_be_made(path):
        os.makedirs(path)
        return ""
    folder = f"{claims}/{FOLDER}{path}"
    if is_made:
        os.makedirs(folder, exist_ok=True)
    return folder if os.path.isdir(folder) else ""


def _can_be_made(path: str) -> bool:
    """Whether it lies in a folder that the user of this process has on the machine; the root is none's."""
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        parent = os.path.dirname(parent)
    return parent != "/" and os.path.isdir(parent) and os.access(parent, os.W_OK | os.X_OK)


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{os.path.normpath(folder).rstrip('/')}/")
