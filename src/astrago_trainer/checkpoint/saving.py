"""Saves one rank's part so that a kill at any moment leaves the old state or the new one.

The order on the disk makes it so. A rank forces its part to the disk under a name that nobody has used, and then puts
down a record. Whoever finds the records of all ranks writes the manifest, by one rename: before it, the step does not
exist; after it, every byte that it names is durable. No rank waits for another, and none has to know who is the last:
whoever puts down the last record sees all of them.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .durable import HashingFile, remove, replace, sync_folder
from .errors import Damaged, RanksDisagree, SaveFailed
from .formats import dump
from .housekeeping import prune, tidy, tidy_folder
from .manifest import (
    MANIFEST,
    Manifest,
    Part,
    check,
    decode,
    part_name,
    record_name,
    step_folder,
    temporary_name,
)
from .run import Run

log = logging.getLogger("astrago_trainer.checkpoint")


class Save:
    """One rank's share in one checkpoint: `write` copies the state, `finish` makes it last."""

    def __init__(self, run: Run, step: int, kind: str, *, is_hashing: bool) -> None:
        """`is_hashing`: hash the part while it is written, rather than in `finish`."""
        self.folder = step_folder(run.directory, step)
        self._run = run
        self._step = step
        self._kind = kind
        self._name = part_name(run.place.rank, run.number, kind)
        temporary = self.folder / temporary_name(run.place.rank, run.number, self._name)
        self._file = HashingFile(temporary, is_hashing=is_hashing)
        self._least_size = 0
        self._is_announced = False

    def write(self, state: object, *, last_step: int, last_size: int) -> None:
        """Copy the state to the system's file cache; it may change afterwards."""
        self._least_size = last_size
        with self._explained():
            _make_folder(self._run.directory)
            _complete_late(self._run, last_step)
            tidy(self._run, spared_step=last_step)  # before writing, because it makes room
            self.folder.mkdir(exist_ok=True)
            self._file.open()
            dump(state, self._kind, self._file)

    def finish(self, metadata: dict[str, Any]) -> int:
        """Make the part durable, announce it, and complete the checkpoint if it was the last; give its size."""
        with self._explained():
            self._file.sync()
            self._file.close()
            digest = self._file.sha256()
            self._file.path.replace(self.folder / self._name)
            sync_folder(self.folder)
            part = Part(self._run.place.rank, self._name, self._kind, self._file.size, digest)
            self._announce(part, metadata)
            complete(self._run, self._step)
        return self._file.size

    def _announce(self, part: Part, metadata: dict[str, Any]) -> None:
        run = self._run
        record = Manifest(
            step=self._step,
            attempt=run.attempt,
            world_size=run.place.world_size,
            is_replicated=run.is_replicated,
            resumed_from=run.resumed_from,
            came_from=run.came_from,
            metadata=metadata,
            parts=(part,),
        )
        self._is_announced = True
        # Not forced to the disk: after a crash of the machine nobody trusts a record.
        _put(run, self.folder / record_name(run.place.rank), record, is_synced=False)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Leave nothing behind when it fails, and say in our words what the disk refused."""
        try:
            yield
        except BaseException as error:
            self._clean_up()
            if not isinstance(error, OSError):
                raise
            path = Path(error.filename) if error.filename else self._file.path
            needed = max(self._file.size, self._least_size)
            raise SaveFailed(self._step, path, error, needed=needed) from error

    def _clean_up(self) -> None:
        self._file.close()
        remove(self._file.path)
        if self._is_announced and self._run.writers > 1:
            return  # another rank may be naming the part in the manifest right now; the next save looks again
        try:
            tidy_folder(self._run, self.folder)
            if self._run.writers == 1:
                self.folder.rmdir()
        except OSError:
            return  # not there, or not empty: it is complete, or was before


def _complete_late(run: Run, step: int) -> None:
    """Look again at the step before: where files appear late, two ranks may have missed each other's record."""
    manifest = step_folder(run.directory, step) / MANIFEST
    if step < 0 or run.writers == 1 or manifest.exists():
        return
    complete(run, step)
    if not manifest.exists():
        log.warning("step %d was not completed: other ranks have not saved it", step)


def complete(run: Run, step: int) -> None:
    """Write the manifest if the records of all ranks are there; several ranks may do so at once."""
    folder = step_folder(run.directory, step)
    ranks = range(run.writers)
    if not {record_name(rank) for rank in ranks} <= {path.name for path in folder.iterdir()}:
        return
    records = [read_record(folder / record_name(rank)) for rank in ranks]
    manifest = _put_together(records)
    if manifest is None:
        return
    try:
        check(folder, manifest)
    except Damaged as damage:
        log.warning("step %d is not completed: %s", step, damage)
        return
    _put(run, folder / MANIFEST, manifest, is_synced=True)
    sync_folder(folder)
    sync_folder(run.directory)
    for rank in ranks:
        remove(folder / record_name(rank))
    try:
        prune(run, step)
    except OSError as error:
        log.warning("older checkpoints stay: %s", error)


def read_record(path: Path) -> Manifest | None:
    """What a rank has announced; None where there is nothing that can be read."""
    try:
        return decode(path.read_bytes())
    except (OSError, Damaged):
        return None


def _put_together(records: list[Manifest | None]) -> Manifest | None:
    """All records as one; None if one is missing or of another attempt."""
    found = [record for record in records if record is not None]
    kinds = {(each.attempt, each.world_size, each.is_replicated, each.step) for each in found}
    if len(found) != len(records) or len(kinds) != 1:
        return None
    origins = {each.came_from for each in found} - {None}
    if len(origins) > 1:
        raise RanksDisagree(
            f"step {found[0].step} is not saved: the ranks went on from different steps "
            f"({', '.join(f'rank {rank} from {each.came_from}' for rank, each in enumerate(found))}; -1 is the "
            "beginning). Do all of them see the same directory? Start all ranks again."
        )
    return dataclasses.replace(found[0], parts=tuple(each.parts[0] for each in found))


def _put(run: Run, path: Path, content: Manifest, *, is_synced: bool) -> None:
    temporary = path.with_name(temporary_name(run.place.rank, run.number, path.name))
    replace(path, content.encode(), temporary, is_synced=is_synced)


def _make_folder(directory: Path) -> None:
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
        sync_folder(directory.parent)
