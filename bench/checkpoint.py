"""Saving and finding a checkpoint, beside plain torch.save with fsync and torch.load (performance goal G9).

Both sides write to the same disk and end with the data on it. Ours also hashes, renames, and writes a manifest; the
blocking time of a save in the background is what a training loop waits for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bench.measure import comparison, interleaved

ROUNDS = 15
MEGABYTES = (1, 256)
ROOT = Path(__file__).parents[1]


def run() -> Iterator[dict[str, Any]]:
    from cluster.errors import ClusterError
    from cluster.frameworks import RUNNING_PYTHON, environment

    try:
        python = environment("torch", RUNNING_PYTHON) / "bin" / "python"
    except ClusterError as missing:
        yield {"id": "checkpoint", "ours": None, "peer": None, "why": str(missing)}
        return
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python, "-m", "bench.checkpoint", folder],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "CUDA_VISIBLE_DEVICES": ""},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    for line in done.stdout.splitlines():
        yield json.loads(line)


class Sides:
    """What is compared, on one state of torch: ours and a plain file."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        import torch

        from astrago_trainer.checkpoint import Checkpoints

        torch.set_num_threads(1)
        self.torch = torch
        self.state = {f"layer {each}": torch.randn(1 << 18) for each in range(megabytes)}
        self.checkpoints = Checkpoints(folder / f"{megabytes}", keep=2)
        self.plain = folder / f"{megabytes}.pt"
        self.step = 0

    def save(self) -> None:
        self.step += 1
        self.checkpoints.save(self.step, self.state)

    def save_in_background(self) -> None:
        self.step += 1
        self.checkpoints.save(self.step, self.state, wait=False)

    def save_plainly(self) -> None:
        self.plain.unlink(missing_ok=True)
        with self.plain.open("wb") as file:
            self.torch.save(self.state, file)
            file.flush()
            os.fsync(file.fileno())

    def load(self) -> None:
        found = self.checkpoints.latest()
        assert found is not None
        found.load()

    def load_plainly(self) -> None:
        self.torch.load(self.plain, map_location="cpu", weights_only=True)

    def milliseconds(self, call: Callable[[], None]) -> float:
        """How long a call takes; what it leaves to the background is awaited and not counted."""
        started = time.perf_counter()
        call()
        taken = time.perf_counter() - started
        self.checkpoints.wait()
        return taken * 1000


def measure(folder: Path, megabytes: int) -> Iterator[dict[str, Any]]:
    """All comparisons for one size, in this process, which has torch."""
    sides = Sides(folder, megabytes)
    for name, ours, peer, command in (
        ("save", sides.save, sides.save_plainly, "torch.save, fsync"),
        ("save in background", sides.save_in_background, sides.save_plainly, "torch.save, fsync"),
        ("latest and load", sides.load, sides.load_plainly, "torch.load"),
    ):
        mine, theirs = interleaved(
            partial(sides.milliseconds, ours), partial(sides.milliseconds, peer), ROUNDS
        )
        described = {"id": f"checkpoint {name}, {megabytes} MB", "unit": "ms"}
        yield {**described, "peer_command": command, **comparison(mine, theirs)}


if __name__ == "__main__":
    for size in MEGABYTES:
        for line in measure(Path(sys.argv[1]), size):
            print(json.dumps(line), flush=True)
