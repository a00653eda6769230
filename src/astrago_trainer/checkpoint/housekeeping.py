"""Removes what is not needed any more: older checkpoints, and what killed runs have left.

Nothing that a readable manifest names is removed here, except together with its whole checkpoint, and that only when
enough newer ones are whole.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from pathlib import Path

from .durable import remove
from .errors import Damaged
from .manifest import MANIFEST, SET_ASIDE, check, owner_of, read, step_folders
from .run import Run

_TRASH = ".trash-"


def tidy(run: Run, *, spared_step: int) -> None:
    """Remove what this rank left in earlier runs, and its parts that the other ranks have never completed.

    The part of `spared_step`, this run's last one, stays: a slower rank may be about to complete it.
    """
    _remove_own(run, run.directory, [path.name for path in run.directory.iterdir()])
    for step, folder in step_folders(run.directory):
        with contextlib.suppress(FileNotFoundError):  # another rank may be pruning
            tidy_folder(run, folder, is_spared=step == spared_step)


def tidy_folder(run: Run, folder: Path, *, is_spared: bool = False) -> None:
    names = [path.name for path in folder.iterdir()]
    used: set[str] = set()
    if MANIFEST in names or SET_ASIDE in names:
        try:
            used = {part.file for part in read(folder).parts}
        except Damaged:
            return  # somebody may want to look at it
    spared = ("", run.number) if is_spared else ()
    _remove_own(run, folder, [name for name in names if name not in used], spared)


def _remove_own(run: Run, folder: Path, names: list[str], spared: tuple[str, ...] = ()) -> None:
    # The record before the part that it speaks of.
    for name in sorted(names, key=lambda name: (not name.endswith(".json"), name)):
        owner = owner_of(name)
        if owner is not None and run.owns(owner[0]) and owner[1] not in spared:
            remove(folder / name)


def prune(run: Run, step: int) -> None:
    """Keep the newest checkpoints up to a step that has just been completed, and remove the older ones.

    Later steps are left alone: after a start from an older one they are of another course of training, and this one
    replaces them when it gets there.
    """
    for path in run.directory.iterdir():
        if path.name.startswith(_TRASH):  # left by a run that was killed here
            shutil.rmtree(path, ignore_errors=True)
    kept = 0
    for found, folder in step_folders(run.directory):
        if found > step:
            continue
        if kept < run.keep:
            kept += _is_whole(folder)
        else:
            _discard(folder)


def _is_whole(folder: Path) -> bool:
    try:
        check(folder, read(folder))
    except Damaged:
        return False
    return True


def _discard(folder: Path) -> None:
    # Renamed first: at no moment is there a checkpoint with a manifest and without its parts.
    trash = folder.with_name(f"{_TRASH}{folder.name}-{secrets.token_hex(4)}")
    try:
        folder.rename(trash)
    except FileNotFoundError:
        return  # another rank was faster
    shutil.rmtree(trash, ignore_errors=True)
