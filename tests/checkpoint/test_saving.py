"""What is saved comes back, the newest ones stay, and nothing else is in the directory."""

import json
import os
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.checkpoint import Checkpoints, LoadFailed, NotConfigured
from tests.checkpoint.views import names, part_of, ranks, save_all, state_of, steps

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_state_comes_back_with_its_step_and_metadata(directory):
    checkpoints = Checkpoints(directory)
    assert checkpoints.latest() is None

    folder = checkpoints.save(120, b"weights", metadata={"epoch": 3, 7: (1, 2)})

    found = Checkpoints(directory).latest()
    assert (found.step, found.path, found.world_size) == (120, folder, 1)
    assert found.metadata == {"epoch": 3, "7": [1, 2]}
    assert found.load() == b"weights"


def test_a_complete_checkpoint_holds_one_part_per_rank_and_a_manifest(directory):
    save_all(ranks(directory, 2), 7)

    assert names(directory) == [
        "step-000000007/manifest.json",
        "step-000000007/rank-00000",
        "step-000000007/rank-00001",
    ]
    manifest = json.loads((directory / "step-000000007" / "manifest.json").read_text())
    assert (manifest["step"], manifest["world_size"]) == (7, 2)
    assert [part["size"] for part in manifest["parts"]] == [
        len(state_of(0, 7)),
        len(state_of(1, 7)),
    ]


@given(state=PLAIN)
@settings(max_examples=50, deadline=None)
def test_plain_values_come_back_as_they_were_without_trust(tmp_path_factory, state):
    checkpoints = Checkpoints(tmp_path_factory.mktemp("plain"))
    checkpoints.save(1, state)

    loaded = checkpoints.latest().load()

    assert loaded == state
    assert type(loaded) is type(state)


def test_large_states_are_written_without_a_copy_of_them_in_memory(directory):
    import tracemalloc

    state = {"weights": bytearray(64 << 20)}
    tracemalloc.start()
    try:
        Checkpoints(directory).save(1, state)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 << 20


class Dangerous:
    def __reduce__(self):
        return (os.mkdir, ("made-by-a-pickle",))


def test_a_pickle_that_would_run_code_is_refused(directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, {"weights": Dangerous()})

    with pytest.raises(LoadFailed, match=r"posix\.mkdir.*load\(trusted=True\) if you trust"):
        checkpoints.latest().load()

    assert not (tmp_path / "made-by-a-pickle").exists()
    checkpoints.latest().load(trusted=True)
    assert (tmp_path / "made-by-a-pickle").exists()


def test_other_objects_are_loaded_from_those_whom_one_trusts(directory):
    checkpoints = Checkpoints(directory)
    checkpoints.save(1, OrderedDict(path=Path("/data")))

    with pytest.raises(LoadFailed, match="holds more than plain values: found pathlib"):
        checkpoints.latest().load()
    assert checkpoints.latest().load(trusted=True) == OrderedDict(path=Path("/data"))


@pytest.mark.parametrize(("keep", "left"), [(1, [6]), (2, [5, 6]), (9, [1, 2, 3, 4, 5, 6])])
def test_the_newest_ones_are_kept(directory, keep, left):
    group = ranks(directory, 2, keep=keep)
    for step in range(1, 7):
        save_all(group, step)

    assert steps(directory) == left
    assert len(list(directory.iterdir())) == len(left)


def test_damaged_ones_do_not_count_among_those_kept(directory):
    checkpoints = Checkpoints(directory, keep=2)
    for step in (1, 2, 3):
        checkpoints.save(step, b"weights")
    part_of(directory / "step-000000003").unlink()

    checkpoints.save(4, b"weights")

    assert steps(directory) == [2, 3, 4]


def test_the_same_step_again_does_nothing_and_an_older_one_is_refused(directory):
    checkpoints = Checkpoints(directory)
    checkpoints.save(2, b"first")
    assert checkpoints.save(2, b"second") == directory / "step-000000002"
    assert checkpoints.latest().load() == b"first"

    with pytest.raises(
        ValueError, match="step is 1: expected a number from 0 that grows; the last"
    ):
        checkpoints.save(1, b"third")
    with pytest.raises(TypeError):
        checkpoints.save(2.5, b"third")


def test_metadata_that_json_does_not_know_is_refused_before_anything_is_written(directory):
    with pytest.raises(TypeError):
        Checkpoints(directory).save(1, b"weights", metadata={"path": Path("/")})
    assert not directory.exists()


def test_a_state_that_cannot_be_written_leaves_nothing(directory):
    checkpoints = Checkpoints(directory)
    with pytest.raises(Exception, match="pickle"):
        checkpoints.save(1, {"a": lambda: None})

    assert list(directory.iterdir()) == []
    checkpoints.save(1, b"weights")
    assert checkpoints.latest().load() == b"weights"


def test_with_equal_states_on_all_ranks_the_first_saves_for_all(directory):
    group = ranks(directory, 3, replicated=True)
    for rank, each in enumerate(group):
        each.save(5, f"state of {rank}".encode())

    assert names(directory) == ["step-000000005/manifest.json", "step-000000005/rank-00000"]
    found = [each.latest() for each in ranks(directory, 7, replicated=True)]
    assert {(each.step, each.world_size, each.load()) for each in found} == {(5, 3, b"state of 0")}


class TestInTheBackground:
    def test_a_save_is_durable_after_waiting(self, directory):
        checkpoints = Checkpoints(directory)
        state = {"weights": [1, 2]}
        checkpoints.save(1, state, wait=False)
        state["weights"].append(3)  # the state was copied: this comes too late
        checkpoints.wait()

        assert checkpoints.latest().load() == {"weights": [1, 2]}

    def test_saves_follow_each_other_in_order(self, directory):
        checkpoints = Checkpoints(directory)
        for step in range(6):
            checkpoints.save(step, bytes(1 << 16), wait=False)

        assert checkpoints.latest().step == 5
        assert steps(directory) == [3, 4, 5]


class TestWithoutADirectory:
    def test_the_variable_names_it(self, directory, monkeypatch):
        monkeypatch.setenv("ASTRAGO_CHECKPOINT_DIR", str(directory))
        assert Checkpoints().directory == directory

    def test_the_error_says_what_to_set(self):
        with pytest.raises(NotConfigured, match="set ASTRAGO_CHECKPOINT_DIR to a folder"):
            Checkpoints()

    def test_at_least_one_checkpoint_stays(self, directory):
        with pytest.raises(NotConfigured, match="keep is 0: at least 1"):
            Checkpoints(directory, keep=0)
