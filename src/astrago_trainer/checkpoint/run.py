"""What a rank knows about itself: its place among the others, as the launchers say it, and where it saves."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .errors import NotConfigured

_VARIABLES = (
    ("RANK", "WORLD_SIZE"),  # torchrun, and the platform's prelude
    ("JAX_PROCESS_ID", "JAX_NUM_PROCESSES"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),  # mpirun
)


class Place(NamedTuple):
    """A rank, and the number of all ranks."""

    rank: int
    world_size: int


@dataclass(frozen=True)
class Run:
    """One rank from its start to its end; a restart is another run."""

    directory: Path
    place: Place
    number: str
    """Random, in the names of all files that the run writes: two runs never write the same file."""
    attempt: str
    """Of the job, the same on all ranks: parts of two attempts are never put together."""
    resumed_from: str
    is_replicated: bool
    keep: int
    came_from: int | None = None
    """The step that this run went on from; see Manifest."""

    @property
    def writers(self) -> int:
        return 1 if self.is_replicated else self.place.world_size

    def owns(self, rank: int) -> bool:
        """Whether this run cleans up after a rank: after itself, and rank 0 after ranks that are no more."""
        return rank == self.place.rank or (self.place.rank == 0 and rank >= self.writers)


def find_place(rank: int | None, world_size: int | None) -> Place:
    """The place that was given, else the environment's, else that of a process alone."""
    if rank is None and world_size is None:
        place = _from_environment()
    elif rank is None or world_size is None:
        raise NotConfigured("rank and world_size go together: give both, or none.")
    else:
        place = Place(rank, world_size)
    if not 0 <= place.rank < place.world_size:
        raise NotConfigured(
            f"rank {place.rank} of {place.world_size} cannot be: ranks are numbered from 0 to world size - 1."
        )
    return place


def _from_environment() -> Place:
    for names in _VARIABLES:
        values = [os.environ.get(name) for name in names]
        if values == [None, None]:
            continue
        try:
            return Place(*(int(value or "") for value in values))
        except ValueError:
            found = ", ".join(f"{name}={os.environ.get(name)!r}" for name in names)
            raise NotConfigured(
                f"{names[0]} and {names[1]} must both be numbers: found {found}."
            ) from None
    config = os.environ.get("TF_CONFIG")
    return _from_tf_config(config) if config else Place(0, 1)


def _from_tf_config(config: str) -> Place:
    # Without it, every worker of TensorFlow would take itself for the only one and overwrite the others.
    try:
        read = json.loads(config)
        cluster, task = read.get("cluster", {}), read.get("task", {})
        chiefs, workers = (len(cluster.get(kind, ())) for kind in ("chief", "worker"))
        if not chiefs + workers:
            return Place(0, 1)
        first = {"chief": 0, "worker": chiefs}[task["type"]]
        return Place(first + int(task["index"]), chiefs + workers)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotConfigured(
            f"TF_CONFIG names no place among chief and workers ({error!r}): give rank and world_size."
        ) from error
