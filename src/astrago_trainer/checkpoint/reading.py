"""Finds the checkpoint to go on from, and loads it. Which one that is depends on the bytes in the directory alone.

That is how all ranks come to the same step without a word to each other: each one reads what the others read.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from .errors import Damaged, LoadFailed
from .formats import load
from .manifest import MANIFEST, SET_ASIDE, Manifest, check, read, step_folders, step_of
from .run import Place

Verify = Literal["all", "own"]

log = logging.getLogger("astrago_trainer.checkpoint")


class Checkpoint:
    """One complete, verified checkpoint."""

    def __init__(self, path: Path, manifest: Manifest, place: Place) -> None:
        self.path = path
        self.step = manifest.step
        self.metadata = manifest.metadata
        """What rank 0 gave to `save`."""
        self.world_size = manifest.world_size
        """Of the run that saved it."""
        self._manifest = manifest
        self._place = place

    def __repr__(self) -> str:
        return f"<Checkpoint step {self.step} of {self.world_size} ranks in {self.path}>"

    def load(
        self, *, rank: int | None = None, trusted: bool = False, map_location: Any = "cpu"
    ) -> Any:
        """Give back this rank's state, or that of the rank named.

        Tensors come to the CPU unless `map_location` says otherwise: `load_state_dict` moves them. Without `trusted`
        only tensors and plain values are read; a pickle of anything else can run code, whoever wrote it.
        """
        part = self._manifest.parts[self._index(rank)]
        return load(self.path / part.file, part.format, trusted=trusted, map_location=map_location)

    def _index(self, rank: int | None) -> int:
        if self._manifest.is_replicated:
            return 0
        if rank is None:
            if self.world_size != self._place.world_size:
                raise LoadFailed(
                    f"{self.path} was saved by {self.world_size} ranks, and this run has {self._place.world_size}: "
                    f"start {self.world_size}, or put the parts together by load(rank=0) to "
                    f"load(rank={self.world_size - 1})."
                )
            rank = self._place.rank
        if not 0 <= rank < self.world_size:
            raise LoadFailed(
                f"{self.path} has no rank {rank}: it was saved by ranks 0 to {self.world_size - 1}."
            )
        return rank


def find_newest(
    directory: Path,
    place: Place,
    *,
    verify: Verify = "all",
    accept: Callable[[Manifest], bool] = lambda _: True,
) -> Checkpoint | None:
    """The one with the highest step that is complete and verified; one warning for each that is newer and is not."""
    try:
        folders = step_folders(directory)
    except OSError as error:
        raise LoadFailed(
            f"{directory} cannot be listed: {error.strerror or error}. Make it readable for the training's user."
        ) from error
    for _, folder in folders:
        try:
            manifest = read(folder)
            if accept(manifest):
                _verify(folder, manifest, place, verify)
                return Checkpoint(folder, manifest, place)
        except _OwnPartDamaged:
            raise
        except Damaged as damage:
            log.warning("rank %d skips the checkpoint %s: %s", place.rank, folder, damage)
    return None


def find_requested(path: Path, place: Place) -> Checkpoint:
    """The checkpoint that the path names, or the newest one in it; LoadFailed if there is none that is whole."""
    request = f"ASTRAGO_RESUME_FROM is {path}"
    remedy = "Name the folder of a complete checkpoint, or a directory with some, or unset it."
    if step_of(path) is not None or os.access(path / MANIFEST, os.F_OK):
        try:
            manifest = read(path)
            _verify(path, manifest, place, "all")
        except Damaged as damage:
            raise Damaged(f"{request}, which is not whole: {damage}. {remedy}") from damage
        return Checkpoint(path, manifest, place)
    found = find_newest(path, place)
    if found is None:
        raise LoadFailed(f"{request}, where no complete checkpoint is. {remedy}")
    return found


class _OwnPartDamaged(Damaged):
    """Only this rank has seen it: to take an older one alone would part it from the others."""


def _verify(folder: Path, manifest: Manifest, place: Place, verify: Verify) -> None:
    check(folder, manifest)
    is_shared_work = verify == "own" and 1 < manifest.writers == place.world_size
    if not is_shared_work:
        check(folder, manifest, hashed=range(manifest.writers))
        return
    try:
        check(folder, manifest, hashed=[place.rank])
    except Damaged as damage:
        _set_aside(folder)
        raise _OwnPartDamaged(
            f"{folder} is damaged: {damage}. It is set aside ({SET_ASIDE}). Restart all ranks: they will agree on "
            'an older one. latest(verify="all") does so without a restart, and reads all parts on every rank.'
        ) from damage


def _set_aside(folder: Path) -> None:
    try:
        (folder / MANIFEST).replace(folder / SET_ASIDE)
    except OSError as error:
        log.warning("%s cannot be set aside: %s", folder, error.strerror or error)
