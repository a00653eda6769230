"""The newest checkpoint that is whole is found, the same one by all ranks, and what is skipped is told."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.checkpoint import Checkpoints, Damaged, LoadFailed, RanksDisagree
from tests.checkpoint.views import flip_bit, part_of, ranks, save_all, state_of, steps, truncate


@pytest.fixture
def warnings(caplog):
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def found_by_all(directory, world_size=2, **options):
    """The step that every rank finds; fails when they differ."""
    found = [each.latest(**options) for each in ranks(directory, world_size)]
    (step,) = {each and each.step for each in found}
    for rank, each in enumerate(found):
        assert each is None or each.load() == state_of(rank, each.step)
    return step


@pytest.fixture
def three_steps(directory):
    group = ranks(directory, 2)
    for step in (10, 20, 30):
        save_all(group, step)
    return directory


def change_manifest(folder):
    path = folder / "manifest.json"
    path.write_text(path.read_text().replace('"step": 30', '"step": 31'))


DAMAGES = {
    "a bit flipped in a part": (
        lambda folder: flip_bit(part_of(folder, 1)),
        r"rank-00001\S+ has changed: its SHA-256 is \w{64}, not \w{64}$",
    ),
    "a part truncated": (
        lambda folder: truncate(part_of(folder, 0)),
        r"rank-00000\S+ has 14 bytes instead of 15$",
    ),
    "a part grown": (
        lambda folder: part_of(folder, 0).write_bytes(bytes(16)),
        r"rank-00000\S+ has 16 bytes instead of 15$",
    ),
    "a part missing": (
        lambda folder: part_of(folder, 1).unlink(),
        r"rank-00001\S+: No such file or directory$",
    ),
    "the manifest missing": (
        lambda folder: (folder / "manifest.json").unlink(),
        "it was never completed$",
    ),
    "the manifest truncated": (
        lambda folder: truncate(folder / "manifest.json", 50),
        "manifest.json: it cannot be read: JSONDecodeError",
    ),
    "the manifest empty": (
        lambda folder: (folder / "manifest.json").write_bytes(b""),
        "manifest.json: it cannot be read: JSONDecodeError",
    ),
    "the manifest no object": (
        lambda folder: (folder / "manifest.json").write_bytes(b"[]"),
        "manifest.json: it cannot be read: ",
    ),
    "the manifest changed": (
        change_manifest,
        "manifest.json: its digest is not that of its content$",
    ),
    "another step's manifest": (
        lambda folder: shutil.copy(folder.with_name("step-000000020") / "manifest.json", folder),
        "manifest.json: it is not that of this checkpoint$",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_all_ranks_fall_back_from_a_damaged_one_and_say_why(three_steps, warnings, damage):
    cause, message = DAMAGES[damage]
    cause(three_steps / "step-000000030")

    assert found_by_all(three_steps) == 20

    assert len(warnings()) == 2
    for rank, line in enumerate(warnings()):
        assert line.startswith(f"rank {rank} skips the checkpoint {three_steps}/step-000000030: ")
        assert re.search(message, line), line


def test_nothing_is_deleted_by_looking(three_steps):
    flip_bit(part_of(three_steps / "step-000000030"))
    before = sorted(three_steps.rglob("*"))

    found_by_all(three_steps)

    assert sorted(three_steps.rglob("*")) == before


def test_when_all_are_damaged_there_is_none(three_steps, warnings):
    for folder in three_steps.iterdir():
        truncate(part_of(folder))

    assert found_by_all(three_steps) is None
    assert len(warnings()) == 2 * 3


def test_a_damaged_one_is_replaced_when_training_gets_there_again(three_steps):
    flip_bit(part_of(three_steps / "step-000000030", 1))
    group = ranks(three_steps, 2)
    assert [each.latest().step for each in group] == [20, 20]

    save_all(group, 30)
    assert found_by_all(three_steps) == 30
    save_all(group, 40)
    assert len(list((three_steps / "step-000000030").iterdir())) == 3


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_no_flipped_bit_goes_unnoticed(tmp_path_factory, data):
    directory = tmp_path_factory.mktemp("flips")
    group = ranks(directory, 2)
    save_all(group, 1)
    save_all(group, 2)
    files = sorted((directory / "step-000000002").iterdir())
    path = data.draw(st.sampled_from(files))
    content = bytearray(path.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)

    for rank, each in enumerate(ranks(directory, 2)):
        found = each.latest()
        # White space in the manifest may change: all that it says is still true.
        assert found.step == 1 or path.name == "manifest.json"
        assert found.load() == state_of(rank, found.step)


class TestOwnPartsOnly:
    """verify="own": what only one rank can see must not part the ranks."""

    def test_a_size_is_seen_by_all_and_all_fall_back(self, three_steps):
        truncate(part_of(three_steps / "step-000000030", 1))
        assert found_by_all(three_steps, verify="own") == 20

    def test_a_rank_whose_part_has_changed_sets_the_checkpoint_aside_and_stops(self, three_steps):
        flip_bit(part_of(three_steps / "step-000000030", 1))
        first, second = ranks(three_steps, 2)

        assert first.latest(verify="own").step == 30
        with pytest.raises(Damaged, match=r"rank-00001.*changed.*set aside.*Restart all ranks"):
            second.latest(verify="own")

        assert found_by_all(three_steps, verify="own") == 20
        assert (three_steps / "step-000000030" / "manifest.damaged.json").exists()

    def test_what_was_set_aside_is_pruned_when_it_is_old(self, three_steps):
        flip_bit(part_of(three_steps / "step-000000030", 1))
        with pytest.raises(Damaged):
            ranks(three_steps, 2)[1].latest(verify="own")
        group = ranks(three_steps, 2)
        for step in (31, 32, 33):
            save_all(group, step)
        assert sorted(path.name for path in three_steps.iterdir()) == [
            f"step-0000000{step}" for step in (31, 32, 33)
        ]

    def test_another_word_is_refused(self, three_steps):
        with pytest.raises(ValueError, match="verify is 'some'"):
            Checkpoints(three_steps).latest(verify="some")


class TestOtherWorldSizes:
    def test_parts_are_not_dealt_to_another_number_of_ranks(self, three_steps):
        found = Checkpoints(three_steps, rank=0, world_size=3).latest()

        assert (found.step, found.world_size) == (30, 2)
        with pytest.raises(
            LoadFailed, match=r"was saved by 2 ranks, and this run has 3: start 2, or"
        ):
            found.load()

    def test_but_every_part_can_be_read(self, three_steps):
        found = Checkpoints(three_steps).latest()

        assert [found.load(rank=rank) for rank in (0, 1)] == [state_of(0, 30), state_of(1, 30)]
        with pytest.raises(LoadFailed, match="has no rank 2: it was saved by ranks 0 to 1"):
            found.load(rank=2)

    def test_a_damaged_part_of_any_rank_is_noticed(self, three_steps):
        flip_bit(part_of(three_steps / "step-000000030", 1))
        assert Checkpoints(three_steps).latest(verify="own").step == 20

    @pytest.mark.parametrize("world_size", [1, 3])
    def test_a_run_of_another_size_goes_on_in_the_same_directory(self, three_steps, world_size):
        group = ranks(three_steps, world_size)
        for each in group:
            each.latest()
        save_all(group, 40)
        assert found_by_all(three_steps, world_size) == 40


class TestAStartFromElsewhere:
    @pytest.fixture
    def elsewhere(self, tmp_path):
        group = ranks(tmp_path / "elsewhere", 2)
        for step in (5, 6):
            save_all(group, step)
        return tmp_path / "elsewhere"

    def test_a_checkpoint_that_is_named_wins(self, three_steps, elsewhere, monkeypatch):
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(elsewhere / "step-000000005"))
        assert found_by_all(three_steps) == 5

    def test_of_a_directory_the_newest_wins(self, three_steps, elsewhere, monkeypatch):
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(elsewhere))
        assert found_by_all(three_steps) == 6

    def test_a_copy_under_another_name_is_known_by_its_manifest(
        self, directory, elsewhere, monkeypatch
    ):
        (elsewhere / "step-000000005").rename(elsewhere / "best")
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(elsewhere / "best"))
        assert found_by_all(directory) == 5

    def test_after_a_restart_it_goes_on_from_what_it_has_saved_since(
        self, three_steps, monkeypatch
    ):
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(three_steps / "step-000000010"))
        group = ranks(three_steps, 2)
        assert [each.latest().step for each in group] == [10, 10]
        save_all(group, 15)

        assert found_by_all(three_steps) == 15
        assert steps(three_steps) == [10, 15, 20, 30], (
            "later ones are of another course: left alone"
        )
        truncate(part_of(three_steps / "step-000000015"))
        assert found_by_all(three_steps) == 10

    def test_what_is_later_is_replaced_when_the_new_course_gets_there(
        self, three_steps, monkeypatch
    ):
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(three_steps / "step-000000010"))
        group = ranks(three_steps, 2)
        for each in group:
            each.latest()
        save_all(group, 20, "anew")

        assert [each.latest().load() for each in ranks(three_steps, 2)] == [
            state_of(0, 20, "anew"),
            state_of(1, 20, "anew"),
        ]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("nothing", "ASTRAGO_RESUME_FROM is .*nothing, where no complete checkpoint is. Name the folder"),
            ("elsewhere/step-000000007", "which is not whole: it was never completed. Name the folder"),
            ("elsewhere/step-000000006", "which is not whole: rank-00001.*has changed"),
        ],
    )  # fmt: skip
    def test_one_that_cannot_be_used_is_not_replaced_by_another(
        self, three_steps, elsewhere, monkeypatch, name, message
    ):
        flip_bit(part_of(elsewhere / "step-000000006", 1))
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(elsewhere.parent / name))
        for each in ranks(three_steps, 2):
            with pytest.raises(LoadFailed, match=message):
                each.latest()

    @pytest.mark.parametrize("file", ["../secret", "/etc/passwd", "rank-00000.json", ""])
    def test_a_manifest_cannot_name_files_outside_its_folder(self, elsewhere, monkeypatch, file):
        from astrago_trainer.checkpoint.manifest import _digest

        path = elsewhere / "step-000000006" / "manifest.json"
        body = json.loads(path.read_text())
        body["parts"][0]["file"] = file
        del body["digest"]
        path.write_text(json.dumps({**body, "digest": _digest(body)}))
        monkeypatch.setenv("ASTRAGO_RESUME_FROM", str(path.parent))
        with pytest.raises(Damaged, match="it names what cannot be"):
            Checkpoints(elsewhere).latest()


def test_ranks_that_went_on_from_different_steps_are_stopped_at_their_first_save(three_steps):
    first, second = ranks(three_steps, 2)
    assert first.latest().step == 30
    truncate(part_of(three_steps / "step-000000030"))  # as if the second saw another directory
    assert second.latest().step == 20

    first.save(40, b"")
    with pytest.raises(
        RanksDisagree, match=r"rank 0 from 30, rank 1 from 20.*Start all ranks again"
    ):
        second.save(40, b"")
    assert steps(three_steps) == [10, 20, 30]


def test_a_look_during_training_is_no_disagreement(three_steps):
    group = ranks(three_steps, 2)
    for each in group:
        each.latest()
    save_all(group, 40)
    assert group[0].latest().step == 40
    save_all(group, 50)
    assert found_by_all(three_steps) == 50


def test_a_directory_that_cannot_be_listed_is_no_empty_one(directory):
    directory.write_text("a file")
    for each in (Checkpoints(directory), *ranks(directory, 2)):
        with pytest.raises(LoadFailed, match="cannot be listed: Not a directory"):
            each.latest()


def test_warnings_are_on_standard_error_without_any_setting(three_steps):
    truncate(part_of(three_steps / "step-000000030"))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from astrago_trainer import checkpoint as c; c.Checkpoints().latest()",
        ],
        env={**os.environ, "ASTRAGO_CHECKPOINT_DIR": str(three_steps)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.startswith(
        f"rank 0 skips the checkpoint {three_steps}/step-000000030: rank-"
    )
    assert done.stderr.count("\n") == 1
