"""Kills a saving process at every change of the disk that it makes, one after the other: prints what came of it.

Run by a test as a program of its own: it forks for every point, which a process with threads should not do. Each point
starts from the same directory; afterwards all ranks start again, must find the old or the new state, and go on.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from astrago_trainer.checkpoint import Checkpoints, Damaged
from astrago_trainer.checkpoint.manifest import check as check_files
from astrago_trainer.checkpoint.manifest import read
from tests.checkpoint.faults import dying_at
from tests.checkpoint.views import (
    flip_bit,
    names,
    part_of,
    ranks,
    save_all,
    state_of,
    steps,
    truncate,
)

Action = Callable[[Path], None]


@dataclass
class Scenario:
    """A directory is prepared, and then something is done that is killed."""

    prepare: Action
    act: Action
    outcomes: tuple[int | None, ...]
    """Steps that may be found after a kill; the last one is found when there was no kill."""
    world_size: int = 1


def saved(*steps: int, world_size: int = 1) -> Action:
    def prepare(directory: Path) -> None:
        group = ranks(directory, world_size)
        for step in steps:
            save_all(group, step)

    return prepare


def go_on(
    directory: Path, step: int, rank: int = 0, world_size: int = 1, *, wait: bool = True
) -> None:
    checkpoints = Checkpoints(directory, rank=rank, world_size=world_size)
    checkpoints.latest()
    checkpoints.save(step, state_of(rank, step), wait=wait)
    checkpoints.wait()


def first_of_two_has_saved(directory: Path) -> None:
    saved(10, world_size=2)(directory)
    go_on(directory, 20, rank=0, world_size=2)


def a_save_was_killed(directory: Path) -> None:
    saved(10)(directory)
    for number in (4, 6, 9):
        in_child(lambda: go_on(directory, 20), number, "after")


def newest_is_damaged(directory: Path) -> None:
    saved(10, 20)(directory)
    truncate(part_of(directory / "step-000000020"))


def own_part_is_damaged(directory: Path) -> None:
    saved(10, 20, world_size=2)(directory)
    flip_bit(part_of(directory / "step-000000020", 1))


def look(directory: Path) -> None:
    try:
        Checkpoints(directory, rank=1, world_size=2).latest(verify="own")
    except Damaged:
        return


def save_two_ranks_of_three(directory: Path) -> None:
    for rank in (1, 2):
        go_on(directory, 20, rank=rank, world_size=3)


def first_of_three_has_saved(directory: Path) -> None:
    saved(10, world_size=3)(directory)
    go_on(directory, 20, rank=0, world_size=3)


SCENARIOS = {
    "the first save of all": Scenario(lambda _: None, lambda d: go_on(d, 10), (None, 10)),
    "a save": Scenario(saved(10), lambda d: go_on(d, 20), (10, 20)),
    "a save in the background": Scenario(
        saved(10), lambda d: go_on(d, 20, wait=False), (10, 20)
    ),
    "a save that removes an older one": Scenario(
        saved(10, 20, 30), lambda d: go_on(d, 40), (30, 40)
    ),
    "a save after a killed one": Scenario(a_save_was_killed, lambda d: go_on(d, 20), (10, 20)),
    "a save in place of a damaged one": Scenario(
        newest_is_damaged, lambda d: go_on(d, 20), (10, 20)
    ),
    "the first of two ranks": Scenario(
        saved(10, world_size=2), lambda d: go_on(d, 20, world_size=2), (10, 10), 2
    ),
    "the last of two ranks": Scenario(
        first_of_two_has_saved, lambda d: Checkpoints(d, rank=1, world_size=2).save(20, state_of(1, 20)), (10, 20), 2
    ),
    "the last two of three ranks": Scenario(
        first_of_three_has_saved, save_two_ranks_of_three, (10, 20), 3
    ),
    "setting a damaged one aside": Scenario(own_part_is_damaged, look, (10, 10), 2),
}  # fmt: skip


def in_child(act: Callable[[], None], number: int, moment: str) -> bool:
    """Do it in a process that dies at a point; say whether it died there, and False when it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            with dying_at(number, moment):
                act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise AssertionError(f"the save failed at {moment} change {number}")
    return False


def try_points(scenario: Scenario, base: Path) -> int:
    """Kill at every point; give their number. AssertionError names the first point after which something is wrong."""
    prepared = base / "prepared" / "checkpoints"
    scenario.prepare(prepared)
    points = 0
    for moment in ("before", "halfway", "after"):
        number, died = 0, True
        while died:
            directory = base / "tried" / "checkpoints"
            if prepared.exists():
                shutil.copytree(prepared, directory)
            died = in_child(lambda directory=directory: scenario.act(directory), number, moment)
            try:
                assert torn(directory) <= torn(prepared), f"torn: {torn(directory)}"
                check(scenario, directory, died)
            except Exception as error:
                raise AssertionError(
                    f"killed {moment} change {number} of the disk: {error!r}; "
                    f"there is now: {names(directory)}"
                ) from error
            shutil.rmtree(base / "tried")
            number += 1
            points += died
    return points


def check(scenario: Scenario, directory: Path, died: bool) -> None:
    """All ranks find the same right state; then they save, and nothing of the killed save is left."""
    group = ranks(directory, scenario.world_size)
    found = [each.latest() for each in group]
    (step,) = {each and each.step for each in found}
    assert step in (scenario.outcomes if died else scenario.outcomes[-1:]), f"found step {step}"
    assert [each and each.load() for each in found] == [
        each and state_of(rank, step) for rank, each in enumerate(found)
    ]
    following = (step or 0) + 50
    save_all(group, following)
    assert [each.latest().step for each in group] == [following] * len(group)
    assert left_over(directory, scenario.world_size) == []


def torn(directory: Path) -> set[int]:
    """Steps that have a manifest, and not all that it names."""
    found = set()
    for step in steps(directory):
        folder = directory / f"step-{step:09d}"
        try:
            manifest = read(folder)
            check_files(folder, manifest, hashed=range(manifest.writers))
        except Damaged:
            found.add(step)
    return found


def left_over(directory: Path, world_size: int) -> list[str]:
    """Files that are no part of a complete checkpoint; one that was set aside may keep what it has."""
    kept = {path.parent.name for path in directory.glob("*/manifest.damaged.json")}
    expected = {
        f"step-{step:09d}/{name}"
        for step in steps(directory)
        for name in ("manifest.json", *(f"rank-{rank:05d}" for rank in range(world_size)))
    }
    return [
        name for name in names(directory) if name not in expected and name.split("/")[0] not in kept
    ]


def main(base: Path, name: str) -> None:
    logging.disable()  # skipped checkpoints are expected here
    print(json.dumps({"points": try_points(SCENARIOS[name], base)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
