"""A node is deleted or falls silent under a rank: the group starts again, and the node is named as the cause.

The test stands in for the node's kubelet, which says only that the node is ready and that its pod runs. The fake nodes
of KWOK end every pod of a Job at once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import pytest
from cluster.layout import NODE_NAME
from cluster.operators import Kubectl
from tests.cluster.api import MERGE_PATCH, Json, Space
from tests.cluster.engine.jobs import effective
from tests.engines.jobs import PATIENCE, run, until

from astrago_trainer.catalogue import load_runtime
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import Engine, Handle, Observation

TAINT = {"key": "example.org/lost", "effect": "NoSchedule"}
"""Keeps everybody else's pods away, those of the other tests too: its value is the namespace."""
EACH_OTHER = {
    "topologyKey": "kubernetes.io/hostname",
    "labelSelector": {"matchLabels": {"jobset.sigs.k8s.io/jobset-name": "job"}},
}
APART = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [EACH_OTHER]}}
RATHER_APART = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "podAffinityTerm": EACH_OTHER}
        ]
    }
}
SLEEPS = 'trap "exit 1" TERM; sleep 1000 & wait'


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def lost_name(space: Space) -> str:
    """A node for each test: they run beside one another."""
    return f"lost-{space.name}"


async def runs_on_both(
    engine: Engine, handle: Handle, space: Space, affinity: Json, more: Sequence[Json] = ()
) -> Json:
    """The pod on the node of this test, of a job that runs there and on the real one."""
    lost = lost_name(space)
    pods = {"tolerations": [{**TAINT, "value": space.name}, *more], "affinity": affinity}
    await engine.apply(handle, effective(SLEEPS, nodes=2, restarts=1, node={"pod": pods}))

    def is_placed(found: list[Json]) -> bool:
        return {each["spec"].get("nodeName") for each in found} == {lost, NODE_NAME}

    placed = await asyncio.to_thread(space.until, "pods", is_placed)
    victim = next(each for each in placed if each["spec"]["nodeName"] == lost)
    await asyncio.to_thread(say_that_it_runs, space, victim)
    await until(engine, handle, lambda seen: seen.phase is Phase.RUNNING)
    return victim


def rank_of(pod: Json) -> str:
    rank: str = pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"]
    return rank


@pytest.fixture
def lost_node(kubectl: Kubectl, space: Space) -> Iterator[str]:
    name = lost_name(space)
    room = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {"taints": [{**TAINT, "value": space.name}]},
        "status": {
            "capacity": room,
            "allocatable": room,
            "conditions": [{**ready, "lastHeartbeatTime": now(), "lastTransitionTime": now()}],
        },
    }
    kubectl("create", "-f", "-", stdin=json.dumps(node))
    yield name
    kubectl("delete", "node", name, "--ignore-not-found")


def say_of_the_node(space: Space, status: str) -> None:
    """What the cluster says of it by itself after 50 s without a word."""
    said = {"type": "Ready", "status": status, "reason": "NodeStatusUnknown"}
    change = {"status": {"conditions": [{**said, "lastTransitionTime": now()}]}}
    answer = space.api.ask("PATCH", f"/api/v1/nodes/{lost_name(space)}/status", change, MERGE_PATCH)
    assert answer.code == 200, answer.text


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

    async def scenario():
        victim = await runs_on_both(engine, handle, space, APART)
        news = asyncio.create_task(told(engine, handle, "NodeLost"))
        await asyncio.to_thread(kubectl, "delete", "node", lost_node)
        gone = await news
        again = await until(
            engine,
            handle,
            lambda seen: seen.attempt == 1 and any(each.phase == "Running" for each in seen.pods),
        )
        await engine.stop(handle)
        return victim, gone, again

    victim, gone, again = run(engine, scenario)
    rank = rank_of(victim)
    assert gone.phase is Phase.RUNNING
    assert gone.message.startswith(
        f"node {lost_node} is no longer in the cluster; on it: rank {rank}."
    )
    assert (again.phase, again.reason, again.max_restarts) == (Phase.RESTARTING, "NodeLost", 1)
    cause = f"restart 1 of 1 after rank {rank} was taken off node {lost_node}: PodGC: node no longer exists"
    assert again.message.startswith(cause)
    assert "no node has room for rank" in again.message


def test_a_silent_node_costs_the_group_two_minutes_at_most(engine, a_handle, space, lost_node):
    """F15. The node has said nothing since it was made, and nobody there ends its pod."""
    handle = a_handle()
    silent_since = time.monotonic()
    (job,) = load_runtime("pytorch-simple")["spec"]["template"]["spec"]["replicatedJobs"]
    own = job["template"]["spec"]["template"]["spec"]["tolerations"]

    async def scenario():
        victim = await runs_on_both(engine, handle, space, RATHER_APART, own)
        news = await told(engine, handle, "NodeNotReady")
        again = await until(
            engine, handle, lambda seen: seen.attempt == 1 and seen.phase is Phase.RUNNING
        )
        taken = time.monotonic() - silent_since
        await engine.stop(handle)
        return victim, news, again, taken

    victim, news, again, taken = run(engine, scenario)
    rank = rank_of(victim)
    assert news.phase is Phase.RUNNING
    assert news.message.startswith(
        f"node {lost_node} does not answer; on it: rank {rank}. If it does"
    )
    assert {each.node for each in again.pods} == {NODE_NAME}
    assert taken < 120


def test_a_job_on_a_silent_node_can_be_stopped(engine, a_handle, space, lost_node):
    """Though nobody there says that its pod has ended."""
    handle = a_handle()

    async def scenario():
        await runs_on_both(engine, handle, space, APART)
        await asyncio.to_thread(say_of_the_node, space, "Unknown")
        await until(engine, handle, lambda seen: seen.reason == "NodeNotReady")
        await engine.stop(handle)
        return await engine.observe(handle)

    assert run(engine, scenario).is_gone
    assert space.list("pods") == []
