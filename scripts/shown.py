"""What the pictures of the page show: two teams, their jobs, and a small cluster with GPUs.

The jobs are real processes of this machine: they print, learn, fail and start again. Its nodes, its quotas and the jobs
of the days before are made up, because one machine has none to show.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
from tests.server.serving import bearer
from tests.store.databases import a_new_job

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.base import (
    Ability,
    Amounts,
    Handle,
    Node,
    NodeShare,
    Observation,
    PodPhase,
    Quota,
)
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.engines.local.folder import JobFolder, read_json
from astrago_trainer.server.run import serve as serve_until_told
from astrago_trainer.server.settings import read_settings
from astrago_trainer.store import Store
from astrago_trainer.store.jobs import Accepted, insert_jobs
from astrago_trainer.store.metrics import Point, Points, insert_points

PATIENCE = 120.0
TEAM, OTHER = "vision", "language"
GIB = 2**30

# What a training prints is what people's trainings print; the numbers are those of a curve with noise. The first part
# goes by quickly, so that there is something to look at; the rest takes its time, so that it still runs.
LEARNS = """
import math, os, random, time
rank = int(os.environ.get("PET_NODE_RANK", "0"))
random.seed({seed} + rank)
first, quick, total = {first}, {quick}, {total}
print(f"rank {{rank}}: loading the data set", flush=True)
if first > 1:
    print(f"resumed from the checkpoint of step {{first - 1}}", flush=True)
for step in range(first, total + 1):
    loss = 2.4 * math.exp(-3.2 * step / total) + 0.12 + random.gauss(0, 0.035)
    accuracy = 0.97 - 0.85 * math.exp(-3.6 * step / total) + random.gauss(0, 0.008)
    rate = 3e-4 * (1 - step / total)
    print(f"step {{step}}/{{total}} loss {{loss:.4f}} accuracy {{accuracy:.4f}} lr {{rate:.2e}}", flush=True)
    time.sleep(0.004 if step < quick else {pause})
"""
# The second node dies once; whoever finds the mark is the second attempt, and goes on from the last checkpoint.
STUMBLES = """
import os, pathlib, sys
mark = pathlib.Path(os.environ["MARK"])
is_second = mark.exists()
if not is_second:
    {first_try}
    if rank == 1:
        mark.touch()
        sys.exit("NCCL error: remote process exited or there was a network error")
    time.sleep(600)
else:
    {second_try}
"""
EATS = """
import time
print("loading the model", flush=True)
kept = []
for part in range(64):
    print(f"allocated {part * 64} MiB", flush=True)
    kept.append(bytearray(b"x") * (64 << 20))
    time.sleep(0.02)
"""


def learns(seed: int, total: int, pause: float, quick: float = 0.6, first: int = 1) -> str:
    return LEARNS.format(
        seed=seed, first=first, quick=round(total * quick), total=total, pause=pause
    )


def stumbles() -> str:
    def inner(code: str) -> str:
        return code.strip().replace("\n", "\n    ")

    return STUMBLES.format(
        first_try=inner(learns(5, 600, 0, quick=1).replace("total + 1)", "241)")),
        second_try=inner(learns(5, 600, 1.2, quick=0.55, first=201)),
    )


# --- the cluster


@dataclass(frozen=True)
class Machine:
    name: str
    kind: str
    gpu: str
    amounts: Amounts
    capacity_type: str = "on-demand"
    remarks: tuple[str, ...] = ()
    is_ready: bool = True


_A100 = ("p4d.24xlarge", "NVIDIA-A100-SXM4-40GB", Amounts(96.0, 1152 * GIB, 8))
_L4 = ("g6.12xlarge", "NVIDIA-L4", Amounts(48.0, 192 * GIB, 4))
MACHINES = (
    Machine("gpu-a100-1", *_A100),
    Machine("gpu-a100-2", *_A100),
    Machine("gpu-a100-3", *_A100, "spot"),
    Machine("gpu-a100-4", *_A100, "spot"),
    Machine("gpu-l4-1", *_L4),
    Machine("gpu-l4-2", *_L4, remarks=("unschedulable",)),
    Machine("gpu-l4-3", *_L4, "spot", is_ready=False),
)
PLACES = {
    "resnet50-imagenet": ("gpu-a100-1", "gpu-a100-2"),
    "t5-summarise": ("gpu-a100-3", "gpu-a100-3"),
}
"""Where the pods of a job sit, in the order of their ranks; the others are on the first node with L4."""
ELSEWHERE = ("gpu-l4-1",)
CEILING = Amounts(256.0, 2048 * GIB, 24)


class Cluster(LocalEngine):
    """Runs jobs here, and says that they run there."""

    abilities = LocalEngine.abilities | {Ability.QUOTA}

    async def observe(self, handle: Handle) -> Observation:
        seen = await super().observe(handle)
        places = PLACES.get(handle.name, ELSEWHERE)
        pods = tuple(
            replace(pod, node=places[pod.index % len(places)], address=f"10.42.{pod.index + 1}.17")
            for pod in seen.pods
        )
        return replace(seen, pods=pods)

    async def nodes(self) -> list[Node]:
        shares = list(self._running())
        return [
            Node(
                name=each.name,
                is_ready=each.is_ready,
                capacity=each.amounts,
                used=sum(
                    (share.amounts for place, share in shares if place == each.name), Amounts()
                ),
                instance_type=each.kind,
                zone="ap-northeast-2a",
                capacity_type=each.capacity_type,
                architecture="amd64",
                os_image="Ubuntu 24.04.3 LTS",
                gpu_type=each.gpu,
                remarks=each.remarks,
                shares=tuple(share for place, share in shares if place == each.name),
            )
            for each in MACHINES
        ]

    async def quota(self, namespace: str) -> list[Quota]:
        used = sum(
            (share.amounts for _, share in self._running() if share.namespace == namespace),
            Amounts(),
        )
        return [
            Quota("requests.cpu", f"{CEILING.cpu:g}", f"{used.cpu:g}"),
            Quota("requests.memory", str(CEILING.memory), str(used.memory)),
            Quota("requests.nvidia.com/gpu", str(CEILING.gpus), str(used.gpus)),
        ]

    def _running(self) -> Iterator[tuple[str, NodeShare]]:
        """Pods that run, with what they have asked for, and where they are said to be."""
        for path in sorted((self._data / "jobs").glob("*/*")):
            folder = JobFolder(str(path))
            plan, status = read_json(folder.plan), read_json(folder.status)
            if plan is None or status is None:
                continue
            asked = plan["groups"][0]["pod"]["containers"][0]
            amounts = Amounts(asked["cpu"] / 1000, asked["memory"], asked["gpus"])
            places = PLACES.get(plan["name"], ELSEWHERE)
            running = [
                places[index % len(places)]
                for index, pod in enumerate(status["pods"])
                if pod["phase"] == PodPhase.RUNNING
            ]
            for place, pods in Counter(running).items():
                held = sum([amounts] * pods, Amounts())
                yield place, NodeShare(plan["namespace"], plan["name"], pods, held)

    def _fitted(self, plan: dict[str, Any], job_set: Mapping[str, Any]) -> dict[str, Any]:
        """A job for GPUs is counted as small: they are not here, and this machine must take several such jobs."""
        if not any(group["pod"]["containers"][0]["gpus"] for group in plan["groups"]):
            return super()._fitted(plan, job_set)
        counted = {"cpu": 50, "memory": 64 << 20, "gpus": 0}
        return {**plan, "needs": counted, "shortfall": ""}

    def shortfall(self, job_set: Mapping[str, Any]) -> None:
        """Nothing is missing on the cluster that the pictures show."""


def serve(folder: str) -> None:
    """Until it is told to stop; prints its address when it answers."""
    settings = read_settings(os.environ, data=Path(folder), port=0, host="127.0.0.1")

    def tell(address: str, _: object) -> None:
        print(address, flush=True)

    asyncio.run(serve_until_told(settings, engine=Cluster(settings.data), on_ready=tell))


# --- the days before

_HOUR, _DAY = 3600.0, 86400.0
# Name, namespace, owner, framework, nodes, GPUs, how long ago it began, how long it took, whether it went well.
OLDER = (
    ("llama-3-8b-sft", OTHER, "hana", "pytorch", 3, 8, 9 * _HOUR, 7.4 * _HOUR, True),
    ("clip-vit-b16", TEAM, "jisoo", "pytorch", 2, 4, 21 * _HOUR, 3.2 * _HOUR, True),
    ("whisper-small-ko", OTHER, "hana", "pytorch", 1, 4, 1.4 * _DAY, 5.1 * _HOUR, True),
    ("efficientnet-b4", TEAM, "minjun", "tensorflow", 1, 8, 1.8 * _DAY, 2.6 * _HOUR, True),
    ("maskrcnn-coco", TEAM, "minjun", "horovod", 4, 4, 2.3 * _DAY, 0.7 * _HOUR, False),
    ("yolo-retail", TEAM, "jisoo", "pytorch", 1, 2, 3.1 * _DAY, 1.9 * _HOUR, True),
)


async def remember_older(data: Path) -> None:
    """Jobs that ended before the server began, with their losses."""
    data.mkdir(parents=True)
    store = await Store.open(f"sqlite:///{data / 'astrago.db'}")
    now = time.time()
    for name, namespace, owner, framework, nodes, gpus, ago, took, is_good in reversed(OLDER):
        phase = Phase.COMPLETE.value if is_good else Phase.FAILED.value
        new = a_new_job(
            name,
            namespace=namespace,
            owner=owner,
            framework=framework,
            runtime={"pytorch": "pytorch-simple"}.get(framework, f"{framework}-runtime"),
            nodes=nodes,
            gpus=gpus,
            engine="local",
            phase=phase,
            outcome=phase,
            message="" if is_good else "rank 3 ended with exit code 137: out of memory",
            is_handed=True,
            is_reaped=True,
            ttl_seconds=None,
            created_at=now - ago,
            started_at=now - ago + 40,
            finished_at=now - ago + took,
            settled_at=now - ago + took,
        )
        accepted = await store.write(insert_jobs, new)
        assert isinstance(accepted, Accepted)
        number = accepted.job.number
        points = tuple(_losses(name, now - ago, took, 1.0 if is_good else 0.3))
        await store.write(insert_points, Points(number, 1, "loss", points))
    await store.close()


def _losses(name: str, began: float, took: float, part: float) -> Iterator[Point]:
    noise = random.Random(name)
    for step in range(1, 121):
        value = 1.8 * math.exp(-3.4 * part * step / 120) + 0.2 + noise.gauss(0, 0.03)
        yield Point(step * 50, began + took * step / 120, value)


# --- people, and what they do


class Client:
    """Speaks to the server as people's programs do."""

    def __init__(self, address: str, token: str) -> None:
        self._http = httpx.Client(base_url=f"{address}/api/v1", timeout=PATIENCE)
        self._token = token

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> Any:
        headers = bearer(token or self._token)
        answer = self._http.request(method, path, json=body, headers=headers)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def submit(self, token: str, namespace: str, name: str, code: str, **fields: Any) -> None:
        body = {"name": name, "framework": "pytorch", "code": {"inline": code}, **fields}
        self.ask("POST", f"/namespaces/{namespace}/jobs", body, token)

    def wait(self, namespace: str, name: str, *phases: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            job = self.ask("GET", f"/namespaces/{namespace}/jobs/{name}")
            if job["phase"] in phases:
                return
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{name} is {job['phase']} ({job['message']}), not {' or '.join(phases)}"
                )
            time.sleep(0.2)


PEOPLE = {
    "jisoo": {TEAM: "administrator"},
    "minjun": {TEAM: "member", OTHER: "viewer"},
    "hana": {OTHER: "member"},
}
LARGE = {"gpus": 8, "cpu": "32", "memory": "256Gi"}
MEDIUM = {"gpus": 4, "cpu": "16", "memory": "128Gi"}
SMALL = {"gpus": 1, "cpu": "8", "memory": "32Gi"}


def fill(client: Client, folder: Path) -> None:
    """People, and jobs in every state that somebody may look at."""
    tokens = {}
    for namespace, title in ((TEAM, "Vision team"), (OTHER, "Language team")):
        client.ask("POST", "/tenants", {"namespace": namespace, "title": title})
    for name, roles in PEOPLE.items():
        client.ask("POST", "/users", {"name": name})
        for namespace, role in roles.items():
            client.ask("PUT", f"/tenants/{namespace}/members/{name}", {"role": role})
        tokens[name] = client.ask("POST", "/tokens", {"user": name, "label": "laptop"})["secret"]
    client.ask("POST", "/tokens", {"label": "nightly pipeline", "seconds": 30 * 86400})

    client.submit(
        tokens["jisoo"], TEAM, "mnist-baseline", learns(3, 240, 0, quick=1), nodes=1,
        resources=SMALL, image="registry.example.com/vision/train:2.3",
    )  # fmt: skip
    client.wait(TEAM, "mnist-baseline", "Complete")
    client.submit(
        tokens["minjun"], TEAM, "bert-large-finetune", EATS, nodes=1,
        resources={**SMALL, "memory": "192Mi"},
    )  # fmt: skip
    client.wait(TEAM, "bert-large-finetune", "Failed")
    client.submit(
        tokens["hana"], OTHER, "t5-summarise", stumbles(), nodes=2, resources=MEDIUM,
        env=[{"name": "MARK", "value": str(folder / "mark")}], max_restarts=3,
    )  # fmt: skip
    client.submit(
        tokens["minjun"], TEAM, "vit-ablation", learns(9, 500, 1.0, quick=0.35), nodes=1,
        resources=SMALL,
    )  # fmt: skip
    client.submit(
        tokens["minjun"], TEAM, "segformer-b2", learns(11, 700, 1.8, quick=0.8), nodes=1,
        resources={**SMALL, "gpus": 2},
    )  # fmt: skip
    client.wait(TEAM, "vit-ablation", "Running")
    client.submit(
        tokens["jisoo"], TEAM, "resnet50-imagenet", learns(7, 900, 1.5), nodes=2, resources=LARGE,
        max_restarts=2, image="registry.example.com/vision/train:2.4",
    )  # fmt: skip
    client.wait(TEAM, "resnet50-imagenet", "Running")
    time.sleep(8)  # the quick part of the curves
    client.ask("POST", f"/namespaces/{TEAM}/jobs/vit-ablation:suspend")
    client.wait(TEAM, "vit-ablation", "Suspended")
    client.submit(
        tokens["jisoo"], TEAM, "unet-segmentation", learns(3, 240, 0), nodes=1,
        resources={"cpu": str(os.cpu_count()), "memory": "256Mi"},
    )  # fmt: skip
    client.wait(OTHER, "t5-summarise", "Running")
    time.sleep(10)


def end(client: Client) -> None:
    """Jobs go on without their server: nothing may be left running."""
    deadline = time.monotonic() + PATIENCE
    while jobs := client.ask("GET", "/namespaces/-/jobs")["items"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"still there: {', '.join(job['name'] for job in jobs)}")
        for job in jobs:
            if not job["is_deleting"]:
                client.ask("DELETE", f"/namespaces/{job['namespace']}/jobs/{job['name']}")
        time.sleep(0.2)
