"""The checkpoints of a job, as its training code sees them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import operator
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from .durable import refresh, remove
from .errors import NotConfigured, RanksDisagree
from .formats import format_of
from .manifest import owner_of, record_name, step_folder, step_folders, temporary_name
from .reading import Checkpoint, Verify, find_newest, find_requested
from .run import Run, find_place
from .saving import Save, read_record

log = logging.getLogger("astrago_trainer.checkpoint")


class Checkpoints:
    """The checkpoints of one job in a directory that all its ranks share."""

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        keep: int = 3,
        replicated: bool = False,
    ) -> None:
        """Nothing is read or written yet.

        `directory`: else ASTRAGO_CHECKPOINT_DIR. `rank`, `world_size`: else as the launcher's variables say.
        `keep`: so many of the newest checkpoints stay. `replicated`: all ranks hold the same state, as with
        DistributedDataParallel, so that rank 0 saves for all.
        """
        chosen = directory or os.environ.get("ASTRAGO_CHECKPOINT_DIR")
        if not chosen:
            raise NotConfigured(
                "there is no directory for checkpoints: set ASTRAGO_CHECKPOINT_DIR to a folder on a volume that all "
                "ranks share, or give it: Checkpoints('/data/checkpoints')."
            )
        if keep < 1:
            raise NotConfigured(f"keep is {keep}: at least 1 checkpoint has to stay.")
        self._run = Run(
            directory=Path(chosen).absolute(),
            place=find_place(rank, world_size),
            number=secrets.token_hex(4),
            # Not TORCHELASTIC_RESTART_COUNT: each node's agent counts its own failures, so ranks would differ.
            attempt=os.environ.get("ASTRAGO_ATTEMPT", "0"),
            resumed_from=os.environ.get("ASTRAGO_RESUME_FROM", ""),
            is_replicated=replicated,
            keep=keep,
        )
        self._saved_step = -1
        self._saved_size = 0
        self._background: threading.Thread | None = None
        self._failure: Exception | None = None

    @property
    def directory(self) -> Path:
        return self._run.directory

    # --- going on

    def latest(self, *, verify: Verify = "all") -> Checkpoint | None:
        """The newest checkpoint that is complete and verified, or None; the same one on all ranks.

        Every rank calls it before its first step. ASTRAGO_RESUME_FROM, a checkpoint's folder or a directory with
        some, wins over the directory until something that goes on from there is saved in the directory.

        `verify="all"`: every rank checks size and hash of all parts, so all find the same one damaged and fall back
        to the same older one. `verify="own"`: every rank hashes its own part only, and looks at the sizes of the
        others; a rank whose part is damaged sets the checkpoint aside and raises Damaged, so that the job's restart
        falls back.
        """
        if verify not in ("all", "own"):
            raise ValueError(f'verify is {verify!r}: expected "all" or "own".')
        self._join()
        if self._run.place.world_size > 1:
            with contextlib.suppress(OSError):  # a directory that cannot be read is told of below
                self._look_anew()
        found = self._find(verify)
        if self._run.came_from is None:  # a later call only looks
            self._run = dataclasses.replace(self._run, came_from=found.step if found else -1)
        return found

    def _find(self, verify: Verify) -> Checkpoint | None:
        run = self._run
        if not run.resumed_from:
            return find_newest(run.directory, run.place, verify=verify)
        own = find_newest(
            run.directory,
            run.place,
            verify=verify,
            accept=lambda manifest: manifest.resumed_from == run.resumed_from,
        )
        return own or find_requested(Path(run.resumed_from).absolute(), run.place)

    def _look_anew(self) -> None:
        """See the directory as it is, and take back what this rank announced in an earlier run.

        Else that could be put together with what the others save now: the attempt does not tell two runs apart where
        torchrun restarts processes in place, or a new job starts in the directory of an old one.
        """
        rank, number = self._run.place.rank, self._run.number
        refreshing = temporary_name(rank, number, "refresh")
        refresh(self.directory, self.directory / refreshing)
        for _, folder in step_folders(self.directory):
            refresh(folder, folder / refreshing)
            path = folder / record_name(rank)
            record = read_record(path)
            if record is None or owner_of(record.parts[0].file) != (rank, number):
                remove(path)

    # --- saving

    def save(
        self, step: int, state: object, *, metadata: dict[str, Any] | None = None, wait: bool = True
    ) -> Path:
        """Save this rank's state of a step; every rank calls it, with the same step. Gives the checkpoint's folder.

        Returns when this rank's part is durable; once it has returned on all ranks, the checkpoint is complete. With
        `wait=False` it returns when the state has been copied to the system's file cache, and the rest goes on in a
        thread: the state may change at once, and a failure is warned of, and raised by `wait`. The same step again
        does nothing. SaveFailed: nothing is saved, and nothing older is lost. `metadata` is of JSON's types.
        """
        self._join()
        if isinstance(self._failure, RanksDisagree):
            raise self._failure
        step = operator.index(step)
        if step < max(self._saved_step, 0):
            raise ValueError(
                f"step is {step}: expected a number from 0 that grows; the last step saved is {self._saved_step}."
            )
        metadata = json.loads(json.dumps(metadata or {}))  # as it will come back; else refused now
        run = self._run
        if step == self._saved_step or run.place.rank >= run.writers:
            return step_folder(run.directory, step)
        self._failure = None
        save = Save(run, step, format_of(state), is_hashing=wait)
        save.write(state, last_step=self._saved_step, last_size=self._saved_size)
        if wait:
            self._finish(save, step, metadata)
        else:
            # Not a daemon: the interpreter waits for it at its end.
            self._background = threading.Thread(
                target=self._finish_quietly, args=(save, step, metadata)
            )
            self._background.start()
        return save.folder

    def wait(self) -> None:
        """Return when the last save is durable; raise what has made it fail in the background."""
        self._join()
        if self._failure is not None:
            raise self._failure

    def _join(self) -> None:
        if self._background is not None:
            self._background.join()
            self._background = None

    def _finish(self, save: Save, step: int, metadata: dict[str, Any]) -> None:
        self._saved_size = save.finish(metadata)
        self._saved_step = step

    def _finish_quietly(self, save: Save, step: int, metadata: dict[str, Any]) -> None:
        try:
            self._finish(save, step, metadata)
        except Exception as failure:  # whatever it is, it must come out of the thread
            self._failure = failure
            log.warning("%s", failure)
