"""The checkpoints of a job, by their manifests: nothing that a tenant wrote is ever unpickled here.

The folder is on a claim. Where the engine keeps claims in folders of this machine they are looked into, never through a
link that leads out of the claim.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from astrago_trainer.checkpoint.errors import Damaged
from astrago_trainer.checkpoint.manifest import MANIFEST, read, step_folders
from astrago_trainer.engines.base import Engine, KeepsClaims
from astrago_trainer.engines.local.lasting import FOLDER
from astrago_trainer.server.problems import ApiError
from astrago_trainer.service.view import time_to_text

SHOWN = 100
_MOST_MANIFEST = 16 << 20


def list_checkpoints(engine: Engine, namespace: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Newest first; touches files, so it is for a thread."""
    directory = spec.get("checkpoints")
    if not directory:
        return _nothing(None, "the job was not told where to save checkpoints (checkpoints).")
    place = _claim(spec, PurePosixPath(directory))
    if place is None and isinstance(engine, KeepsClaims):
        place = _lasting(engine.claims(namespace), spec, PurePosixPath(directory))
    if place is None:
        return _nothing(
            directory, "the folder is on no claim: what is saved there goes with the pod."
        )
    if not isinstance(engine, KeepsClaims):
        detail = f"the {engine.name} engine cannot look into claims."
        raise ApiError(422, "unsupported", detail, ability="checkpoints")
    claim, inside = place
    root = engine.claims(namespace) / claim
    folder = root / inside
    if not _is_within(root, folder):
        return _nothing(directory, "the folder is a link that leads out of its claim.")
    items = [_item(step, each, directory) for step, each in step_folders(folder)[:SHOWN]]
    return {"directory": directory, "items": items, "note": ""}


def _nothing(directory: str | None, note: str) -> dict[str, Any]:
    return {"directory": directory, "items": [], "note": note}


def _claim(spec: Mapping[str, Any], path: PurePosixPath) -> tuple[str, PurePosixPath] | None:
    """The claim that a path lies on, and where on it; of several mounts the innermost counts."""
    volumes = [
        each
        for each in spec.get("volumes", ())
        if PurePosixPath(each["mount_path"]) in (path, *path.parents)
    ]
    if not volumes:
        return None
    volume = max(volumes, key=lambda each: len(each["mount_path"]))
    if volume.get("claim") is None:
        return None
    inside = path.relative_to(volume["mount_path"])
    return volume["claim"], PurePosixPath(volume.get("sub_path") or "") / inside


def _lasting(
    claims: Path, spec: Mapping[str, Any], path: PurePosixPath
) -> tuple[str, PurePosixPath] | None:
    """The folder of the namespace for checkpoints that no volume covers, once there is one."""
    around = (PurePosixPath(each["mount_path"]) for each in spec.get("volumes", ()))
    inside = path.relative_to("/")
    is_covered = any(each in (path, *path.parents) for each in around)
    is_there = not is_covered and ".." not in path.parts and (claims / FOLDER / inside).is_dir()
    return (FOLDER, inside) if is_there else None


def _is_within(root: Path, folder: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _item(step: int, folder: Path, directory: str) -> dict[str, Any]:
    item = {"step": step, "path": f"{directory}/{folder.name}"}
    try:
        if folder.is_symlink():
            raise Damaged("it is a link")
        found = (folder / MANIFEST).lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_MANIFEST:
            raise Damaged(f"{MANIFEST} is no file, or far too large")
        manifest, created = read(folder), found.st_mtime
    except FileNotFoundError:
        return {**item, "state": "incomplete", "bytes": None, "created_at": None}
    except Damaged as error:
        return {**item, "state": f"damaged: {error}", "bytes": None, "created_at": None}
    except OSError as error:
        return {**item, "state": f"unreadable: {error.strerror}", "bytes": None, "created_at": None}
    size = sum(part.size for part in manifest.parts)
    return {**item, "state": "complete", "bytes": size, "created_at": time_to_text(created)}
