"""Trains a small model with torch, kills it during its saves, and compares the end with an undisturbed run.

Run with a Python that has torch: `python torch_kills.py <folder> <ranks> <kills> <seed>`. torch is imported once, and
the ranks are forked. Half of the kills come at a random moment of a save, half at a random change that it makes to the
disk. Several ranks train together over gloo; after a kill all of them start again, as a job's ranks do.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from astrago_trainer.checkpoint import Checkpoints
from tests.checkpoint.faults import dying_at
from tests.checkpoint.lives import Life, Report

INTERVAL = 2  # steps between saves
CHANGES = 24  # that a save makes to the disk, about
LONGEST_SECONDS = 0.012  # that a save takes, about


@dataclass
class Death:
    """When a rank dies: in which of its saves, and at which change of the disk, or from outside."""

    rank: int
    save: int
    change: int | None
    moment: str
    delay: float


def train(
    directory: Path,
    meeting: Path,
    rank: int,
    world_size: int,
    steps: int,
    death: Death | None,
    report: Report,
):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    if world_size > 1:
        dist.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=world_size)
    model = nn.Sequential(nn.Linear(128, 256), nn.Tanh(), nn.Linear(256, 8))
    for index, parameter in enumerate(model.parameters()):  # alike on all ranks
        nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(index))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    shard = torch.zeros(64, 64)  # what only this rank has, as with FSDP
    checkpoints = Checkpoints(directory, rank=rank, world_size=world_size)
    step = 0
    found = checkpoints.latest()
    if found:
        state = found.load()
        step = found.step
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        shard = state["shard"]
    report(f"from {step}")
    saves = 0
    while step < steps:
        inputs = torch.randn(16, 128)
        loss = model(inputs).square().mean() + (model(inputs + 1) - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        if world_size > 1 and not average_gradients(model):
            return
        optimizer.step()
        shard = shard * 0.9 + inputs[:, :64].T @ inputs[:, 64:]
        step += 1
        if step % INTERVAL == 0:
            saves += 1
            report(f"saving {step}")
            is_fatal = (
                death and death.change is not None and (rank, saves) == (death.rank, death.save)
            )
            with dying_at(death.change, death.moment) if is_fatal else nullcontext():
                state = {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "random": torch.get_rng_state(),
                    "shard": shard,
                }
                checkpoints.save(step, state, wait=saves % 2 > 0)
                checkpoints.wait()
            report(f"saved {step}")
    state = [*model.state_dict().values(), torch.get_rng_state(), shard]
    state += [value for each in optimizer.state_dict()["state"].values() for value in each.values()]
    report("end " + hashlib.sha256(b"".join(each.numpy().tobytes() for each in state)).hexdigest())


def average_gradients(model: nn.Module) -> bool:
    """Say whether it was possible: a rank that has died makes it fail on the others."""
    try:
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
    except RuntimeError:
        return False
    return True


def warm_up() -> None:
    """Import now what torch imports at the first use, once for all forks; no backward pass, which may start threads."""
    torch.set_num_threads(1)
    parameter = nn.Parameter(torch.zeros(1))
    parameter.grad = torch.ones(1)
    torch.optim.Adam([parameter]).step()
    buffer = io.BytesIO()
    torch.save({"parameter": parameter}, buffer)
    torch.load(io.BytesIO(buffer.getvalue()), weights_only=True)


class Campaign:
    """Lives that end by a kill during a save, and what they add up to."""

    def __init__(self, folder: Path, world_size: int, seed: int) -> None:
        self.folder = folder
        self.world_size = world_size
        self.chance = Random(seed)
        self.lives = self.kills = self.resumes = self.survived = 0
        self.is_after_kill = False
        self.promised = 0
        """The step of the last save that returned on all ranks."""
        self.begun = 0
        """The step of the last save that all ranks have begun."""

    def live(self, directory: Path, steps: int, death: Death | None = None) -> Life:
        self.lives += 1
        meeting = self.folder / f"meeting-{self.lives}"
        return Life(
            self.world_size,
            lambda rank, report: train(
                directory, meeting, rank, self.world_size, steps, death, report
            ),
        )

    def live_undisturbed(self, directory: Path, steps: int) -> Life:
        life = self.live(directory, steps)
        codes = life.end(kill=False)
        assert codes == [0] * self.world_size, codes
        return life

    def begin(self) -> None:
        """Save something, so that every kill has a checkpoint to go back to."""
        self.check(self.live_undisturbed(self.folder / "checkpoints", 2 * INTERVAL))

    def kill_one(self) -> None:
        death = Death(
            rank=self.chance.randrange(self.world_size),
            save=self.chance.randint(1, 3),
            change=self.chance.randrange(CHANGES) if self.chance.random() < 0.5 else None,
            moment=self.chance.choice(["before", "halfway", "after"]),
            delay=self.chance.uniform(0, LONGEST_SECONDS),
        )
        life = self.live(self.folder / "checkpoints", sys.maxsize, death)
        saves = 0
        while saves < death.save:
            saves += life.read(death.rank).startswith("saving ")
        if death.change is None:
            signal.sigtimedwait([], death.delay)
        else:
            life.read(death.rank)  # its end; or "saved", when the save made fewer changes than that
        life.end(kill=True)
        self.check(life)
        # A kill that came after the save is no kill during a save.
        self.is_after_kill = life.lines[death.rank][-1].startswith("saving ")
        self.kills += self.is_after_kill

    def check(self, life: Life) -> None:
        """All ranks went on from the same verified step, and at most the save under way was lost."""
        starts = {start for rank in life.numbers("from") for start in rank}
        assert len(starts) == 1, f"the ranks went on from {starts}"
        (start,) = starts
        assert start in (self.promised, self.begun), (
            f"step {start} was found; {self.promised} was saved, and {self.begun} was begun"
        )
        if self.is_after_kill:
            self.resumes += start > 0
            self.survived += start > self.promised
        saved, begun = (
            min(max(rank, default=start) for rank in life.numbers(word))
            for word in ("saved", "saving")
        )
        self.promised, self.begun = max(start, saved), max(start, begun)

    def finish(self) -> bool:
        """Train a little further without a kill, and all of it from the beginning: are the ends equal?"""
        self.steps = self.begun + 3 * INTERVAL
        disturbed = self.live_undisturbed(self.folder / "checkpoints", self.steps)
        self.check(disturbed)
        undisturbed = self.live_undisturbed(self.folder / "undisturbed", self.steps)
        ends = [[lines[-1] for lines in life.lines] for life in (disturbed, undisturbed)]
        assert all(end.startswith("end ") for each in ends for end in each)
        return ends[0] == ends[1]


def run_campaign(folder: Path, world_size: int, kills: int, seed: int) -> dict[str, Any]:
    """Kill a training so many times; AssertionError when a resume found what it should not."""
    logging.disable()  # checkpoints that were not completed are expected here
    warm_up()
    started = time.monotonic()
    campaign = Campaign(folder, world_size, seed)
    campaign.begin()
    while campaign.kills < kills:
        campaign.kill_one()
    is_equal = campaign.finish()
    logging.disable(logging.NOTSET)
    return {
        "ranks": world_size,
        "kills_during_a_save": campaign.kills,
        "resumes_from_a_verified_checkpoint": campaign.resumes,
        "of_these_from_the_one_being_saved": campaign.survived,
        "steps": campaign.steps,
        "final_state_is_bit_equal": is_equal,
        "seed": seed,
        "seconds": round(time.monotonic() - started, 1),
    }


def main(folder: Path, world_size: int, kills: int, seed: int) -> int:
    result = run_campaign(folder, world_size, kills, seed)
    print(json.dumps(result), flush=True)
    has_resumed = result["resumes_from_a_verified_checkpoint"] == kills
    return 0 if has_resumed and result["final_state_is_bit_equal"] else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *map(int, sys.argv[2:])))
