"""The samples train for real under torchrun: two processes on this machine, saved and continued."""

import re
import socket
import subprocess
from pathlib import Path

import pytest
from tests.lengths import in_campaign

from catalogue.frameworks import framework_path
from catalogue.shells import kill_session, read_until, running

SAMPLES = Path(__file__).parents[2] / "samples"
MNIST = SAMPLES / "mnist-ddp.py"
T5 = SAMPLES / "fsdp" / "t5-fsdp.py"
TINY = ("--model_id=tiny", "--train_size=80", "--lr=1e-3", "--num_workers=0")
TRAINING_SECONDS = 240.0  # for a busy machine; an idle one needs a tenth


@pytest.fixture(scope="module")
def env() -> dict[str, str]:
    return {
        "PATH": framework_path("torch"),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",  # several processes cannot share one GPU
    }


# Both ranks write into one output, so what a rank says need not have a line of its own.


def torchrun(script: Path, *options: str) -> list[str]:
    meeting = ("--rdzv_backend=c10d", "--rdzv_endpoint=127.0.0.1:0")  # a port that is free
    return ["torchrun", "--nproc_per_node=2", *meeting, str(script), *options]


def alone(script: Path, *options: str) -> list[str]:
    return ["python", str(script), *options]


def run(arguments: list[str], env: dict[str, str]) -> str:
    """Give the output of a training that must succeed."""
    with running(arguments, env, deadline_seconds=TRAINING_SECONDS) as process:
        output = process.stdout.read()
        assert process.wait() == 0, output
    return output


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"^Epoch \d+, .*Loss: (.*)$", output, re.M)]


def final_loss(output: str) -> float:
    return float(re.findall(r"^final mean loss: (.*)$", output, re.M)[0])


def saved_epochs(folder: Path) -> list[int]:
    """Those that are complete: .metadata is written last."""
    return sorted(int(path.parent.name[6:]) for path in folder.glob("epoch_*/.metadata"))


@pytest.mark.req("M96")
def test_two_processes_learn_the_pictures_together(env):
    quick = {"EPOCHS": "2", "SAMPLES": "1760", "BATCH_SIZE": "8"}
    output = run(torchrun(MNIST), {**env, **quick})

    ranks = re.findall(r"Rank: (\d/\d), world size: 2, backend: gloo, device: cpu", output)
    assert sorted(ranks) == ["0/2", "1/2"]
    batches = re.findall(r"^(Epoch \d, Batch .*), Loss: \d+\.\d{4}$", output, re.M)
    assert batches == [
        f"Epoch {epoch}, Batch {batch}/110" for epoch in (1, 2) for batch in (0, 100)
    ]
    assert losses(output)[-1] < 0.5 * losses(output)[0]
    assert "All 2 ranks hold equal weights\nTraining finished\nfinal mean loss: " in output
    assert output.count("분산 학습 초기화 성공!") == 2
    assert "노드 수: 1\n" in output, "two processes on one node"
    assert f"최종 평균 Loss: {final_loss(output):.4f}\n" in output


@pytest.mark.req("M96")
def test_the_pictures_are_trained_as_the_original_does_when_nothing_is_set():
    text = MNIST.read_text(encoding="utf-8")

    defaults = dict(re.findall(r'environ\.get\("(\w+)", "([\d.]+)"\)', text))
    wanted = {"EPOCHS": "10", "BATCH_SIZE": "64", "SAMPLES": "60000", "LEARNING_RATE": "0.001"}
    assert wanted.items() <= defaults.items()
    assert "LOG_EVERY = 100 " in text


@pytest.mark.req("M117", "M118")
def test_a_killed_training_goes_on_after_the_last_saved_epoch(env, tmp_path):
    saving = (*TINY, f"--save_path={tmp_path}")
    endless = torchrun(T5, *saving, "--epochs=100000")
    with running(endless, env, deadline_seconds=TRAINING_SECONDS) as process:
        first = read_until(process, "Epoch 1 saved in ")
        kill_session(process.pid)
    (*_, newest) = saved_epochs(tmp_path)

    # Split in another way, and then with one process instead of two: each finds the parts of both.
    other_way = "--sharding_strategy=SHARD_GRAD_OP"
    second = run(torchrun(T5, *saving, f"--epochs={newest + 2}", other_way), env)
    third = run(alone(T5, *saving, f"--epochs={newest + 2}"), env)

    assert f"Starting at epoch 0: nothing is saved in {tmp_path}\n" in first
    saved = f"epoch {newest} is saved in {tmp_path}/epoch_{newest}\n"
    assert f"Resuming at epoch {newest + 1}: {saved}" in second
    assert re.findall(r"^Epoch (\d+) done", second, re.M) == [str(newest + 1)]
    assert losses(second)[0] < 0.95 * losses(first)[0]
    assert re.search(
        r"^Training finished\nfinal mean loss: .*\nwall time: \d+\.\d s$", second, re.M
    )
    assert f"Resuming at epoch {newest + 2}: epoch {newest + 1} is saved in " in third
    assert f"Nothing left to train: {newest + 2} epochs are saved\n" in third
    assert saved_epochs(tmp_path) == [newest, newest + 1], "older ones are removed"


@pytest.fixture(scope="module")
def loss_of_one_process(env) -> float:
    """After one epoch in which it saw all of each batch."""
    return final_loss(run(alone(T5, *TINY, "--batch_size=8"), env))


@pytest.mark.req("M116")
@pytest.mark.parametrize("strategy", ["HYBRID_SHARD", *in_campaign("NO_SHARD")])
def test_how_the_work_is_split_changes_nothing_in_the_result(env, strategy, loss_of_one_process):
    split = ("--grad_acc_steps=2", "--batch_size=2", f"--sharding_strategy={strategy}")
    memory = ("--use_checkpointing", "--use_prefetch", "--use_offload", "--pin_memory=false")
    output = run(torchrun(T5, *TINY, *split, *memory), env)

    assert f"Model: tiny, 0.2 million parameters, {strategy}, fp32\n" in output
    assert final_loss(output) == pytest.approx(loss_of_one_process, abs=2e-4)


@pytest.mark.req("M104", "M115", "M116", "M117")
def test_without_a_path_nothing_is_saved_and_sigterm_ends_all_ranks_as_unfinished(
    env, loss_of_one_process
):
    before = set(SAMPLES.rglob("*"))
    arguments = torchrun(T5, *TINY[:-1], "--num_workers=1", "--epochs=100000")
    with running(arguments, env, deadline_seconds=TRAINING_SECONDS) as process:
        output = read_until(process, "Epoch 1 done")
        process.terminate()
        output += process.stdout.read()
        code = process.wait()

    assert code != 0, output
    assert sorted(re.findall(r"Rank: (\d/\d), world size: 2", output)) == ["0/2", "1/2"]
    assert "bf16 needs a GPU: fp32 is used\n" in output
    assert "Starting at epoch 0: no --save_path, so nothing is saved\n" in output
    first, second = map(float, re.findall(r"^Epoch [01] done, mean loss: (.*)$", output, re.M))
    assert first == pytest.approx(loss_of_one_process, abs=2e-4)
    assert second < first
    stops = re.findall(r"Rank (\d): stopped by SIGTERM in epoch (\d+)", output)
    assert sorted(rank for rank, _ in stops) == ["0", "1"], output
    assert len({epoch for _, epoch in stops}) == 1, "all at the same step"
    assert set(SAMPLES.rglob("*")) == before


@pytest.mark.req("M117", "M118")
def test_a_folder_that_is_not_shared_is_noticed_at_the_first_save(env, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            ["python", str(T5), *TINY, f"--save_path={tmp_path / str(rank)}"],
            env={**env, **meeting, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=TRAINING_SECONDS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()

    assert [process.returncode for process in processes] == [1, 1], outputs
    assert "is not seen by all ranks: --save_path must be a folder shared by all" in outputs[0]


@pytest.mark.req("M116")
def test_the_options_of_the_original_have_its_defaults(env):
    output = run(["python", str(T5), "--help"], {**env, "COLUMNS": "300"})

    found = dict(re.findall(r"^ *--(\w+)\b.*?\(default: ([^)]*)\)$", output, re.M | re.S))
    assert found == {
        "lr": "1e-05",
        "batch_size": "4",
        "grad_acc_steps": "1",
        "epochs": "1",
        "train_size": "1000",
        "model_id": "google-t5/t5-small",
        "sharding_strategy": "FULL_SHARD",
        "precision": "bf16",
        "use_offload": "False",
        "use_checkpointing": "False",
        "use_prefetch": "False",
        "pin_memory": "True",
        "num_workers": "4",
        "save_path": "None",
    }
