"""What containers write is kept, to the byte, whatever happens to their pods or to us."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from pathlib import Path

from cluster.layout import Layout
from tests.cluster.engine.jobs import effective
from tests.engines.jobs import PATIENCE, run, until, until_over

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine

LINES = 20_000
PARTS = 3
WRITE = (
    f"for part in 1 2 {PARTS}; do "
    "awk -v rank=$JOB_COMPLETION_INDEX -v part=$part "
    f"'BEGIN {{ for (i = 0; i < {LINES}; i++) "
    'printf "rank %d part %d line %06d of what a training writes, step after step\\n", rank, part, i }}\'; '
    "sleep 1; done"
).replace("}}'", "}'")

FOLLOW = """
import asyncio, sys
from pathlib import Path
from astrago_trainer.engines.kubernetes.credentials import find_access
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine

async def follow():
    engine = KubernetesEngine(Path(sys.argv[1]), access=find_access(), namespaces=[sys.argv[2]])
    async for handle in engine.changes():
        await engine.observe(handle)

asyncio.run(follow())
"""


def written(rank: int) -> bytes:
    return "".join(
        f"rank {rank} part {part} line {line:06d} of what a training writes, step after step\n"
        for part in range(1, PARTS + 1)
        for line in range(LINES)
    ).encode()


def log(engine: KubernetesEngine, handle, rank: int = 0, attempt: int = 0) -> Path:
    return engine.logs(handle) / f"logs/{attempt}/job-node-0-{rank}/node.log"


async def until_size(path: Path, size: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while not path.exists() or path.stat().st_size < size:
            await asyncio.sleep(0.01)


def test_no_byte_is_lost_or_doubled_when_we_are_killed_while_following(
    engine, a_handle, namespace, tmp_path
):
    """Several megabytes, two ranks; the process that follows is killed in the middle, another goes on."""
    handle = a_handle()

    async def scenario():
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FOLLOW, str(tmp_path / "data"), namespace),
            env={**os.environ, "KUBECONFIG": str(Layout.default().kubeconfig)},
        )
        quiet = KubernetesEngine(tmp_path / "quiet", access=engine._access, namespaces=[namespace])
        try:
            await quiet.apply(handle, effective(WRITE, nodes=2))
        finally:
            await quiet.close()
        await until_size(log(engine, handle), 500_000)
        process.kill()
        await process.wait()
        logs = [log(engine, handle, rank) for rank in (0, 1)]
        sizes = [each.stat().st_size if each.exists() else 0 for each in logs]
        await until_over(engine, handle)
        await engine.stop(handle)
        return sizes

    before = run(engine, scenario)
    for rank in (0, 1):
        kept = log(engine, handle, rank).read_bytes()
        assert before[rank] < len(kept)
        assert hashlib.sha256(kept).hexdigest() == hashlib.sha256(written(rank)).hexdigest()


def test_every_attempt_of_every_rank_and_its_init_containers_are_kept(engine, a_handle):
    handle = a_handle()
    init = {
        "name": "prepare",
        "image": "busybox:1.36.1",
        "command": ["sh", "-c", "echo prepared $JOB_COMPLETION_INDEX; sleep 1"],
    }
    # Rank 1 fails when rank 0 has begun and listens, also to signals.
    script = (
        'echo begun; if [ "$JOB_COMPLETION_INDEX" = 1 ]; then '
        "until nc job-node-0-0.job 5000 </dev/null 2>/dev/null; do sleep 0.1; done; exit 7; fi; "
        'trap "echo told; sleep 0.5; exit 0" TERM; nc -l -p 5000 & sleep 1000 & wait; wait'
    )

    async def scenario():
        job = effective(script, nodes=2, restarts=1, node={"pod": {"initContainers": [init]}})
        await engine.apply(handle, job)
        await until_over(engine, handle)
        await engine.stop(handle)

    run(engine, scenario)
    for attempt in (0, 1):
        assert log(engine, handle, 0, attempt).read_text() == "begun\ntold\n"
        assert log(engine, handle, 1, attempt).read_text() == "begun\n"
        prepared = [log(engine, handle, rank, attempt).with_name("prepare.log") for rank in (0, 1)]
        assert [each.read_text() for each in prepared] == ["prepared 0\n", "prepared 1\n"]


def test_a_container_that_starts_again_in_its_pod_goes_on_in_its_log(engine, a_handle):
    handle = a_handle()
    script = "n=$(cat /state/n || echo 0); echo start $n; echo $((n + 1)) > /state/n; sleep 1; [ $n = 1 ]"
    node = {
        "pod": {"volumes": [{"name": "state", "emptyDir": {}}]},
        "container": {"volumeMounts": [{"name": "state", "mountPath": "/state"}]},
    }

    async def scenario():
        await engine.apply(handle, effective(f"{script} 2>/dev/null", node=node))
        seen = await until_over(engine, handle)
        await engine.stop(handle)
        return seen

    seen = run(engine, scenario)
    assert seen.pods[0].restarts == 1
    kept = [line for line in log(engine, handle).read_text().splitlines() if "start" in line]
    assert kept == ["start 0", "start 1"]


def test_a_pod_that_is_deleted_leaves_its_log_and_the_group_starts_again(engine, a_handle, space):
    handle = a_handle()
    script = 'echo begun; trap "echo told; sleep 0.5; exit 1" TERM; sleep 1000 & wait'

    async def scenario():
        await engine.apply(handle, effective(script, nodes=2, restarts=1))
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        await until_size(log(engine, handle, 1), 6)
        pods = await asyncio.to_thread(space.list, "pods")
        victim = next(
            each["metadata"]["name"] for each in pods if "-0-1-" in each["metadata"]["name"]
        )
        await asyncio.to_thread(space.delete, "pods", victim)
        told = await until(engine, handle, lambda seen: seen.phase is Phase.RESTARTING)
        await until(engine, handle, lambda seen: seen.attempt == 1 and seen.phase is Phase.RUNNING)
        await until_size(log(engine, handle, 1, 1), 6)
        await engine.stop(handle)
        return told

    assert "rank 1" in run(engine, scenario).message
    assert log(engine, handle, 1).read_text() == "begun\ntold\n"
    assert log(engine, handle, 0).read_text() == "begun\ntold\n"
    assert log(engine, handle, 1, 1).read_text() == "begun\ntold\n"
