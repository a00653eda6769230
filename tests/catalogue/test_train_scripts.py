"""The sample scripts train for real: several processes on this machine, started as a job does."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from catalogue.frameworks import framework_path
from catalogue.inline import RUNTIMES, SYSTEM
from catalogue.shells import kill_session, read_until, running

TRAINING_SECONDS = 240.0  # for a busy machine; an idle one needs a tenth
QUICK = {
    "EPOCHS": "2",
    "SAMPLES": "1920",
    "BATCH_SIZE": "16",
    "OMP_NUM_THREADS": "1",
    "CUDA_VISIBLE_DEVICES": "",  # several processes cannot share one GPU
}


@pytest.fixture(scope="module")
def torch_path() -> str:
    return framework_path("torch")


@pytest.fixture(scope="module")
def tensorflow_path() -> str:
    return framework_path("tensorflow")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def started(
    arguments: list[str], env: dict[str, str], log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("w") as output:
        process = subprocess.Popen(
            arguments, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_session(process.pid)
        process.wait()


def train_together(
    arguments: list[str], envs: list[dict[str, str]], folder: Path
) -> list[tuple[int, str]]:
    """Run one process per environment at the same time; give exit code and output of each."""
    logs = [folder / f"{index}.log" for index in range(len(envs))]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(started(arguments, env, log))
            for env, log in zip(envs, logs, strict=True)
        ]
        codes = [process.wait(timeout=TRAINING_SECONDS) for process in processes]
    return [(code, log.read_text()) for code, log in zip(codes, logs, strict=True)]


def assert_in_order(output: str, *milestones: str) -> None:
    position = 0
    for milestone in milestones:
        found = re.compile(milestone, re.MULTILINE).search(output, position)
        assert found, f"{milestone!r} is missing, or too early, in:\n{output}"
        position = found.end()


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^Epoch \d+, Batch .*Loss: (.*)$", output, re.M)]


def torch_env(path: str, rank: int, nodes: int, port: int, **more: str) -> dict[str, str]:
    return {
        "PATH": path,
        "PET_NODE_RANK": str(rank),
        "PET_NNODES": str(nodes),
        "PET_NPROC_PER_NODE": "2",
        "PET_MASTER_ADDR": "127.0.0.1",
        "PET_MASTER_PORT": str(port),
        **QUICK,
        **more,
    }


def sourced(command: str) -> list[str]:
    return ["bash", "-c", f"source {SYSTEM / 'setup_pytorch_env.sh'}\n\n{command}"]


@pytest.mark.req("M1", "M2", "M19", "M30", "M58", "M71", "M80")
def test_two_pytorch_nodes_learn_together(torch_path, tmp_path):
    port = free_port()
    first, second = train_together(
        sourced(f"python {RUNTIMES / 'pytorch-simple' / 'train.py'}"),
        [torch_env(torch_path, rank, 2, port) for rank in (0, 1)],
        tmp_path,
    )
    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert_in_order(
        first[1],
        "^🔧 PyTorch 분산 학습 환경 설정 시작",
        "^✅ PyTorch 환경변수 설정 완료!",
        "^  - RANK: 0$",
        "^  - WORLD_SIZE: 2$",
        "^✅ 분산 학습 초기화 성공!",
        "^  - Rank: 0/2$",
        "^  - World Size: 2$",
        "^  - Device: cpu$",
        r"^🚀 분산 학습 시작 \(총 2개 노드\)$",
        r"^Epoch 1, Batch 0/60, Loss: \d+\.\d{4}$",
        r"^Epoch 1, Batch 10/60, Loss: \d+\.\d{4}$",
        r"^Epoch 2, Batch 0/60, Loss: \d+\.\d{4}$",
        "^Epoch 2/2 done",
        "^All 2 ranks hold equal weights$",
        "^🎉 PyTorch 분산 학습 완료!",
        "노드 수: 2$",
        r"최종 평균 Loss: \d+\.\d{4}$",
    )
    assert_in_order(second[1], "^  - RANK: 1$", "^  - Rank: 1/2$")
    assert losses(first[1])[-1] < 0.5 * losses(first[1])[0]
    assert losses(second[1]) == []


@pytest.mark.req("M104", "M118")
def test_torchrun_numbers_its_own_processes_after_the_same_setup(torch_path, tmp_path):
    env = torch_env(torch_path, 0, 1, free_port(), EPOCHS="1", SAMPLES="256")
    ((code, output),) = train_together(
        sourced(f"torchrun {RUNTIMES / 'pytorch' / 'train.py'}"), [env], tmp_path
    )
    assert code == 0, output
    assert sorted(re.findall(r"- Rank: (\d/\d)", output)) == ["0/2", "1/2"]
    assert_in_order(
        output, "^  - WORLD_SIZE: 1$", "^All 2 ranks hold equal weights$", "노드 수: 1$"
    )


def test_a_pytorch_node_that_must_stop_takes_the_others_along(torch_path, tmp_path):
    port = free_port()
    arguments = sourced(f"python {RUNTIMES / 'pytorch' / 'train.py'}")
    envs = [torch_env(torch_path, rank, 2, port, EPOCHS="100000") for rank in (0, 1)]
    log = tmp_path / "1.log"
    with (
        running(arguments, envs[0], deadline_seconds=TRAINING_SECONDS) as first,
        started(arguments, envs[1], log) as second,
    ):
        output = read_until(first, "Epoch 2, Batch 0/")
        second.send_signal(signal.SIGTERM)
        output += first.stdout.read()
        codes = [process.wait(timeout=TRAINING_SECONDS) for process in (first, second)]
    assert codes == [143, 143], output + log.read_text()
    assert "Rank 0: stopped by SIGTERM in epoch " in output
    assert "Rank 1: stopped by SIGTERM in epoch " in log.read_text()


@pytest.mark.req("M1", "M2", "M31", "M59", "M72", "M81")
def test_two_tensorflow_workers_learn_together(tensorflow_path, tmp_path):
    workers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    envs = [
        {
            "PATH": tensorflow_path,
            "TF_CONFIG": json.dumps(
                {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
            ),
            **QUICK,
        }
        for index in range(2)
    ]
    first, second = train_together(
        ["python3", str(RUNTIMES / "tensorflow-distributed" / "train.py")], envs, tmp_path
    )
    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert_in_order(
        first[1],
        "^✅ TF_CONFIG 로드 완료: Worker 0",
        "^✅ Worker 0 initialized with 2 replicas$",
        r"^🚀 분산 학습 시작 \(총 2개 워커\)$",
        "^Epoch 1/2$",
        "^Epoch 2/2$",
        "^🎉 TensorFlow 분산 학습 완료!",
        "노드 수: 2$",
        r"최종 Accuracy: (1\.0000|0\.9\d{3})$",
    )
    assert_in_order(second[1], "^✅ Worker 1 initialized with 2 replicas$")
    assert "학습 완료" not in second[1]


@pytest.mark.req("M81")
def test_one_tensorflow_worker_needs_no_configuration(tensorflow_path, tmp_path):
    env = {"PATH": tensorflow_path, **QUICK, "EPOCHS": "1"}
    ((code, output),) = train_together(
        ["python3", str(RUNTIMES / "tensorflow" / "train.py")], [env], tmp_path
    )
    assert code == 0, output
    assert_in_order(output, "^✅ Worker 0 initialized with 1 replicas$", "노드 수: 1$")


def test_two_processes_of_mpirun_learn_together_without_horovod(torch_path, tmp_path):
    port = free_port()
    envs = [
        {
            "PATH": torch_path,
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "MASTER_PORT": str(port),
            **QUICK,
        }
        for rank in (0, 1)
    ]
    first, second = train_together(
        ["python", str(RUNTIMES / "horovod" / "train.py")], envs, tmp_path
    )
    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert_in_order(
        first[1],
        "^torch.distributed init succeeded$",
        "^Rank: 0/2, ",
        "^All 2 ranks hold equal weights$",
        "^process count: 2$",
    )
    assert losses(first[1])[-1] < 0.5 * losses(first[1])[0]
