"""Questions about CPU, GPU and memory that the phases ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.merge.model import ANCESTOR_LABEL, NODE, TRAINER, Plan, PodSet
from astrago_trainer.core.merge.overrides import takes_resources
from astrago_trainer.core.merge.schema import Reworded
from astrago_trainer.core.quantity import Quantity

Json = dict[str, Any]
Amounts = dict[str, Quantity]


def resources_for_processes(plan: Plan) -> Json:
    """The resources from which the controller derives the number of processes a node.

    The TrainJob's replace the runtime's here even in 2.3, where the pod itself gets both merged; that is a defect of
    the operator, and a preview has to show it.
    """
    trainer = plan.job.trainer
    if trainer is not None and "resourcesPerNode" in trainer:
        resources: Json = trainer["resourcesPerNode"]
        return resources
    for pods in plan.pod_sets:
        is_trainer = (
            pods.job["template"]["metadata"].get("labels", {}).get(ANCESTOR_LABEL) == TRAINER
        )
        if pods.name == NODE or is_trainer:
            container = pods.container(NODE)
            if container is not None:
                return container.get("resources") or {}
    return {}


def gpus(resources: Json) -> int:
    """How many GPUs the controller sees: any resource with "gpu" in its name counts, requests before limits."""
    requested = _first_gpu(resources.get("requests"))
    if requested == 0 and (limited := _first_gpu(resources.get("limits"))) > 0:
        return limited
    return requested


def cpus(resources: Json) -> int:
    """Whole CPUs, rounded up: the request, else the limit."""
    request = Quantity.parse((resources.get("requests") or {}).get("cpu", "0"))
    if request.is_zero():
        return Quantity.parse((resources.get("limits") or {}).get("cpu", "0")).value()
    return request.value()


def _first_gpu(amounts: Mapping[str, str] | None) -> int:
    names = [name for name in amounts or () if "gpu" in name.lower()]
    # The operator takes whichever of several comes first in a Go map, which is random; ours is always the same one.
    return Quantity.parse((amounts or {})[min(names)]).value() if names else 0


def int32(number: int) -> int:
    """The number as the operator stores it: what does not fit 32 bits wraps around."""
    return (number + 2**31) % 2**32 - 2**31


def total_requests(plan: Plan) -> tuple[int, Json]:
    """The number of pods and what they request all in all, as a gang scheduler is told."""
    members = 0
    total: Amounts = {}
    for pods in plan.pod_sets:
        members = int32(members + pods.count)
        for name, amount in _pod_requests(_counted_pod(plan, pods)).items():
            share = amount.times(pods.count)
            total[name] = (
                total[name].plus(share)
                if name in total
                else Quantity(0, 0, "DecimalSI").plus(share)
            )
    return members, {name: str(amount) for name, amount in total.items()}


def _counted_pod(plan: Plan, pods: PodSet) -> Json:
    """The pod as the controller counts it: 2.2 counts the TrainJob's resources, 2.1 does not, 2.3 has merged them."""
    pod = _read_again(pods.pod) if pods.rewritten else pods.pod
    trainer = plan.job.trainer
    if plan.version != "2.2" or pods.ancestor != TRAINER or not takes_resources(plan, pods):
        return pod
    if trainer is None or "resourcesPerNode" not in trainer:
        return pod
    containers = list(pod.get("containers", ()))
    for index, container in enumerate(containers):
        if container["name"] == NODE:
            containers[index] = {**container, "resources": trainer["resourcesPerNode"]}
            break
    return {**pod, "containers": containers}


def _read_again(pod: Json) -> Json:
    """What is counted of a pod, with quantities as their printed text says."""
    again = {
        group: [_requests_read_again(container) for container in pod.get(group, ())]
        for group in ("initContainers", "containers")
    }
    overhead = {name: str(text) for name, text in pod.get("overhead", {}).items()}
    return {**pod, **again, **_requests_read_again(pod), "overhead": overhead}


def _requests_read_again(holder: Json) -> Json:
    requests = (holder.get("resources") or {}).get("requests") or {}
    kept: Json = {key: holder[key] for key in ("name", "restartPolicy") if key in holder}
    return {**kept, "resources": {"requests": {name: str(text) for name, text in requests.items()}}}


def _pod_requests(pod: Json) -> Amounts:
    """What one pod requests, as the scheduler sums it: containers and sidecars together, init containers one by one."""
    total: Amounts = {}
    for container in pod.get("containers", ()):
        _add(total, _requests(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod.get("initContainers", ()):
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(total, own)
            _add(sidecars, own)
            needed = sidecars
        else:
            needed = dict(own)
            _add(needed, sidecars)
        _raise_to(peak, needed)
    _raise_to(total, peak)
    for name, amount in _requests(pod).items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            total[name] = amount
    _add(total, _amounts(pod.get("overhead")))
    return total


def _requests(container: Json) -> Amounts:
    return _amounts((container.get("resources") or {}).get("requests"))


def _amounts(texts: Mapping[str, str] | None) -> Amounts:
    return {
        name: text.read if isinstance(text, Reworded) else Quantity.parse(text)
        for name, text in (texts or {}).items()
    }


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total[name].plus(amount) if name in total else amount


def _raise_to(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
