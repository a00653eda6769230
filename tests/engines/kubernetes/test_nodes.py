"""Nodes: what they have, what is promised to whom, and the numbers when there is no room."""

from __future__ import annotations

import msgspec
import pytest

from astrago_trainer.engines.base import Amounts, NodeShare
from astrago_trainer.engines.kubernetes.nodes import nodes_now, room_words
from astrago_trainer.engines.kubernetes.objects import Node, OtherPod, Pod

GI = 2**30


def a_node(name="node-1", *, cpu="8", memory="16Gi", gpus=None, labels=(), **spec):
    amounts = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": gpus} if gpus else {})}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": dict(labels)},
            "spec": spec,
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"architecture": "arm64", "osImage": "Linux"},
            },
        },
        Node,
    )


def a_pod(name, *, node="node-1", job="job", namespace="team", phase="Running", kind=Pod, **needs):
    wanted = {
        "requests": {key.replace("gpu", "nvidia.com/gpu"): each for key, each in needs.items()}
    }
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"jobset.sigs.k8s.io/jobset-name": job},
            },
            "spec": {"nodeName": node, "containers": [{"name": "node", "resources": wanted}]},
            "status": {"phase": phase},
        },
        kind,
    )


@pytest.mark.req("M113")
def test_a_node_has_what_its_labels_and_status_say():
    labels = {
        "node.kubernetes.io/instance-type": "g6e.48xlarge",
        "topology.kubernetes.io/zone": "a",
        "karpenter.sh/capacity-type": "spot",
    }
    (found,) = nodes_now([a_node(gpus="8", labels=labels.items())], [], [])
    assert (found.instance_type, found.zone, found.capacity_type) == ("g6e.48xlarge", "a", "spot")
    assert (found.architecture, found.os_image, found.is_ready) == ("arm64", "Linux", True)
    assert (found.capacity, found.used) == (Amounts(8.0, 16 * GI, 8), Amounts())


def test_what_is_promised_is_counted_and_what_has_ended_is_not():
    pods = [
        a_pod("a", cpu="500m", memory="1Gi", gpu="1"),
        a_pod("b", cpu="1500m", memory="1Gi"),
        a_pod("c", cpu="4", phase="Succeeded"),
        a_pod("d", cpu="1", namespace="other", job="else"),
        a_pod("e", cpu="1", node=""),
    ]
    others = [a_pod("dns", kind=OtherPod, cpu="100m")]
    (found,) = nodes_now([a_node(gpus="2")], pods, others)
    assert found.used == Amounts(pytest.approx(3.1), 2 * GI, 1)
    assert found.free == Amounts(pytest.approx(4.9), 14 * GI, 1)
    assert found.shares == (
        NodeShare("other", "else", 1, Amounts(1.0)),
        NodeShare("team", "job", 2, Amounts(2.0, 2 * GI, 1)),
    )


def test_no_room_is_told_with_the_numbers_of_each_node():
    nodes = nodes_now(
        [
            a_node("small", cpu="2"),
            a_node("gpu", gpus="4", taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]),
        ],
        [a_pod("a", node="gpu", gpu="3")],
        [],
    )
    words = room_words(a_pod("w", node="", cpu="1", memory="2Gi", gpu="2"), nodes)
    assert words == (
        "It needs 1 CPU, 2 GiB, 2 GPU. Free are, gpu: 8 of 8 CPU, 16 of 16 GiB, 1 of 4 GPU (nvidia.com/gpu); "
        "small: 2 of 2 CPU, 16 of 16 GiB, 0 of 0 GPU"
    )


def test_of_many_nodes_those_with_most_room_are_named():
    nodes = nodes_now([a_node(f"n{number}", cpu=str(number)) for number in range(1, 9)], [], [])
    words = room_words(a_pod("w", node="", cpu="64"), nodes)
    assert "n8: 8 of 8 CPU" in words
    assert words.endswith("and 3 more nodes")
    assert "n3" not in words
