"""The variables a training process finds: PyTorch's five, and TF_CONFIG."""

import json
from pathlib import Path

import pytest

from catalogue.inline import SYSTEM
from catalogue.shells import POSIX_SHELLS, plain_env, run, shell_command

PRINT_ENV = "python -c 'import json, os; print(json.dumps(dict(os.environ)))'"

PET = {
    "PET_NODE_RANK": "1",
    "PET_NNODES": "2",
    "PET_NPROC_PER_NODE": "4",
    "PET_MASTER_ADDR": "job-node-0-0.job",
    "PET_MASTER_PORT": "29500",
}
TORCH = {
    "RANK": "1",
    "WORLD_SIZE": "2",
    "MASTER_ADDR": "job-node-0-0.job",
    "MASTER_PORT": "29500",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
}

# What a user may have put where a number or a name is expected. None may be run, or get into JSON.
HOSTILE = [
    "$(touch canary)",
    "`touch canary`",
    "'; touch canary; '",
    '"; touch canary; "',
    "1 2",
    "1\ntouch canary",
    "-1",
    "1.5",
    "0x2",
    "01",
    "999999",
    "two",
    "１",
]


def source(script: str, command: str, env: dict[str, str], *options: str):
    return run(["bash", *options, "-c", f"source {SYSTEM / script}\n\n{command}"], env)


def last_env(done) -> dict[str, str]:
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout.splitlines()[-1])


def chosen(env: dict[str, str], names) -> dict[str, str | None]:
    return {name: env.get(name) for name in names}


# PyTorch


@pytest.mark.req("M1", "M2", "M11", "M71", "M123")
@pytest.mark.parametrize("options", [[], ["-eu", "-o", "pipefail"]], ids=["plain", "strict"])
def test_pytorch_setup_exports_the_names_pytorch_reads(options):
    env = last_env(source("setup_pytorch_env.sh", PRINT_ENV, plain_env(**PET), *options))
    assert chosen(env, TORCH) == TORCH


@pytest.mark.req("M11", "M104", "M118")
def test_pytorch_setup_leaves_what_torchrun_reads_alone():
    env = last_env(source("setup_pytorch_env.sh", PRINT_ENV, plain_env(**PET)))
    assert chosen(env, PET) == PET


@pytest.mark.req("M30")
def test_pytorch_setup_says_when_it_starts_and_what_it_set():
    done = source("setup_pytorch_env.sh", "echo user code", plain_env(**PET))
    assert done.stdout.splitlines() == [
        "🔧 PyTorch 분산 학습 환경 설정 시작 (PyTorch setup started)",
        "✅ PyTorch 환경변수 설정 완료! (PyTorch setup done)",
        "  - RANK: 1",
        "  - WORLD_SIZE: 2",
        "  - LOCAL_RANK: 0",
        "  - MASTER_ADDR: job-node-0-0.job",
        "  - MASTER_PORT: 29500",
        "user code",
    ]


@pytest.mark.req("M11")
@pytest.mark.parametrize(
    ("given", "missing"),
    [
        (
            {"JOB_COMPLETION_INDEX": "1"},
            "PET_NODE_RANK PET_NNODES PET_MASTER_ADDR PET_MASTER_PORT",
        ),
        ({**PET, "PET_NODE_RANK": ""}, "PET_NODE_RANK"),
        ({name: PET[name] for name in PET if name != "PET_NODE_RANK"}, "PET_NODE_RANK"),
        ({name: PET[name] for name in PET if name != "PET_MASTER_ADDR"}, "PET_MASTER_ADDR"),
    ],
)
def test_pytorch_setup_fails_without_the_variables_of_the_trainer(given, missing):
    done = source("setup_pytorch_env.sh", "echo user code", plain_env(**given))
    assert done.returncode == 1
    assert done.stdout == (
        "🔧 PyTorch 분산 학습 환경 설정 시작 (PyTorch setup started)\n"
        f"❌ PyTorch 환경변수 설정 실패 (PyTorch setup failed): not set: {missing}. "
        "The Trainer sets them when the runtime has "
        "mlPolicy.torch and the TrainJob has spec.trainer.\n"
    )


@pytest.mark.req("M11")
@pytest.mark.parametrize(("given", "found"), [({}, "WARN"), ({"NCCL_DEBUG": "INFO"}, "INFO")])
def test_nccl_is_quiet_unless_the_job_wants_it_otherwise(given, found):
    env = last_env(source("setup_pytorch_env.sh", PRINT_ENV, plain_env(**PET, **given)))
    assert env["NCCL_DEBUG"] == found


@pytest.mark.req("M47")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PET, TORCH),
        (
            {"JOB_COMPLETION_INDEX": "0"},
            {
                "RANK": "0",
                "WORLD_SIZE": "1",
                "MASTER_ADDR": "localhost",
                "MASTER_PORT": "29500",
                "LOCAL_RANK": "0",
                "LOCAL_WORLD_SIZE": "1",
            },
        ),
    ],
    ids=["set by the Trainer", "not set"],
)
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_what_the_init_container_of_pytorch_writes_exports_the_same_with_defaults(
    shell, given, expected, tmp_path
):
    script = (SYSTEM / "write_pytorch_setup.sh").read_text()
    written = run([*shell_command(shell), "-c", script], plain_env(SETUP_FOLDER=str(tmp_path)))
    assert (written.returncode, written.stdout, written.stderr) == (0, "", "")
    text = f"source {tmp_path}/setup_pytorch_env.sh\n{PRINT_ENV}"
    done = run(["bash", "-euc", text], plain_env(**given))
    assert chosen(last_env(done), TORCH) == expected


# TensorFlow


def cluster(job: str, namespace: str, port: int, workers: int, index: int) -> dict:
    return {
        "cluster": {
            "worker": [
                f"{job}-node-0-{i}.{job}.{namespace}.svc.cluster.local:{port}"
                for i in range(workers)
            ]
        },
        "task": {"type": "worker", "index": index},
    }


def write(shell: str, target: Path, env: dict[str, str]):
    """Run the script as the init container does: `sh -c <text>`."""
    script = (SYSTEM / "write_tf_config.sh").read_text()
    return run(
        [*shell_command(shell), "-c", script],
        plain_env(TF_CONFIG_FILE=str(target), **env),
        cwd=target.parent,
    )


def written_config(target: Path) -> dict:
    """What the last line exports, after the lines that hand signals over."""
    *handover, line = target.read_text().splitlines()
    assert handover == [
        "# --- handover.sh",
        *(SYSTEM / "handover.sh").read_text().splitlines(),
        "# --- end of handover.sh",
    ]
    assert line.startswith("export TF_CONFIG='")
    return json.loads(line.removeprefix("export TF_CONFIG='").removesuffix("'"))


TF_CASES = [
    pytest.param(
        {"NUM_WORKERS": "3", "NAMESPACE": "user-123", "JOB_COMPLETION_INDEX": "2"},
        cluster("job", "user-123", 2222, 3, 2),
        id="three workers",
    ),
    pytest.param({}, cluster("job", "default", 2222, 1, 0), id="defaults"),
    pytest.param({"PET_NNODES": "2"}, cluster("job", "default", 2222, 2, 0), id="PET_NNODES"),
    pytest.param(
        {"NUM_WORKERS": "2", "PET_NNODES": "5"},
        cluster("job", "default", 2222, 2, 0),
        id="NUM_WORKERS first",
    ),
    pytest.param(
        {"NUM_WORKERS": "", "PET_NNODES": "2", "TF_PORT": "", "NAMESPACE": ""},
        cluster("job", "default", 2222, 2, 0),
        id="empty is not set",
    ),
    pytest.param({"TF_PORT": "2333"}, cluster("job", "default", 2333, 1, 0), id="port"),
    pytest.param(
        {"HOSTNAME": "job-node-0-11", "NUM_WORKERS": "12"},
        cluster("job", "default", 2222, 12, 11),
        id="index from the host name",
    ),
    pytest.param(
        {"HOSTNAME": "my-node-0-3-x-node-0-1", "NUM_WORKERS": "2"},
        cluster("my-node-0-3-x", "default", 2222, 2, 1),
        id="a job name that looks like a host name",
    ),
    pytest.param(
        {"HOSTNAME": "job-node-0-1.job.ns.svc.cluster.local", "NUM_WORKERS": "2"},
        cluster("job", "default", 2222, 2, 1),
        id="a full host name",
    ),
]


@pytest.mark.req("M1", "M12", "M13", "M20", "M72")
@pytest.mark.parametrize(("given", "expected"), TF_CASES)
@pytest.mark.parametrize("options", [[], ["-eu", "-o", "pipefail"]], ids=["plain", "strict"])
def test_tensorflow_setup_exports_tf_config(options, given, expected):
    env = plain_env(**{"HOSTNAME": "job-node-0-0", **given})
    found = last_env(source("generate_tf_config.sh", PRINT_ENV, env, *options))
    assert json.loads(found["TF_CONFIG"]) == expected


@pytest.mark.req("M31")
def test_tensorflow_setup_says_when_it_starts_and_what_it_set():
    done = source("generate_tf_config.sh", "echo user code", plain_env(HOSTNAME="a-node-0-0"))
    lines = done.stdout.splitlines()
    assert lines[:2] == [
        "🔧 TF_CONFIG 생성 시작 (TF_CONFIG generation started)",
        "✅ TF_CONFIG 생성 완료! (TF_CONFIG generation done)",
    ]
    assert lines[2].startswith('TF_CONFIG: {"cluster":{"worker":["a-node-0-0.a.default.svc.')
    assert lines[3] == "user code"


@pytest.mark.req("M39", "M48", "M77")
@pytest.mark.parametrize(("given", "expected"), TF_CASES)
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_the_init_container_writes_a_line_that_exports_tf_config(shell, given, expected, tmp_path):
    target = tmp_path / "tf_config.env"
    done = write(shell, target, {"HOSTNAME": "job-node-0-0", **given})
    assert (done.returncode, done.stderr) == (0, "")
    assert written_config(target) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["forward.py", "tf_config.env"]


@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_addresses_that_are_given_go_before_host_names(shell, tmp_path):
    target = tmp_path / "tf_config.env"
    given = {"HOSTNAME": "job-node-0-1", "NUM_WORKERS": "3", "TF_ADDRESSES": "10.0.0.1:40,b:41"}
    assert write(shell, target, given).returncode == 0
    config = written_config(target)
    third = "job-node-0-2.job.default.svc.cluster.local:2222"
    assert config["cluster"]["worker"] == ["10.0.0.1:40", "b:41", third]


@pytest.mark.req("M48", "M59")
def test_a_command_reads_what_the_init_container_wrote(tmp_path):
    target = tmp_path / "tf_config.env"
    write("dash", target, {"HOSTNAME": "job-node-0-1", "PET_NNODES": "2", "NAMESPACE": "ns"})
    text = f'source {target}\necho "TF_CONFIG: $TF_CONFIG"\n\n{PRINT_ENV}'
    done = run(["bash", "-euc", text], plain_env())
    config = last_env(done)["TF_CONFIG"]
    assert json.loads(config) == cluster("job", "ns", 2222, 2, 1)
    assert done.stdout.splitlines()[0] == f"TF_CONFIG: {config}"


@pytest.mark.req("M20", "M39", "M48")
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_the_init_container_lets_a_job_pass_that_numbers_its_workers_elsewhere(shell, tmp_path):
    target = tmp_path / "tf_config.env"
    done = write(shell, target, {"HOSTNAME": "job-node-0-1"})
    assert done.returncode == 0
    assert done.stdout.endswith("this is worker 1: there is no TF_CONFIG to write\n")

    relying = run(["bash", "-c", f"source {target}\necho user code"], plain_env())
    assert (relying.returncode, relying.stdout) == (
        1,
        "There is no TF_CONFIG: set NUM_WORKERS of the init container tf-config-generator "
        "to the numNodes of the TrainJob.\n",
    )


@pytest.mark.req("M39", "M135")
@pytest.mark.parametrize("given", [{"NUM_WORKERS": "2"}, {"PET_NNODES": "2"}])
def test_a_number_of_workers_too_small_for_the_index_is_refused(given, tmp_path):
    env = {"HOSTNAME": "job-node-0-2", **given}
    message = (
        "🔧 TF_CONFIG 생성 시작 (TF_CONFIG generation started)\n"
        "❌ TF_CONFIG 생성 실패 (TF_CONFIG generation failed): this is worker 2, but the number of workers is 2; "
        "set NUM_WORKERS to the numNodes of the TrainJob\n"
    )
    sourced = source("generate_tf_config.sh", "echo user code", plain_env(**env))
    written = write("dash", tmp_path / "tf_config.env", env)
    for done in (sourced, written):
        assert (done.returncode, done.stdout) == (1, message)
    assert not list(tmp_path.iterdir())


@pytest.mark.req("M13", "M135")
def test_tensorflow_setup_does_not_take_one_worker_of_several_for_the_only_one():
    done = source("generate_tf_config.sh", "echo user code", plain_env(HOSTNAME="job-node-0-1"))
    assert done.returncode == 1
    assert "this is worker 1, but the number of workers is 1" in done.stdout


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", ["NUM_WORKERS", "PET_NNODES", "TF_PORT", "JOB_COMPLETION_INDEX"])
def test_what_is_no_number_is_refused_and_never_run(name, value, tmp_path):
    env = {"HOSTNAME": "job-node-0-0", name: value}
    sourced = run(
        ["bash", "-c", f"source {SYSTEM / 'generate_tf_config.sh'}"], plain_env(**env), cwd=tmp_path
    )
    written = write("dash", tmp_path / "tf_config.env", env)
    for done in (sourced, written):
        assert done.returncode == 1
        assert f"must be a number of at most 5 digits, not '{value}'" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "env",
    [
        {"NAMESPACE": "a'; touch canary; '"},
        {"NAMESPACE": 'a"]}}'},
        {"NAMESPACE": "Upper"},
        {"HOSTNAME": "a'$(touch canary)-node-0-0"},
        {"HOSTNAME": "laptop"},
        {"HOSTNAME": "job-node-0-x"},
        {"HOSTNAME": "-node-0-0"},
        {"NUM_WORKERS": "0"},
        {"TF_PORT": "0"},
        {"TF_PORT": "65536"},
        {"TF_ADDRESSES": "$(touch canary):1"},
        {"TF_ADDRESSES": 'a:1"],"b:2'},
    ],
)
@pytest.mark.parametrize("shell", POSIX_SHELLS)
def test_what_is_no_name_no_port_and_no_worker_is_refused(shell, env, tmp_path):
    done = write(shell, tmp_path / "tf_config.env", {"HOSTNAME": "job-node-0-0", **env})
    assert done.returncode == 1
    failure = "❌ TF_CONFIG 생성 실패 (TF_CONFIG generation failed): "
    assert done.stdout.splitlines()[1].startswith(failure)
    assert not list(tmp_path.iterdir())
