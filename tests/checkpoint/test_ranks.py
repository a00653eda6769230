"""Ranks that know nothing of each other complete a checkpoint together, and never one of mixed parts."""

import dataclasses
import logging
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from astrago_trainer.checkpoint import Checkpoints
from astrago_trainer.checkpoint.manifest import decode, record_name
from tests.checkpoint.views import flip_bit, names, ranks, save_all, state_of, steps

ROOT = Path(__file__).parents[2]


def test_a_checkpoint_is_complete_when_the_last_rank_has_saved(directory):
    group = ranks(directory, 3)
    for rank in (2, 0, 1):
        assert Checkpoints(directory).latest() is None
        group[rank].save(5, state_of(rank, 5))

    assert [each.latest().load() for each in ranks(directory, 3)] == [
        state_of(r, 5) for r in range(3)
    ]


def test_whoever_is_last_writes_the_same_manifest_but_for_the_names_of_parts(directory, tmp_path):
    def manifest(order):
        group = ranks(tmp_path / str(order), 2)
        for rank in order:
            group[rank].save(5, state_of(rank, 5), metadata={"by": rank})
        found = decode((tmp_path / str(order) / "step-000000005" / "manifest.json").read_bytes())
        return dataclasses.replace(
            found, parts=tuple(dataclasses.replace(part, file="") for part in found.parts)
        )

    assert manifest((0, 1)) == manifest((1, 0))
    assert manifest((1, 0)).metadata == {"by": 0}


def test_many_processes_that_finish_at_once_complete_every_step(directory):
    subprocess.run(
        [sys.executable, "-m", "tests.checkpoint.crowd", str(directory), "6", "25"],
        cwd=ROOT,
        check=True,
        timeout=120,
    )
    assert steps(directory) == list(range(25))
    assert len(names(directory)) == 25 * (6 + 1), "parts and manifests, and nothing else"
    for rank in range(6):
        assert Checkpoints(directory, rank=rank, world_size=6).latest().load() == state_of(rank, 24)


class TestPartsOfTwoRuns:
    """A rank of an earlier run had saved its part of step 5 when all were killed."""

    @pytest.fixture
    def left_over(self, directory):
        first = ranks(directory, 2)
        save_all(first, 4)
        first[0].save(5, state_of(0, 5, "old"))
        return directory

    def check_not_mixed(self, directory, group):
        group[1].save(5, state_of(1, 5, "new"))
        assert steps(directory) == [4]
        group[0].save(5, state_of(0, 5, "new"))
        assert [each.latest().load() for each in ranks(directory, 2)] == [
            state_of(0, 5, "new"),
            state_of(1, 5, "new"),
        ]

    def test_of_two_attempts_are_not_mixed(self, left_over, monkeypatch):
        monkeypatch.setenv("ASTRAGO_ATTEMPT", "1")
        self.check_not_mixed(left_over, ranks(left_over, 2))

    def test_of_one_attempt_are_not_mixed_after_all_have_looked(self, left_over):
        group = ranks(left_over, 2)
        assert [each.latest().step for each in group] == [4, 4]
        self.check_not_mixed(left_over, group)

    def test_of_another_world_size_are_not_mixed(self, left_over):
        group = ranks(left_over, 3)
        group[1].save(5, state_of(1, 5, "new"))
        group[2].save(5, state_of(2, 5, "new"))
        assert steps(left_over) == [4]

    def test_are_not_mixed_when_all_had_saved_and_nobody_had_completed_it(self, left_over):
        complete_by_hand_without_manifest(left_over)
        group = ranks(left_over, 2)
        assert [each.latest().step for each in group] == [4, 4]
        self.check_not_mixed(left_over, group)

    def test_are_removed_by_the_next_save(self, left_over):
        group = ranks(left_over, 2)
        save_all(group, 6)
        assert names(left_over / "step-000000005") == []


def complete_by_hand_without_manifest(directory):
    """As if the last rank had been killed between its record and the manifest."""
    folder = directory / "step-000000005"
    record = (folder / record_name(0)).read_bytes()
    second = Checkpoints(directory, rank=1, world_size=2)
    second.save(5, state_of(1, 5, "old"))
    manifest = decode((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").unlink()
    (folder / record_name(0)).write_bytes(record)
    (folder / record_name(1)).write_bytes(
        dataclasses.replace(manifest, parts=manifest.parts[1:]).encode()
    )


def test_a_checkpoint_that_nobody_saw_whole_is_completed_by_the_next_save(directory):
    group = ranks(directory, 2)
    save_all(group, 4)
    group[0].save(5, state_of(0, 5, "old"))
    complete_by_hand_without_manifest(directory)  # as if both had looked too early

    group[0].save(6, state_of(0, 6))

    assert steps(directory) == [4, 5]
    assert Checkpoints(directory, rank=1, world_size=2).latest().load() == state_of(1, 5, "old")


def test_parts_that_others_never_complete_are_told_and_do_not_pile_up(directory, caplog):
    caplog.set_level(logging.WARNING)
    alone = Checkpoints(directory, rank=0, world_size=2)
    for step in range(1, 8):
        alone.save(step, state_of(0, step))

    assert [len(names(directory / f"step-{step:09d}")) for step in range(1, 8)] == [0] * 5 + [2, 2]
    assert [record.getMessage() for record in caplog.records] == [
        f"step {step} was not completed: other ranks have not saved it" for step in range(1, 7)
    ]


def test_the_first_rank_cleans_up_after_ranks_that_are_no_more(directory):
    group = ranks(directory, 4)
    group[3].save(5, b"")
    ranks(directory, 2)[0].save(6, b"")
    assert names(directory / "step-000000005") == []


class Training(RuleBasedStateMachine):
    """Any order of saves, restarts of any size and damages: compared with a list of what was completed."""

    @initialize()
    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        self.directory = Path(self.folder.name)
        self.complete = {}
        self.lives = 0
        self.begin(2)

    def begin(self, world_size):
        self.lives += 1
        self.group = ranks(self.directory, world_size, keep=100)
        found = [each.latest() for each in self.group]
        step = max(self.complete, default=0)
        assert [each.step if each else 0 for each in found] == [step] * world_size
        self.done = [step] * world_size

    @rule(world_size=st.integers(1, 3))
    def restart(self, world_size):
        self.begin(world_size)

    @rule(data=st.data())
    def save(self, data):
        # In step: nobody is two saves ahead of anybody.
        rank = data.draw(
            st.sampled_from([rank for rank, step in enumerate(self.done) if step <= min(self.done)])
        )
        step = self.done[rank] + 1
        self.group[rank].save(step, state_of(rank, step, f"life {self.lives}"))
        self.done[rank] = step
        if min(self.done) == step:
            self.complete[step] = [
                state_of(each, step, f"life {self.lives}") for each in range(len(self.group))
            ]

    @precondition(lambda self: self.complete)
    @rule(data=st.data())
    def damage_and_restart(self, data):
        newest = max(self.complete)
        rank = data.draw(st.integers(0, len(self.complete[newest]) - 1))
        folder = self.directory / f"step-{newest:09d}"
        named = decode((folder / "manifest.json").read_bytes()).parts[rank].file
        flip_bit(folder / named)
        del self.complete[newest]
        self.begin(len(self.group))

    @invariant()
    def the_newest_complete_one_is_found(self):
        found = Checkpoints(self.directory).latest()
        newest = max(self.complete, default=None)
        assert (found and found.step) == newest
        if found:
            parts = [found.load(rank=rank) for rank in range(found.world_size)]
            assert parts == self.complete[newest]

    def teardown(self):
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestTraining = Training.TestCase
TestTraining.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
