"""Gang scheduling: the pods of a job start together or not at all, by one of two schedulers."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.model import ControllerFailure, Plan, owner_reference
from astrago_trainer.core.merge.origins import Origin
from astrago_trainer.core.merge.resources import total_requests

Json = dict[str, Any]

QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"
_COSCHEDULING = Origin("podGroupPolicy.coscheduling")
_VOLCANO = Origin("podGroupPolicy.volcano")


def enforce(plan: Plan) -> None:
    """Mark the pods as members of the job's group."""
    policy = plan.runtime.pod_group_policy or {}
    if "coscheduling" in policy:
        plan.pod_labels["scheduling.x-k8s.io/pod-group"] = plan.job.name
    if "volcano" in policy:
        plan.pod_annotations["scheduling.k8s.io/group-name"] = plan.job.name


def pod_label_origin(plan: Plan) -> Origin:
    """Who asks for the group label or annotation."""
    return _COSCHEDULING if "coscheduling" in (plan.runtime.pod_group_policy or {}) else _VOLCANO


def objects(plan: Plan) -> list[Json]:
    """The PodGroup of each scheduler that the runtime names."""
    policy = plan.runtime.pod_group_policy or {}
    made = []
    if "coscheduling" in policy:
        made.append(plan.origins.mark(_coscheduling(plan, policy["coscheduling"]), _COSCHEDULING))
    if "volcano" in policy:
        made.append(plan.origins.mark(_volcano(plan, policy["volcano"]), _VOLCANO))
    return made


def _coscheduling(plan: Plan, policy: Json) -> Json:
    members, resources = total_requests(plan)
    if "scheduleTimeoutSeconds" not in policy:
        raise ControllerFailure(
            "podGroupPolicy.coscheduling.scheduleTimeoutSeconds is missing, the controller crashes without it"
        )
    spec = {
        "minMember": members,
        "minResources": resources,
        "scheduleTimeoutSeconds": policy["scheduleTimeoutSeconds"],
    }
    return _group(plan, "scheduling.x-k8s.io/v1alpha1", spec)


def _volcano(plan: Plan, policy: Json) -> Json:
    members, resources = total_requests(plan)
    spec: Json = {"minMember": members, "minResources": resources}
    if QUEUE_ANNOTATION in plan.annotations:
        spec["queue"] = plan.annotations[QUEUE_ANNOTATION]
    for pods in plan.pod_sets:
        if "priorityClassName" in pods.pod:
            spec["priorityClassName"] = pods.pod["priorityClassName"]
    topology = policy.get("networkTopology")
    if topology is not None:
        if "highestTierAllowed" not in topology:
            raise ControllerFailure(
                "networkTopology.highestTierAllowed is missing, the controller crashes without it"
            )
        spec["networkTopology"] = {
            "mode": topology.get("mode", ""),
            "highestTierAllowed": topology["highestTierAllowed"],
        }
    return _group(plan, "scheduling.volcano.sh/v1beta1", spec)


def _group(plan: Plan, api_version: str, spec: Json) -> Json:
    metadata = {
        "name": plan.job.name,
        "namespace": plan.job.namespace,
        "ownerReferences": [owner_reference(plan.job)],
    }
    return {"apiVersion": api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}
