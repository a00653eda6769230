"""Nodes with what is used of them and by whom, and why a pod finds no room. Pure: watched objects to plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from astrago_trainer.core.quantity import Quantity, QuantityError
from astrago_trainer.engines.base import Amounts, NodeShare
from astrago_trainer.engines.base import Node as SeenNode
from astrago_trainer.engines.kubernetes.objects import Container, Node, OtherPod, Pod
from astrago_trainer.engines.kubernetes.pods import jobset_of

GPU = "nvidia.com/gpu"
_INSTANCE = "node.kubernetes.io/instance-type"
_ZONE = "topology.kubernetes.io/zone"
_CAPACITY_TYPES = ("karpenter.sh/capacity-type", "eks.amazonaws.com/capacityType")
_GPU_TYPE = "nvidia.com/gpu.product"
_MOST_NAMED = 5
"""Nodes that a sentence names; the others are counted."""


def nodes_now(
    nodes: Iterable[Node], pods: Iterable[Pod], others: Iterable[OtherPod]
) -> list[SeenNode]:
    """All of them by name. `pods` are those of jobs, `others` all the rest; what has ended holds nothing."""
    shares: dict[str, dict[tuple[str, str], tuple[int, Amounts]]] = {}
    used: dict[str, Amounts] = {}
    for pod in pods:
        place = pod.spec.node_name
        if not place or pod.status.phase in ("Succeeded", "Failed"):
            continue
        needs = needs_of(pod.spec.containers, pod.spec.init_containers)
        key = pod.metadata.namespace, jobset_of(pod)
        count, held = shares.setdefault(place, {}).get(key, (0, Amounts()))
        shares[place][key] = count + 1, held + needs
        used[place] = used.get(place, Amounts()) + needs
    for other in others:
        needs = needs_of(other.spec.containers, other.spec.init_containers)
        used[other.spec.node_name] = used.get(other.spec.node_name, Amounts()) + needs
    return [
        _seen(node, used.get(node.metadata.name, Amounts()), shares.get(node.metadata.name, {}))
        for node in sorted(nodes, key=lambda node: node.metadata.name)
    ]


def needs_of(containers: Sequence[Container], init: Sequence[Container]) -> Amounts:
    """What the scheduler counts: all containers together, or the largest init container."""
    together = sum((_asked(each) for each in containers), Amounts())
    first = [_asked(each) for each in init]
    return Amounts(
        max([together.cpu, *(each.cpu for each in first)]),
        max([together.memory, *(each.memory for each in first)]),
        max([together.gpus, *(each.gpus for each in first)]),
    )


def room_words(pod: Pod, nodes: Sequence[SeenNode]) -> str:
    """What the pod needs, and what each node has: the nodes with most of it first."""
    needs = needs_of(pod.spec.containers, pod.spec.init_containers)
    ordered = sorted(
        nodes, key=lambda node: (-node.free.gpus, -node.free.cpu, -node.free.memory, node.name)
    )
    told = [f"{node.name}: {_node_words(node, needs)}" for node in ordered[:_MOST_NAMED]]
    if len(ordered) > _MOST_NAMED:
        told.append(f"and {len(ordered) - _MOST_NAMED} more nodes")
    return f"It needs {amounts_words(needs)}. Free are, {'; '.join(told)}" if told else ""


def amounts_words(amounts: Amounts) -> str:
    """`2 CPU, 8 GiB, 1 GPU`."""
    words = [f"{amounts.cpu:.4g} CPU", f"{amounts.memory / 2**30:.4g} GiB"]
    return ", ".join([*words, *([f"{amounts.gpus} GPU"] if amounts.gpus else [])])


def _node_words(node: SeenNode, needs: Amounts) -> str:
    free, all_ = node.free, node.capacity
    words = [
        f"{free.cpu:.4g} of {all_.cpu:.4g} CPU",
        f"{free.memory / 2**30:.4g} of {all_.memory / 2**30:.4g} GiB",
    ]
    if needs.gpus or all_.gpus:
        words.append(f"{free.gpus} of {all_.gpus} GPU")
    remarks = [*([] if node.is_ready else ["not ready"]), *node.remarks]
    return ", ".join(words) + (f" ({', '.join(remarks)})" if remarks else "")


def _seen(
    node: Node, used: Amounts, shares: Mapping[tuple[str, str], tuple[int, Amounts]]
) -> SeenNode:
    labels = node.metadata.labels
    return SeenNode(
        name=node.metadata.name,
        is_ready=any(each.type == "Ready" and each.is_true for each in node.status.conditions),
        capacity=_amounts(node.status.allocatable or node.status.capacity),
        used=used,
        instance_type=labels.get(_INSTANCE, ""),
        zone=labels.get(_ZONE, ""),
        capacity_type=next((labels[key] for key in _CAPACITY_TYPES if key in labels), "").lower(),
        architecture=node.status.node_info.architecture,
        os_image=node.status.node_info.os_image,
        gpu_type=labels.get(_GPU_TYPE, ""),
        remarks=_remarks(node),
        shares=tuple(
            NodeShare(namespace, job, count, amounts)
            for (namespace, job), (count, amounts) in sorted(shares.items())
        ),
    )


def _remarks(node: Node) -> tuple[str, ...]:
    """Only what keeps pods away for good; a soft taint does not."""
    taints = [
        f"{each.key}={each.value}" if each.value else each.key
        for each in node.spec.taints
        if each.effect in ("NoSchedule", "NoExecute") and not each.key.startswith("node.kubernetes")
    ]
    return (*(["unschedulable"] if node.spec.unschedulable else []), *taints)


def _asked(container: Container) -> Amounts:
    """A limit without a request is the request; the API server fills it in for most, not for all."""
    return _amounts({**container.resources.limits, **container.resources.requests})


def _amounts(found: Mapping[str, str | int]) -> Amounts:
    return Amounts(
        number_of(str(found.get("cpu", "0"))),
        round(number_of(str(found.get("memory", "0")))),
        round(number_of(str(found.get(GPU, "0")))),
    )


@lru_cache(maxsize=4096)
def number_of(text: str) -> float:
    """A quantity as a number; 0 for what is none."""
    try:
        quantity = Quantity.parse(text)
    except QuantityError:  # the API server has none; one such node must not hide the others
        return 0.0
    return float(quantity.number) * 10.0**quantity.scale
