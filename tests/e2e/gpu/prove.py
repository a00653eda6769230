"""What only a machine with a GPU can show: `python -m tests.e2e.gpu.prove`, on Linux with an NVIDIA GPU and torch.

Not collected by pytest: the machines that run the tests have no GPU. Prints one line for each thing seen, and ends with
an error at the first that is not so.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from astrago_trainer import catalogue
from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.core.preview import preview_job
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.base import Effective, Handle, Observation
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.machine import this_machine
from astrago_trainer.engines.local.plan import Images

LOOK = """
import os, time, torch
print("devices", os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count(), flush=True)
print("first", time.time_ns(), flush=True)
time.sleep(float(os.environ.get("PAUSE", "0")))
"""
TRAIN = """
import os, time, torch
import torch.distributed as dist
from astrago_trainer.checkpoint import Checkpoints
dist.init_process_group("nccl")
torch.cuda.set_device(0)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
checkpoints = Checkpoints(replicated=True)
found = checkpoints.latest()
first = 0
if found is not None:
    state = found.load()
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"])
    first = found.step + 1
print("resumed at", first, "attempt", os.environ["ASTRAGO_ATTEMPT"], flush=True)
for step in range(first, 40):
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(256, 512, generator=generator).cuda()
    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward()
    for parameter in model.parameters(): dist.all_reduce(parameter.grad)
    optimizer.step()
    checkpoints.save(step, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    print("step", step, "loss", loss.item(), time.time_ns(), flush=True)
    if step == 20 and os.environ["ASTRAGO_ATTEMPT"] == "0" and os.environ.get("DIE"):
        os.kill(os.getpid(), 9)
total = sum(parameter.double().sum().item() for parameter in model.parameters())
print("weights", repr(total), flush=True)
dist.destroy_process_group()
"""


async def submit(engine: LocalEngine, name: str, **request: Any) -> Handle:
    platform = catalogue.default_platform("2.3")
    basis = {"user": "gpu", "namespace": "gpu", "framework": "pytorch", "name": name}
    spec = parse_job_spec({**basis, **request})
    runtime = catalogue.load_runtime(platform.default_runtimes[spec.framework])
    objects = preview_job(spec, runtime, platform).objects
    handle = Handle("gpu", name, f"{os.getpid()}-{name}")
    rendered = render(spec, runtime, platform).objects
    await engine.apply(handle, Effective(objects[0], rendered, beside=objects[1:]))
    return handle


async def end(engine: LocalEngine, handle: Handle) -> Observation:
    async with asyncio.timeout(240):
        while True:
            seen = await engine.observe(handle)
            if seen.phase is not None and is_terminal(seen.phase):
                return seen
            await asyncio.sleep(0.05)


def log(engine: LocalEngine, handle: Handle, attempt: int = 0) -> str:
    path = engine.logs(handle) / f"logs/{attempt}/{handle.name}-node-0-0/node.log"
    return path.read_text() if path.exists() else ""


def say(text: str) -> None:
    print(text, flush=True)


async def prove(data: Path, warm: str) -> None:
    programs = str(Path(sys.executable).parent)
    engine = LocalEngine(data, images=Images(programs), warm=warm)
    assert engine.pool is not None
    begin = time.monotonic()
    zygote = await engine.pool.warm_up(programs)
    assert zygote.is_ready, zygote.trouble
    say(
        f"pool with {warm or 'nothing'}: ready after {time.monotonic() - begin:.1f} s, {zygote.memory() / 1e6:.0f} MB"
    )
    one = {"gpus": 1, "cpu": {"request": "1"}, "memory": {"request": "1Gi"}}

    first = await submit(
        engine, "first", code={"inline": LOOK}, resources=one, env=[{"name": "PAUSE", "value": "5"}]
    )
    second = await submit(engine, "second", code={"inline": LOOK}, resources=one)
    none = await submit(engine, "none", code={"inline": LOOK})
    waiting = await engine.observe(second)
    assert waiting.phase is Phase.QUEUED, waiting
    say(f"second job waits: {waiting.message}")
    ends = [await end(engine, each) for each in (first, second, none)]
    assert all(each.phase is Phase.COMPLETE for each in ends), ends
    texts = [log(engine, each) for each in (first, second, none)]
    assert "devices 0 1\n" in texts[0], texts[0]
    assert "devices 0 1\n" in texts[1], texts[1]
    assert "devices  0\n" in texts[2], texts[2]
    say(
        "CUDA_VISIBLE_DEVICES: 0 for both jobs with a GPU, one after the other; empty for the one without"
    )

    volumes = [{"name": "c", "mount_path": "/checkpoints", "claim": "c"}]
    training = {"code": {"inline": TRAIN}, "resources": one, "max_restarts": 2}
    whole = await submit(
        engine, "whole", **training, volumes=volumes, checkpoints="/checkpoints/whole"
    )
    assert (await end(engine, whole)).phase is Phase.COMPLETE, log(engine, whole)
    killed = await submit(
        engine, "killed", **training, volumes=volumes, checkpoints="/checkpoints/killed",
        env=[{"name": "DIE", "value": "1"}],
    )  # fmt: skip
    seen = await end(engine, killed)
    assert (seen.phase, seen.attempt) == (Phase.COMPLETE, 1), (
        seen,
        log(engine, killed),
        log(engine, killed, 1),
    )
    before, after = log(engine, killed), log(engine, killed, 1)
    assert "resumed at 21 attempt 1" in after, after
    weights = [re.findall(r"weights (\S+)", text)[0] for text in (log(engine, whole), after)]
    assert weights[0] == weights[1], weights
    last = int(re.findall(r"step 20 loss \S+ (\d+)", before)[0])
    then = int(re.findall(r"step 21 loss \S+ (\d+)", after)[0])
    say(f"kill -9 on the GPU at step 20, resumed at 21, weights equal ({weights[0]})")
    say(f"{(then - last) / 1e9:.2f} s from the kill to the next step")
    for each in (first, second, none, whole, killed):
        await engine.stop(each)
    await engine.pool.close()


def main() -> None:
    machine = this_machine()
    say(
        f"machine: {machine['cpu'] // 1000} CPUs, {machine['memory'] / 2**30:.0f} GiB, GPUs {machine['gpus']}"
    )
    assert machine["gpus"], "no GPU found through NVML"
    signal.alarm(540)
    for warm in ("", "torch"):
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            asyncio.run(prove(Path(folder) / "data", warm))


if __name__ == "__main__":
    main()
