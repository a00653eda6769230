"""Checkpoints that survive a kill at any moment, for training code of any framework.

    from astrago_trainer import checkpoint

    checkpoints = checkpoint.Checkpoints()
    found = checkpoints.latest()
    ...
    checkpoints.save(step, state)

docs/checkpoints.md has a whole example and what is guaranteed. Standard library only, Python 3.8 or newer, and nothing
of the rest of this package: it runs in users' images and may be copied there as it is.
"""

from .checkpoints import Checkpoints
from .errors import CheckpointError, Damaged, LoadFailed, NotConfigured, RanksDisagree, SaveFailed
from .reading import Checkpoint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "Checkpoints",
    "Damaged",
    "LoadFailed",
    "NotConfigured",
    "RanksDisagree",
    "SaveFailed",
]
