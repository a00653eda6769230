"""Why a job has no pods, or its pods do not run, in words. Pure.

The operator says little itself: creation errors are events alone, and the kubelet's words are about containers. Each
reason here names the object, what was found, and what to do where that is known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.kubernetes.objects import ClusterEvent, ContainerStatus, Pod, Waiting
from astrago_trainer.engines.kubernetes.pods import label_of

NOT_CREATED = frozenset({"TrainJobResourcesCreationFailed", "JobCreationFailed", "FailedCreate"})
"""Events that say that something below could not be made."""
UNSCHEDULABLE = "Unschedulable"
_PROVISIONING = frozenset({"Nominated", "TriggeredScaleUp"})
"""Karpenter and the cluster autoscaler: a node is on its way."""
_MOUNT = frozenset({"FailedMount", "FailedAttachVolume", "FailedMapVolume"})
_PULL = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
_BAD_CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})


class Why(NamedTuple):
    """A phase with its reason."""

    phase: Phase
    reason: str = ""
    message: str = ""


def why_not_created(events: Iterable[ClusterEvent]) -> Why | None:
    """Why the operator could not make the JobSet, its Jobs or their pods; the newest word counts."""
    refused = [each for each in events if each.reason in NOT_CREATED]
    if not refused:
        return None
    newest = max(refused, key=_time)
    about = f"{newest.involved_object.kind} {newest.involved_object.name}"
    text = newest.message
    if "exceeded quota" in text:
        return Why(
            Phase.QUEUED, "QuotaExceeded", f"waits for quota: {_cut(text, 'exceeded quota')}"
        )
    if "violates PodSecurity" in text:
        return Why(
            Phase.PENDING,
            "PodSecurity",
            f"the namespace forbids such pods: {_cut(text, 'violates PodSecurity')}",
        )
    if "name is too long" in text or "will exceed 63 characters" in text:
        return Why(
            Phase.PENDING,
            "NameTooLong",
            f"no pod can be named after this job: {text}. Submit it again under a shorter name",
        )
    if "failed calling webhook" in text or "no endpoints available for service" in text:
        return Why(
            Phase.PENDING,
            "WebhookUnavailable",
            f"waits for an admission webhook of the cluster that does not answer: {text}",
        )
    if "not found" in text and "untime" in text:
        return Why(Phase.PENDING, "RuntimeNotFound", f"its runtime does not exist: {text}")
    return Why(Phase.PENDING, newest.reason, f"{about} cannot be made: {text}")


def why_pod_waits(pod: Pod, events: Iterable[ClusterEvent]) -> Why:
    """Of a pod that does not run yet, with the events about it."""
    own = sorted(events, key=_time)
    if not pod.spec.node_name:
        return _unscheduled(pod, own)
    for is_init, statuses in (
        (True, pod.status.init_container_statuses),
        (False, pod.status.container_statuses),
    ):
        for status in statuses:
            if (found := _container(pod, status, own, is_init=is_init)) is not None:
                return found
    who = label_of(pod)
    return _mounts(pod, own) or Why(
        Phase.PENDING,
        "ContainerCreating",
        f"{who}: node {pod.spec.node_name} prepares its containers",
    )


def _unscheduled(pod: Pod, events: list[ClusterEvent]) -> Why:
    who = label_of(pod)
    on_its_way = [each for each in events if each.reason in _PROVISIONING]
    if on_its_way:
        return Why(
            Phase.PENDING,
            "NodeProvisioning",
            f"{who} waits for a node that is being provisioned: {on_its_way[-1].message}",
        )
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return Why(
                Phase.PENDING, UNSCHEDULABLE, f"no node has room for {who}: {condition.message}"
            )
        if condition.type == "PodScheduled" and condition.reason == "SchedulingGated":
            return Why(Phase.QUEUED, "SchedulingGated", f"{who} waits for its turn in a queue")
    return Why(Phase.PENDING, "Scheduling", f"{who} waits for the scheduler")


def _container(
    pod: Pod, status: ContainerStatus, events: list[ClusterEvent], *, is_init: bool
) -> Why | None:
    """What keeps this container, if anything."""
    who = label_of(pod)
    name = f"init container {status.name} of {who}" if is_init else who
    if is_init and status.state.running is not None:
        return Why(Phase.INITIALIZING, "InitContainerRunning", f"{name} runs")
    waiting = status.state.waiting
    if waiting is None:
        return None
    if waiting.reason in _PULL:
        return Why(Phase.PULLING, *_pull(_image(pod, status.name), waiting, events))
    if waiting.reason in _BAD_CONFIG:
        return Why(Phase.PENDING, waiting.reason, f"{name} cannot be started: {waiting.message}")
    if waiting.reason == "CrashLoopBackOff":
        phase = Phase.INITIALIZING if is_init else Phase.RESTARTING
        word = "InitContainerFailed" if is_init else "CrashLoopBackOff"
        return Why(phase, word, f"{name} failed and starts again: {waiting.message}")
    if (mounts := _mounts(pod, events)) is not None:
        return mounts
    if _is_pulling(events, _image(pod, status.name)):
        return Why(
            Phase.PULLING,
            "Pulling",
            f"{name}: node {pod.spec.node_name} fetches the image {_image(pod, status.name)}",
        )
    if waiting.reason == "PodInitializing":
        return Why(Phase.INITIALIZING, "PodInitializing", f"{who} prepares its start")
    return None


def _pull(image: str, waiting: Waiting, events: list[ClusterEvent]) -> tuple[str, str]:
    """In back-off the status forgets why; the event before it knows."""
    failed = [each.message for each in events if each.reason == "Failed" and image in each.message]
    why = next(
        (each for each in reversed(failed) if "back-off" not in each.lower()), waiting.message
    )
    lower = why.lower()
    if "invalid reference format" in lower or waiting.reason == "InvalidImageName":
        return "ImageNameInvalid", f"{image!r} is no name of an image: {why}"
    # A registry that hides what one may not see says "denied" for an image that does not exist as well.
    if any(word in lower for word in ("unauthorized", "denied", "forbidden", "no basic auth")):
        return (
            "ImagePullUnauthorized",
            f"the registry does not give out {image} to this cluster: it is private and needs a pull "
            f"secret, or does not exist: {why}",
        )
    if re.search(r"not found|manifest unknown|does not exist", lower):
        return "ImageNotFound", f"there is no image {image}; check name and tag: {why}"
    return "ImagePullFailed", f"the image {image} cannot be fetched: {why or 'no reason given'}"


def _mounts(pod: Pod, events: list[ClusterEvent]) -> Why | None:
    failed = [each for each in events if each.reason in _MOUNT]
    if not failed:
        return None
    text = failed[-1].message
    who = label_of(pod)
    if re.search(r"configmap .*not found", text):
        return Why(
            Phase.PENDING, "ConfigMapMissing", f"{who} needs a ConfigMap that is not there: {text}"
        )
    if re.search(r"secret .*not found", text):
        return Why(
            Phase.PENDING, "SecretMissing", f"{who} needs a Secret that is not there: {text}"
        )
    if re.search(r"persistentvolumeclaim .*not found", text):
        return Why(Phase.PENDING, "ClaimMissing", f"{who} needs a claim that is not there: {text}")
    return Why(Phase.PENDING, failed[-1].reason, f"a volume of {who} cannot be mounted: {text}")


def _is_pulling(events: list[ClusterEvent], image: str) -> bool:
    """Whether the last word about this image is that it is being fetched."""
    about = [each.reason for each in events if image in each.message]
    return "Pulling" in about and "Pulled" not in about


def _image(pod: Pod, container: str) -> str:
    for each in (*pod.spec.containers, *pod.spec.init_containers):
        if each.name == container:
            return each.image
    return ""


def _cut(text: str, start: str) -> str:
    return text[text.index(start) :]


def _time(event: ClusterEvent) -> float:
    return event.time.timestamp() if event.time is not None else 0.0
