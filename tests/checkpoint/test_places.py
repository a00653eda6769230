"""The rank is read from the variables of whichever launcher started the process."""

import json

import pytest

from astrago_trainer.checkpoint import Checkpoints, NotConfigured

WORKERS = {"worker": ["a:1", "b:1"]}


def tf_config(kind: str, index: int, **cluster: list[str]) -> dict[str, str]:
    task = {"type": kind, "index": index}
    return {"TF_CONFIG": json.dumps({"cluster": {**WORKERS, **cluster}, "task": task})}


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        pytest.param({}, (0, 1), id="alone"),
        pytest.param({"RANK": "1", "WORLD_SIZE": "4"}, (1, 4), id="torchrun"),
        pytest.param({"JAX_PROCESS_ID": "2", "JAX_NUM_PROCESSES": "3"}, (2, 3), id="jax"),
        pytest.param(
            {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "8"}, (3, 8), id="mpirun"
        ),
        pytest.param(tf_config("worker", 1), (1, 2), id="tensorflow"),
        pytest.param(tf_config("worker", 1, chief=["c:1"]), (2, 3), id="tensorflow with a chief"),
        pytest.param(tf_config("chief", 0, chief=["c:1"]), (0, 3), id="tensorflow's chief"),
        pytest.param({"TF_CONFIG": "{}"}, (0, 1), id="tensorflow alone"),
        pytest.param(
            {"RANK": "1", "WORLD_SIZE": "2", **tf_config("worker", 0)}, (1, 2), id="torchrun first"
        ),
    ],
)
def test_the_place_comes_from_the_launcher(directory, monkeypatch, variables, place):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    checkpoints = Checkpoints(directory)

    checkpoints.save(1, b"")
    (name,) = {path.name[:10] for path in (directory / "step-000000001").glob("rank-*")}
    assert name == f"rank-{place[0]:05d}"
    assert (directory / "step-000000001" / "manifest.json").exists() == (place[1] == 1)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            {"RANK": "1"},
            r"RANK and WORLD_SIZE must both be numbers: found RANK='1', WORLD_SIZE=None",
        ),
        ({"RANK": "x", "WORLD_SIZE": "2"}, "found RANK='x', WORLD_SIZE='2'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "rank 2 of 2 cannot be"),
        ({"TF_CONFIG": "{"}, "TF_CONFIG names no place"),
        (tf_config("ps", 0), "TF_CONFIG names no place among chief and workers"),
    ],
)
def test_an_impossible_place_is_refused(directory, monkeypatch, variables, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(NotConfigured, match=message):
        Checkpoints(directory)


def test_rank_and_world_size_go_together(directory):
    with pytest.raises(NotConfigured, match="give both, or none"):
        Checkpoints(directory, rank=1)
