"""The catalogue's samples, trained for real on several nodes of this machine."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from tests.e2e.local.jobs import ROOT, a_job, an_engine, log, run, told
from tests.engines.jobs import until
from tests.lengths import in_campaign

from astrago_trainer import catalogue
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.local.folder import read_json
from astrago_trainer.engines.local.plan import make_plan

SMALL = {"cpu": {"request": "100m"}, "memory": {"request": "256Mi", "limit": "4Gi"}}


OTHER = {"view": "plain", "plain": "view"}


def isolated(name: str) -> pytest.MarkDecorator:
    """How the pods of this sample are kept apart: one way in `make test`, both in the campaign."""
    return pytest.mark.parametrize("engine", [name, *in_campaign(OTHER[name])], indirect=True)


@pytest.fixture
def engine(request, tmp_path):
    return an_engine(tmp_path / "data", request.param)


def numbers(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


@pytest.mark.req("M58", "M59", "M60")
@isolated("view")
def test_pytorch_trains_on_two_nodes_to_equal_weights(engine):
    job = a_job(
        "pytorch",
        name="ddp",
        nodes=2,
        code={"inline": catalogue.script("pytorch-simple")},
        env=numbers(EPOCHS="2", SAMPLES="1000", OMP_NUM_THREADS="1"),
        resources=SMALL,
    )
    seen = run(engine, job)

    texts = [log(engine, job, f"node-0-{rank}") for rank in range(2)]
    assert seen.phase is Phase.COMPLETE, f"{told(seen)}\n{texts}"
    for rank, text in enumerate(texts):
        assert f"  - Rank: {rank}/2\n  - World Size: 2\n" in text
    assert "All 2 ranks hold equal weights" in texts[0]
    losses = [float(found) for found in re.findall(r"done, mean loss: (\S+)", texts[0])]
    assert len(losses) == 2
    assert losses[1] < losses[0]


@pytest.mark.req("M103", "M115", "M116", "M117")
@isolated("view")
def test_fsdp_under_torchrun_resumes_from_its_checkpoint_after_a_kill(engine):
    job = a_job(
        "pytorch",
        name="t5",
        nodes=2,
        code={"files": {"t5.py": (ROOT / "samples/fsdp/t5-fsdp.py").read_text()}},
        command="exec torchrun --nproc_per_node=1 --nnodes=2 --node_rank=$PET_NODE_RANK"
        " --rdzv_id=t5 --rdzv_backend=c10d --rdzv_endpoint=$PET_MASTER_ADDR:$PET_MASTER_PORT"
        " /workspace/scripts/t5.py --model_id=tiny --epochs=6 --train_size=64 --num_workers=0"
        " --save_path=/checkpoints",
        env=numbers(OMP_NUM_THREADS="1"),
        volumes=[{"name": "ckpt", "mount_path": "/checkpoints", "claim": "t5-checkpoints"}],
        max_restarts=2,
        resources=SMALL,
    )

    async def kill_a_rank() -> None:
        logs = [engine.logs(job.handle) / f"logs/0/t5-node-0-{rank}/node.log" for rank in range(2)]
        saved = re.compile(r"^Epoch 1 saved", re.M)
        await until(engine, job.handle, lambda _: any(saved.search(text_of(log)) for log in logs))
        (victim, *_) = ranks_of(job.handle.uid)
        os.kill(victim, signal.SIGKILL)

    seen = run(engine, job, meanwhile=kill_a_rank)

    assert seen.phase is Phase.COMPLETE, told(seen)
    assert seen.attempt == 1, told(seen)
    first, second = (  # c10d gives rank 0 to whichever comes first
        "".join(log(engine, job, f"node-0-{rank}", attempt) for rank in range(2))
        for attempt in (0, 1)
    )
    assert "Starting at epoch 0: nothing is saved" in first
    resumed = int(re.search(r"Resuming at epoch (\d+): ", second)[1])
    assert resumed >= 1
    assert re.findall(r"^Epoch (\d+) done", second, re.M) == [str(n) for n in range(resumed, 6)]
    assert "Training finished" in second


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def ranks_of(uid: str) -> list[int]:
    """Python processes of the job that train; torchrun itself, their parent, is none."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if f"ASTRAGO_CONTAINER={uid}/".encode() not in (path / "environ").read_bytes():
                continue
            words = (path / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.endswith(b"t5.py") for word in words) and b"--rdzv_id=t5" not in words:
            found.append(int(path.name))
    return found


@pytest.mark.req("M39", "M48", "M77")
@isolated("plain")
def test_tensorflow_trains_on_three_nodes_with_names_that_resolve(engine):
    job = a_job(
        "tensorflow",
        name="mwms",
        nodes=3,
        code={"inline": catalogue.script("tensorflow-distributed")},
        env=numbers(EPOCHS="1", SAMPLES="600", OMP_NUM_THREADS="1"),
        resources=SMALL,
    )
    seen = run(engine, job)

    texts = [log(engine, job, f"node-0-{rank}") for rank in range(3)]
    assert seen.phase is Phase.COMPLETE, f"{told(seen)}\n{texts}"
    clusters = []
    for index, text in enumerate(texts):
        config = json.loads(re.search(r"^TF_CONFIG: (\{.*\})$", text, re.M)[1])
        assert config["task"] == {"type": "worker", "index": index}
        clusters.append(config["cluster"]["worker"])
        assert f"✅ Worker {index} initialized with 3 replicas" in text
    assert clusters[0] == clusters[1] == clusters[2]
    assert len(set(clusters[0])) == 3


@pytest.mark.req("M105")
@isolated("plain")
def test_mpirun_starts_a_process_in_every_pod_of_the_job(engine):
    job = a_job(
        "horovod",
        name="mpi",
        nodes=2,
        code={"inline": catalogue.script("horovod-runtime")},
        command="read -r address _ < <(hostname -i); exec mpirun --bind-to none --map-by slot"
        " --mca pml ob1 -x PATH -x PYTHONUNBUFFERED -x OMP_NUM_THREADS -x EPOCHS -x SAMPLES"
        ' -x MASTER_ADDR="$address" -x MASTER_PORT=$(( 20000 + RANDOM % 10000 ))'
        " python /workspace/scripts/train.py",
        env=numbers(EPOCHS="2", SAMPLES="600", OMP_NUM_THREADS="1"),
        resources=SMALL,
    )
    seen = run(engine, job)

    text = log(engine, job, "launcher-0-0")
    assert seen.phase is Phase.COMPLETE, f"{told(seen)}\n{text}"
    assert {"0/2", "1/2"} <= set(re.findall(r"Rank: (\d/\d)", text)), text


def test_what_runs_is_what_was_previewed(tmp_path):
    """Every variable, word and file that the preview shows, as the process itself sees them."""
    engine = an_engine(tmp_path / "data", "view")
    job = a_job(
        "pytorch",
        name="same",
        nodes=2,
        code={"files": {"look.py": LOOK, "lib/part.py": "x = 1\n"}, "entrypoint": "look.py"},
        args=["one", "two words", "$(HOME)", "'; exit 7"],
        env=numbers(A="1 $(B) ${C}", B="b"),
        volumes=[{"name": "data", "mount_path": "/data", "claim": "data"}],
        resources=SMALL,
    )
    seen = run(engine, job)

    assert seen.phase is Phase.COMPLETE, told(seen)
    plan = json.loads(json.dumps(make_plan(job.handle, job.effective, engine.images)))
    assert plan.pop("installs") == []
    counted = {"cpu": 200, "gpus": 0, "memory": 512 << 20}  # SMALL, twice
    found = read_json(engine.folder(job.handle).plan)
    assert found == {**plan, "needs": counted, "shortfall": ""}
    (pod,) = [each["template"]["spec"]["template"]["spec"] for each in replicated_jobs(job)]
    (container,) = pod["containers"]
    for rank in range(2):
        saw = json.loads(log(engine, job, f"node-0-{rank}").splitlines()[-1])
        literal = {e["name"]: e["value"] for e in container["env"] if "value" in e}
        for name in set(literal) - {"PET_MASTER_PORT"}:  # two jobs never collide on a port
            assert saw["env"][name] == literal[name].replace("$$", "$")
        assert saw["env"]["PET_NODE_RANK"] == str(rank)
        assert saw["argv"] == ["one", "two words", "$(HOME)", "'; exit 7"]
        assert saw["mounts"] == {each["mountPath"]: True for each in container["volumeMounts"]}
        assert saw["host"] == f"same-node-0-{rank}"
        assert saw["master"].startswith("127.77.")


def test_a_program_may_make_a_socket_in_its_temporary_folder(tmp_path):
    """Workers of a DataLoader do, and the path of a socket has 107 characters at most."""
    engine = an_engine(tmp_path / "data", "view")
    code = "from multiprocessing.connection import Listener\nprint('at', Listener(family='AF_UNIX').address)\n"
    job = a_job("pytorch", name="s" * 40, nodes=1, code={"inline": code}, resources=SMALL)

    seen = run(engine, job)

    assert seen.phase is Phase.COMPLETE, told(seen)
    assert "at /" in log(engine, job, "node-0-0")


def replicated_jobs(job) -> list[dict]:
    return job.preview.objects[0]["spec"]["replicatedJobs"]


LOOK = """
import json, os, socket, sys
mounts = {line.split()[4] for line in open("/proc/self/mountinfo")}
paths = ["/workspace/scripts", "/shared", "/data"]
print(json.dumps({
    "env": dict(os.environ),
    "argv": sys.argv[1:],
    "mounts": {path: path in mounts for path in paths},
    "host": socket.gethostname(),
    "master": socket.gethostbyname(os.environ["MASTER_ADDR"]),
}))
"""
