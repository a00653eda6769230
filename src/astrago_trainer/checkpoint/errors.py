"""What can go wrong with a checkpoint, cut by what the training code does next.

CheckpointError
├─ NotConfigured     no directory, or a rank that cannot be: nothing was done
├─ SaveFailed        this step is not saved, the older ones are untouched: train on, the next save may succeed
├─ RanksDisagree     the ranks went on from different steps: stop, and start all of them again
└─ LoadFailed        what was asked for cannot be loaded: stop, starting anew would lose work silently
   └─ Damaged        its files are not what its manifest says
"""

from __future__ import annotations

import errno
import os
from pathlib import Path


class CheckpointError(Exception):
    """Base of everything that this package raises on purpose."""


class NotConfigured(CheckpointError):  # noqa: N818 - named for what the caller sees, as in core.errors
    """The directory, the rank or the world size is missing or impossible."""


class SaveFailed(CheckpointError):  # noqa: N818
    """A step could not be saved; nothing of an older checkpoint was touched."""

    def __init__(self, step: int, path: Path, cause: OSError, *, needed: int) -> None:
        self.step = step
        self.path = path
        self.needed = needed
        """Bytes that this rank's part has at least: those written until now, or those of the part before."""
        self.free = free_bytes(path)
        """Bytes that the file system has left; None where it cannot be asked."""
        free = "unknown" if self.free is None else f"{self.free:,}"
        super().__init__(
            f"step {step} is not saved: {path}: {cause.strerror or cause}; bytes needed: {needed:,} or more, "
            f"free: {free}. Older checkpoints are intact. {_remedy(cause)} "
            "Training may go on: catch checkpoint.SaveFailed, and the next save tries again."
        )


class RanksDisagree(CheckpointError):  # noqa: N818
    """The ranks have loaded different steps, so what they hold together is no state of the training."""


class LoadFailed(CheckpointError):  # noqa: N818
    """A checkpoint that was asked for cannot be used."""


class Damaged(LoadFailed):
    """Files are missing, or have another size or hash than the manifest says."""


_REMEDIES = {
    errno.ENOSPC: "Free space, enlarge the volume or keep fewer checkpoints.",
    errno.EDQUOT: "Free space, raise the quota or keep fewer checkpoints.",
    errno.EFBIG: "Raise the limit of a file's size (ulimit -f).",
    errno.EROFS: "Mount the volume for writing.",
    errno.EACCES: "Let the training's user write there, or choose another directory.",
    errno.EPERM: "Let the training's user write there, or choose another directory.",
    errno.EIO: "The disk or the network storage reports errors: check it.",
    errno.ESTALE: "The network storage was changed below the job: restart the job.",
}


def _remedy(cause: OSError) -> str:
    return _REMEDIES.get(cause.errno or 0, "Check the directory of the checkpoints.")


def free_bytes(path: Path) -> int | None:
    """What an ordinary user may still write where the path is, or would be."""
    for folder in (path, *path.parents):
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return found.f_bavail * found.f_frsize
    return None
