"""What a process is told about its place in the job, beside what torchrun would tell it."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from catalogue.frameworks import framework_path
from catalogue.shells import plain_env
from catalogue.test_train_scripts import free_port, train_together
from launcher.common import LAUNCH, launch, message, program

NODES, PROCESSES = 2, 2

SAVE_ENVIRONMENT = """
    import json, os, pathlib, sys
    name = os.environ.get("RANK", "none")
    path = pathlib.Path(os.environ["FOLDER"], name + ".json")
    path.write_text(json.dumps([dict(os.environ), sys.argv[1:]]))
"""


@pytest.fixture(scope="module")
def torch_path() -> str:
    return framework_path("torch")


@pytest.fixture(scope="module")
def launcher() -> ModuleType:
    """The file as a module, for the functions that ask nothing of the machine."""
    spec = importlib.util.spec_from_file_location("launch", LAUNCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def save(tmp_path: Path) -> Path:
    return program(tmp_path, SAVE_ENVIRONMENT, "save.py")


def told(folder: Path, rank: int | str = 0) -> dict[str, str]:
    return json.loads((folder / f"{rank}.json").read_text())[0]


def trainer_env(node: int, port: int, **more: str) -> dict[str, str]:
    """What the Trainer gives the pods of a two-node job."""
    return {
        "PET_NNODES": str(NODES),
        "PET_NODE_RANK": str(node),
        "PET_NPROC_PER_NODE": str(PROCESSES),
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": str(port),
        **more,
    }


@pytest.mark.req("M123", "X7")
def test_processes_are_told_what_torchrun_would_tell_them(torch_path, save, tmp_path):
    given = []
    for words in (["torchrun"], ["python", str(LAUNCH), "--"]):
        folder = tmp_path / words[0]
        folder.mkdir()
        port = free_port()
        envs = [
            trainer_env(node, port, PATH=torch_path, FOLDER=str(folder)) for node in range(NODES)
        ]
        ended = train_together([*words, str(save), "one", "two  three"], envs, folder)
        assert [code for code, _ in ended] == [0, 0], ended
        given.append([json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)])
    for (theirs, their_words), (ours, our_words) in zip(*given, strict=True):
        assert our_words == their_words == ["one", "two  three"]
        for name in ("MASTER_PORT", "PET_MASTER_PORT", "FOLDER"):  # of each run
            assert ours.pop(name)
            assert theirs.pop(name)
        # An agent of torchrun keeps the store and a file for errors; there is no agent here.
        assert theirs.pop("TORCHELASTIC_USE_AGENT_STORE") == "True"
        assert ours.pop("TORCHELASTIC_USE_AGENT_STORE") == "False"
        assert theirs.pop("TORCHELASTIC_ERROR_FILE")
        assert theirs.pop("TORCHELASTIC_SIGNALS_TO_HANDLE")
        assert ours == theirs


@pytest.mark.req("M123", "X7")
def test_two_nodes_of_two_processes_meet_without_torchrun(torch_path, tmp_path):
    script = program(
        tmp_path,
        """
        import torch, torch.distributed as dist
        dist.init_process_group("gloo")
        total = torch.tensor([float(10 ** dist.get_rank())])
        dist.all_reduce(total)
        print("sum", int(total), "of", dist.get_world_size(), dist.is_torchelastic_launched())
        dist.destroy_process_group()
        """,
    )
    port = free_port()
    ended = train_together(
        ["python", str(LAUNCH), "--", str(script)],
        [trainer_env(node, port, PATH=torch_path) for node in range(NODES)],
        tmp_path,
    )
    assert [code for code, _ in ended] == [0, 0], ended
    for _, output in ended:
        assert output.count("sum 1111 of 4 True\n") == PROCESSES, output


def test_with_nothing_set_it_is_one_process_with_a_free_port(save, tmp_path):
    done = launch("--", save, FOLDER=str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    env = told(tmp_path)
    port = int(env.pop("MASTER_PORT"))
    assert 1024 <= port <= 65535
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
    assert [env[name] for name in names] == ["0", "0", "1", "1", "0"]
    assert env["MASTER_ADDR"] == "127.0.0.1"
    assert "OMP_NUM_THREADS" not in env


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"MASTER_ADDR": "here", "MASTER_PORT": "1234"}, ("here", "1234")),
        ({"MASTER_ADDR": "here", "PET_MASTER_ADDR": "there", "MASTER_PORT": "1"}, ("there", "1")),
        ({"PET_MASTER_ADDR": "a", "PET_NNODES": "2", "PET_NODE_RANK": "1"}, ("a", "29500")),
    ],
    ids=["plain", "of the Trainer", "the port of torch"],
)
def test_the_master_is_the_trainers_then_the_environments(given, expected, save, tmp_path):
    assert launch("--", save, FOLDER=str(tmp_path), **given).returncode == 0
    (path,) = tmp_path.glob("*.json")
    env = told(tmp_path, path.stem)
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == expected


def test_what_a_set_up_script_exported_for_one_process_is_put_right(save, tmp_path):
    """`setup_pytorch_env.sh` numbers nodes, not processes."""
    sourced = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    env = trainer_env(1, 29500, FOLDER=str(tmp_path), **sourced)
    assert launch("--", save, **env).returncode == 0
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["2", "3"]
    found = told(tmp_path, 3)
    assert (found["WORLD_SIZE"], found["LOCAL_RANK"], found["LOCAL_WORLD_SIZE"]) == ("4", "1", "2")


@pytest.mark.parametrize(
    ("given", "name", "expected"),
    [
        ({}, "OMP_NUM_THREADS", "1"),
        ({"OMP_NUM_THREADS": "7"}, "OMP_NUM_THREADS", "7"),
        ({"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "0"),
        ({"ASTRAGO_ATTEMPT": "3"}, "TORCHELASTIC_RESTART_COUNT", "3"),
        ({"ASTRAGO_ATTEMPT": "odd"}, "TORCHELASTIC_RESTART_COUNT", "0"),
        ({"PET_MAX_RESTARTS": "5"}, "TORCHELASTIC_MAX_RESTARTS", "5"),
        ({"PET_RDZV_ID": "job-1"}, "TORCHELASTIC_RUN_ID", "job-1"),
        ({"PET_ROLE": "trainer"}, "ROLE_NAME", "trainer"),
        ({"TORCHELASTIC_USE_AGENT_STORE": "True"}, "TORCHELASTIC_USE_AGENT_STORE", "False"),
        ({"PYTHONUNBUFFERED": "1"}, "PYTHONUNBUFFERED", "1"),
    ],
)
def test_a_variable_is_a_default_or_a_fact(given, name, expected, save, tmp_path):
    assert launch("--nproc", 2, "--", save, FOLDER=str(tmp_path), **given).returncode == 0
    assert told(tmp_path, 1)[name] == expected


TF_CONFIG = json.dumps({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"index": 1}})


@pytest.mark.req("M81")
@pytest.mark.parametrize(
    ("given", "rank"),
    [
        (
            {
                "JAX_NUM_PROCESSES": "2",
                "JAX_PROCESS_ID": "1",
                "JAX_COORDINATOR_ADDRESS": "job-node-0-0.job:29500",
            },
            1,
        ),
        ({"TF_CONFIG": TF_CONFIG, "PET_NNODES": "2", "NUM_WORKERS": "2"}, 1),
        ({"TF_CONFIG": "{"}, 0),
    ],
    ids=["jax", "tensorflow", "tensorflow that is broken"],
)
def test_jax_and_tensorflow_run_alone_and_keep_their_own(given, rank, save, tmp_path):
    assert launch("--", save, FOLDER=str(tmp_path), **given).returncode == 0
    env = told(tmp_path, "none")
    env.pop("LC_CTYPE", None)  # an interpreter sets it where no locale is
    assert env == plain_env(FOLDER=str(tmp_path), **given)
    place = tmp_path / "message"
    failing = program(tmp_path, "raise SystemExit(3)")
    assert launch("--", failing, ASTRAGO_TERMINATION_LOG=str(place), **given).returncode == 3
    assert message(place)[0]["rank"] == rank


def test_the_number_of_processes_is_the_options_then_the_trainers(save, tmp_path):
    env = {"PET_NPROC_PER_NODE": "2", "FOLDER": str(tmp_path)}
    assert launch("--", save, **env).returncode == 0
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == ["0", "1"]
    assert launch("--nproc=3", "--", save, **env).returncode == 0
    assert told(tmp_path, 2)["WORLD_SIZE"] == "3"


@pytest.mark.parametrize("word", ["cpu", "auto"])
def test_without_a_gpu_there_is_a_process_for_each_cpu(word, save, tmp_path):
    env = {"PET_NPROC_PER_NODE": word, "CUDA_VISIBLE_DEVICES": "", "FOLDER": str(tmp_path)}
    assert launch("--", save, **env).returncode == 0
    assert told(tmp_path)["LOCAL_WORLD_SIZE"] == str(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("chosen", "present", "count"),
    [
        (None, 8, 8),
        ("", 8, 0),
        ("0", 8, 1),
        ("0, 2,5", 8, 3),
        ("-1", 8, 0),
        ("0,-1,1", 8, 1),
        ("0,1,8,2", 8, 2),
        ("none", 8, 0),
        ("GPU-8932f937-d72c,GPU-2", 8, 2),
        ("GPU-1,GPU-2", 1, 1),
        ("MIG-1,MIG-2", 8, 1),
        ("MIG-1", 0, 0),
        (None, 0, 0),
        ("0,1", 0, 0),
    ],
)
def test_gpus_are_counted_as_cuda_sees_them(launcher, chosen, present, count):
    assert launcher.count_visible(chosen, present) == count


@pytest.mark.parametrize(
    ("env", "words", "text"),
    [
        ({"PET_NNODES": "two"}, [], "PET_NNODES must be a number from 1"),
        ({"PET_NNODES": "0"}, [], "PET_NNODES must be a number from 1"),
        ({"PET_NNODES": "1:4"}, [], "needs torchrun"),
        ({"PET_NNODES": "2"}, [], "PET_NODE_RANK is not set"),
        ({"PET_NNODES": "2", "PET_NODE_RANK": "2"}, [], "from 0 to 1; found '2'"),
        ({"PET_NNODES": "2", "PET_NODE_RANK": "-1"}, [], "from 0 to 1; found '-1'"),
        ({"PET_NNODES": "2", "PET_NODE_RANK": "0"}, [], "PET_MASTER_ADDR is not set"),
        ({"PET_MASTER_PORT": "70000"}, [], "from 1 to 65535; found '70000'"),
        ({"PET_NPROC_PER_NODE": "0"}, [], "PET_NPROC_PER_NODE must be a number"),
        ({"PET_NPROC_PER_NODE": "tpu"}, [], "auto, cpu or gpu; found 'tpu'"),
        ({"CUDA_VISIBLE_DEVICES": ""}, ["--nproc", "gpu"], "no GPU is visible here"),
        ({"JAX_PROCESS_ID": "0"}, ["--nproc", "2"], "with JAX_PROCESS_ID set"),
        ({}, ["--nproc"], "--nproc needs a value"),
        ({}, ["--grace", "soon"], "--grace must be a number of seconds; found 'soon'"),
        ({}, ["--kill-after=-1"], "--kill-after must be a number of seconds"),
        ({}, ["--kill-after=nan"], "--kill-after must be a number of seconds"),
        ({}, ["--nprocs", "2"], "there is no option --nprocs"),
    ],
)
def test_a_wrong_value_is_one_line_that_says_what_to_do(env, words, text, save, tmp_path):
    place = tmp_path / "message"
    tail = ["--", save] if words != ["--nproc"] else []
    done = launch(*words, *tail, ASTRAGO_TERMINATION_LOG=str(place), **env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("launch: ")
    assert done.stderr.count("\n") == 1
    assert text in done.stderr
    assert message(place) == ({"rank": None, "exit_code": 2}, done.stderr)
    assert not list(tmp_path.glob("*.json")), "nothing must have been started"


@pytest.mark.parametrize("words", [["--prefix"], ["--"], ["-m"], ["--", "-m"]])
def test_nothing_to_run_is_said(words):
    done = launch(*words)
    assert done.returncode == 2
    assert "`python launch.py --help` shows the form." in done.stderr
    assert launch("--help").stdout.startswith("usage: python launch.py [options] -- script.py")
