"""Fake nodes: KWOK answers for them, so that pods on them go through their life without a process.

They look like those of a cloud's GPU cluster, in a fixed pattern, for node lists, reasons of waiting and scale. Pods
that do not ask for such a node by selector or GPU stay on the real one: the others carry a taint that repels softly.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from cluster.errors import ClusterError
from cluster.operators import Kubectl

MOST = 1000
READY_SECONDS = 240.0
_NAMES = '{range .items[*]}{.metadata.name}{"\\n"}{end}'
MARK = "kwok.x-k8s.io/node"


@dataclass(frozen=True, slots=True)
class Kind:
    """What a node of the pattern is like."""

    instance: str
    architecture: str
    cpu: int
    memory_gib: int
    gpus: int
    zone: str
    capacity: str


PATTERN = (
    Kind("g6e.48xlarge", "amd64", 192, 1536, 8, "ap-northeast-2a", "on-demand"),
    Kind("g6e.48xlarge", "amd64", 192, 1536, 8, "ap-northeast-2a", "on-demand"),
    Kind("c7g.2xlarge", "arm64", 8, 16, 0, "ap-northeast-2b", "spot"),
    Kind("c6i.2xlarge", "amd64", 8, 16, 0, "ap-northeast-2c", "on-demand"),
)


def set_fake_nodes(kubectl: Kubectl, count: int) -> None:
    """Makes it exactly this many."""
    found = kubectl("get", "nodes", "-l", f"{MARK}=fake", "-o", f"jsonpath={_NAMES}").split()
    wanted = {each["metadata"]["name"]: each for each in map(node, range(count))}
    if surplus := [name for name in found if name not in wanted]:
        # In one request; kubectl by itself would delete five a second.
        selector = quote(f"kubernetes.io/hostname in ({','.join(surplus)})")
        kubectl("delete", "--raw", f"/api/v1/nodes?labelSelector={selector}")
    missing = [each for name, each in wanted.items() if name not in found]
    if missing:
        manifests = {"apiVersion": "v1", "kind": "List", "items": missing}
        kubectl("create", "-f", "-", stdin=json.dumps(manifests))
    end = time.monotonic() + READY_SECONDS
    while (
        _ready(kubectl) != count
    ):  # `kubectl wait` asks for each node by itself: minutes for a thousand
        if time.monotonic() > end:
            raise ClusterError(
                f"{_ready(kubectl)} of {count} fake nodes are ready after {READY_SECONDS:.0f} s.",
                "See kwok.log in the cluster's run folder.",
            )
        time.sleep(0.2)


def _ready(kubectl: Kubectl) -> int:
    found = json.loads(kubectl("get", "nodes", "-l", f"{MARK}=fake", "-o", "json"))["items"]
    return sum(
        condition["type"] == "Ready" and condition["status"] == "True"
        for each in found
        for condition in each.get("status", {}).get("conditions", [])
    )


def node(index: int) -> dict[str, Any]:
    kind = PATTERN[index % len(PATTERN)]
    name = f"fake-{index:04d}"
    resources = {"cpu": str(kind.cpu), "memory": f"{kind.memory_gib}Gi", "pods": "110"}
    if kind.gpus:
        resources["nvidia.com/gpu"] = str(kind.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {MARK: "fake"},
            "labels": {
                MARK: "fake",
                "kubernetes.io/arch": kind.architecture,
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": kind.instance,
                "topology.kubernetes.io/region": kind.zone[:-1],
                "topology.kubernetes.io/zone": kind.zone,
                "karpenter.sh/capacity-type": kind.capacity,
                "karpenter.sh/nodepool": "gpu" if kind.gpus else "default",
            },
        },
        "spec": {"taints": [{"key": MARK, "value": "fake", "effect": "PreferNoSchedule"}]},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "nodeInfo": {
                "architecture": kind.architecture,
                "operatingSystem": "linux",
                "osImage": "Amazon Linux 2023",
                "kubeletVersion": "fake",
                "kubeProxyVersion": "fake",
                "containerRuntimeVersion": "kwok",
                "kernelVersion": "",
                "bootID": "",
                "machineID": "",
                "systemUUID": "",
            },
        },
    }
