"""A request as users make it, from rendering to its logs, on the real Trainer."""

from __future__ import annotations

from tests.cluster.api import LINGER
from tests.engines.jobs import run, until, until_over

from astrago_trainer.catalogue import default_platform, load_runtime
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.core.preview import preview_rendered
from astrago_trainer.core.render import render
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.base import Effective


def rendered(namespace: str, version: str, **changes) -> Effective:
    request = {
        "name": "job",
        "user": "user123",
        "namespace": namespace,
        "framework": "pytorch",
        "nodes": 2,
        "resources": {"cpu": {"request": "50m", "limit": 1}, "memory": "256Mi"},
        **changes,
    }
    platform = default_platform(version)
    made = render(parse_job_spec(request), load_runtime("pytorch-simple"), platform)
    preview = preview_rendered(made, platform)
    assert not preview.is_refused, preview.problems
    return Effective(preview.objects[0], made.objects)


def test_a_request_runs_and_leaves_only_its_logs_and_the_platforms_scripts(
    engine, a_handle, namespace, space, version
):
    handle = a_handle()
    script = LINGER + "import os; print('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])"
    job = rendered(namespace, version, code={"inline": script}, max_restarts=2)

    async def scenario():
        await engine.apply(handle, job)
        seen = await until_over(engine, handle)
        dialect = await engine.dialect()
        await engine.stop(handle)
        return seen, dialect

    seen, dialect = run(engine, scenario)
    assert (seen.phase, dialect) == (Phase.COMPLETE, version)
    for rank in (0, 1):
        log = engine.logs(handle) / f"logs/0/job-node-0-{rank}/node.log"
        assert f"rank {rank} of 2" in log.read_text()
    space.until(
        "configmaps", lambda found: "code" not in {each["metadata"]["name"] for each in found}
    )
    assert not space.list("trainjobs")
    assert (
        len(space.list("configmaps")) == 2
    )  # the platform's, and the one that every namespace has


def test_a_rank_that_dies_restarts_the_group_and_its_cause_is_told(
    engine, a_handle, namespace, version
):
    handle = a_handle()
    script = "import os, time; os.environ['RANK'] == '1' and os._exit(3); time.sleep(1000)"
    job = rendered(namespace, version, code={"inline": script}, max_restarts=1)

    async def scenario():
        await engine.apply(handle, job)
        again = await until(engine, handle, lambda seen: seen.phase is Phase.RESTARTING)
        seen = await until_over(engine, handle)
        await engine.stop(handle)
        return again, seen

    again, seen = run(engine, scenario)
    assert "rank 1 ended with exit code 3" in again.message
    assert (seen.phase, seen.attempt, seen.max_restarts) == (Phase.FAILED, 1, 1)
    assert seen.message.startswith("rank 1 ended with exit code 3")
    assert [(each.attempt, each.reason) for each in seen.ended] == [(0, "Error")]
    assert seen.ended[0].message.startswith("rank 1 ended with exit code 3")
