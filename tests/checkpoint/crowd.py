"""Many processes that finish the same step at the same moment: every step must be complete, whoever was the last.

Run by a test as a program of its own: it forks.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path

from astrago_trainer.checkpoint import Checkpoints
from tests.checkpoint.views import state_of


def save_steps(directory: Path, rank: int, steps: int, barrier) -> None:
    checkpoints = Checkpoints(directory, rank=rank, world_size=barrier.parties, keep=steps)
    checkpoints.latest()
    for step in range(steps):
        barrier.wait()
        checkpoints.save(step, state_of(rank, step))


def main(directory: Path, world_size: int, steps: int) -> None:
    forking = multiprocessing.get_context("fork")
    barrier = forking.Barrier(world_size)
    processes = [
        forking.Process(target=save_steps, args=(directory, rank, steps, barrier))
        for rank in range(world_size)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    sys.exit(any(process.exitcode for process in processes))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
