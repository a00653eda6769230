"""A node is deleted under a rank: the group starts again, and the node is named as the cause.

The test stands in for the node's kubelet, which says only that the node is ready and that its pod runs. The fake nodes
of KWOK end every pod of a Job at once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime

import pytest
from cluster.layout import NODE_NAME
from cluster.operators import Kubectl
from tests.cluster.api import MERGE_PATCH, Json, Space
from tests.cluster.engine.jobs import effective
from tests.engines.jobs import PATIENCE, run, until

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Engine, Handle, Observation

LOST = "lost-0"
TAINT = {"key": "example.org/lost", "effect": "NoSchedule"}
"""Keeps everybody else's pods away."""
APART = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "topologyKey": "kubernetes.io/hostname",
                "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "job"}},
            }
        ]
    }
}
SLEEPS = 'trap "exit 1" TERM; sleep 1000 & wait'


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def lost_node(kubectl: Kubectl) -> Iterator[str]:
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": LOST, "labels": {"kubernetes.io/hostname": LOST}},
        "spec": {"taints": [TAINT]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{**ready, "lastHeartbeatTime": now(), "lastTransitionTime": now()}],
        },
    }
    kubectl("create", "-f", "-", stdin=json.dumps(node))
    yield LOST
    kubectl("delete", "node", LOST, "--ignore-not-found")


def say_that_it_runs(space: Space, pod: Json) -> None:
    names = [each["name"] for each in pod["spec"]["containers"]]
    running = {"image": "", "imageID": "", "ready": True, "restartCount": 0}
    statuses = [
        {**running, "name": name, "state": {"running": {"startedAt": now()}}} for name in names
    ]
    path = f"/api/v1/namespaces/{space.name}/pods/{pod['metadata']['name']}/status"
    change = {"status": {"phase": "Running", "containerStatuses": statuses}}
    answer = space.api.ask("PATCH", path, change, MERGE_PATCH)
    assert answer.code == 200, answer.text


async def told(engine: Engine, handle: Handle, reason: str) -> Observation:
    """By changes alone: nothing of the job itself changes when its node goes."""
    async with asyncio.timeout(PATIENCE), aclosing(engine.changes()) as changes:
        async for named in changes:
            seen = await engine.observe(named)
            if named == handle and seen.reason == reason:
                return seen
    raise AssertionError("nobody tells any more")


def test_a_node_that_is_deleted_takes_the_group_along_and_is_named(
    engine, a_handle, space, kubectl, lost_node
):
    """The cluster removes pods without a node after some 40 s."""
    handle = a_handle()
    pods = {"tolerations": [{**TAINT, "operator": "Exists"}], "affinity": APART}

    def is_placed(found: list[Json]) -> bool:
        return {each["spec"].get("nodeName") for each in found} == {LOST, NODE_NAME}

    async def scenario():
        await engine.apply(handle, effective(SLEEPS, nodes=2, restarts=1, node={"pod": pods}))
        placed = await asyncio.to_thread(space.until, "pods", is_placed)
        victim = next(each for each in placed if each["spec"]["nodeName"] == LOST)
        await asyncio.to_thread(say_that_it_runs, space, victim)
        await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
        news = asyncio.create_task(told(engine, handle, "NodeLost"))
        await asyncio.to_thread(kubectl, "delete", "node", LOST)
        gone = await news
        again = await until(
            engine,
            handle,
            lambda seen: seen.attempt == 1 and any(each.phase == "Running" for each in seen.pods),
        )
        await engine.stop(handle)
        return victim, gone, again

    victim, gone, again = run(engine, scenario)
    rank = victim["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    assert gone.phase is Phase.RUNNING
    assert gone.message.startswith(f"node {LOST} is no longer in the cluster; on it: rank {rank}.")
    assert (again.phase, again.reason, again.max_restarts) == (Phase.RESTARTING, "NodeLost", 1)
    cause = (
        f"restart 1 of 1 after rank {rank} was taken off node {LOST}: PodGC: node no longer exists"
    )
    assert again.message.startswith(cause)
    assert "no node has room for rank" in again.message
