"""Whether the installed server runs, and what keeps it from running: its claim, its image, its quota, its own end.

Reading is one function, judging is pure: `astrago install` waits with it, and the doctor reports it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from astrago_trainer import __version__
from astrago_trainer.engines.base import EngineError, EngineUnavailable
from astrago_trainer.engines.kubernetes.client import NotFound
from astrago_trainer.install.cluster import InstallClient

Json = Mapping[str, Any]

NAME = "astrago"
CLAIM = "astrago-data"
LOG_LINES = 15
_POLL_SECONDS = 1.0
_SELECTOR = "app.kubernetes.io/name=astrago-trainer"
_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"
_PULLS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_CLAIM_REASONS = ("FailedBinding", "ProvisioningFailed", "VolumeMismatch")
_MOST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class ServerState:
    """What the cluster has of the server."""

    namespace: str
    deployment: Json | None
    pods: Sequence[Json] = ()
    """Of the newest revision, without those that are being removed."""
    claim: Json | None = None
    events: Sequence[Json] = ()
    """Of the namespace."""
    log: Sequence[str] = ()
    """The last lines of a server that ended."""

    @property
    def image(self) -> str:
        if self.deployment is None:
            return ""
        return str(self.deployment["spec"]["template"]["spec"]["containers"][0]["image"])

    @property
    def is_observed(self) -> bool:
        """Whether the cluster has begun to do what the Deployment says now."""
        if self.deployment is None:
            return False
        observed = (self.deployment.get("status") or {}).get("observedGeneration") or 0
        return bool(observed >= self.deployment["metadata"].get("generation", 0))

    @property
    def is_ready(self) -> bool:
        """All replicas are of the newest revision and answer."""
        if self.deployment is None or not self.is_observed:
            return False
        status = self.deployment.get("status") or {}
        wanted = self.deployment["spec"].get("replicas", 1)
        return status.get("updatedReplicas", 0) == wanted == status.get(
            "availableReplicas", 0
        ) and not status.get("unavailableReplicas")


@dataclass(frozen=True, slots=True)
class Blocker:
    """One thing that keeps the server from running."""

    subject: str
    text: str
    fixes: tuple[str, ...]
    is_final: bool
    """It does not go away by waiting."""
    lines: tuple[str, ...] = ()
    """Of the server's own log."""


async def read_server(client: InstallClient, namespace: str) -> ServerState:
    """Raises EngineError for what cannot be read."""
    deployment = await _find(client, f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}")
    if deployment is None:
        return ServerState(namespace, None)
    core = f"/api/v1/namespaces/{namespace}"
    sets, pods, claim, events = await asyncio.gather(
        client.get(f"/apis/apps/v1/namespaces/{namespace}/replicasets", labelSelector=_SELECTOR),
        client.get(f"{core}/pods", labelSelector=_SELECTOR),
        _find(client, f"{core}/persistentvolumeclaims/{CLAIM}"),
        client.get(f"{core}/events"),
    )
    state = ServerState(
        namespace,
        deployment,
        _newest_pods(deployment, sets["items"], pods["items"]),
        claim,
        events["items"],
    )
    crashed = next((pod for pod in state.pods if _end_of(_container(pod)) is not None), None)
    return state if crashed is None else replace(state, log=await _log(client, crashed))


async def wait_for_server(
    client: InstallClient, namespace: str, seconds: float
) -> tuple[bool, list[Blocker]]:
    """Whether it runs within this time; if not, what blocks it. What does not go away ends the waiting."""
    end = time.monotonic() + seconds
    while True:
        try:
            state = await read_server(client, namespace)
        except EngineUnavailable:
            if time.monotonic() >= end:
                raise
            await asyncio.sleep(_POLL_SECONDS)
            continue
        if state.is_ready:
            return True, []
        blockers = find_blockers(state) if state.is_observed else []
        if any(each.is_final for each in blockers) or time.monotonic() >= end:
            return False, blockers
        await asyncio.sleep(_POLL_SECONDS)


def find_blockers(state: ServerState) -> list[Blocker]:
    """Causes before what follows from them; empty for a server that runs, is starting or is not installed."""
    if state.deployment is None or state.is_ready:
        return []
    found = [*_claim_blockers(state), *_quota_blockers(state)]
    for pod in state.pods:
        found += _pod_blockers(state, pod, has_claim_trouble=bool(found))
    return found


def image_fixes(namespace: str) -> tuple[str, str]:
    """Commands that make an image and use it."""
    image = f"REGISTRY/astrago-trainer:{__version__}"
    return (
        f"docker build -t {image} . && docker push {image}",
        f"{_install(namespace)} --image {image}",
    )


def _install(namespace: str) -> str:
    where = "" if namespace == "astrago-system" else f" --namespace {namespace}"
    return f"astrago install --apply{where}"


def _claim_blockers(state: ServerState) -> Iterator[Blocker]:
    claim = state.claim
    if (
        claim is None
        or (claim.get("status") or {}).get("phase") != "Pending"
        or not _uses_claim(state)
    ):
        return
    event = _newest_event(state, "PersistentVolumeClaim", CLAIM, _CLAIM_REASONS)
    storage_class = claim["spec"].get("storageClassName")
    asked = (
        "the default storage class"
        if storage_class is None
        else f"the storage class {storage_class!r}"
        if storage_class
        else "a volume without a storage class"
    )
    why = f": {_short(event.get('message'))}" if event is not None else ""
    message = str(event.get("message", "")) if event is not None else ""
    is_final = event is not None and (
        event["reason"] in ("FailedBinding", "VolumeMismatch") or "not found" in message
    )
    delete = f"kubectl -n {state.namespace} delete pvc {CLAIM}"
    yield Blocker(
        "claim",
        f"the claim {state.namespace}/{CLAIM} is Pending: it asks for {asked}, and the cluster gives none{why}",
        (
            "kubectl get storageclass",
            f"{delete} && {_install(state.namespace)} --storage-class NAME",
            f"{delete} && {_install(state.namespace)} --storage none  # data goes with the pod",
        ),
        is_final,
    )


def _quota_blockers(state: ServerState) -> Iterator[Blocker]:
    for each in ((state.deployment or {}).get("status") or {}).get("conditions") or ():
        if each["type"] == "ReplicaFailure" and each["status"] == "True":
            message = _short(each.get("message"))
            is_quota = "exceeded quota" in message
            yield Blocker(
                "quota" if is_quota else "pod",
                f"the cluster refuses the server's pod: {message}",
                (
                    f"kubectl -n {state.namespace} describe resourcequota"
                    if is_quota
                    else f"kubectl -n {state.namespace} describe replicaset -l {_SELECTOR}",
                ),
                is_final=True,
            )


def _pod_blockers(state: ServerState, pod: Json, *, has_claim_trouble: bool) -> Iterator[Blocker]:
    where, name = f"kubectl -n {state.namespace}", pod["metadata"]["name"]
    container = _container(pod)
    waiting = (container.get("state") or {}).get("waiting") or {}
    reason = str(waiting.get("reason", ""))
    if reason in _PULLS:
        yield Blocker(
            "image",
            f"the image {state.image} cannot be pulled ({reason}): {_short(waiting.get('message'))}",
            image_fixes(state.namespace),
            is_final=reason != "ErrImagePull",
        )
        return
    if reason == "CreateContainerConfigError":
        text = f"the server's container cannot be made: {_short(waiting.get('message'))}"
        yield Blocker("start", text, (f"{where} describe pod {name}",), is_final=True)
        return
    if (ended := _end_of(container)) is not None:
        why = f", {ended['reason']}" if ended.get("reason") not in (None, "Error") else ""
        yield Blocker(
            "start",
            f"the server ended with exit code {ended.get('exitCode')}{why}",
            (f"{where} logs {name} --previous",),
            is_final=reason == "CrashLoopBackOff",
            lines=tuple(state.log),
        )
        return
    unscheduled = _condition(pod, "PodScheduled", "False")
    if unscheduled is not None and not has_claim_trouble:
        yield Blocker(
            "node",
            f"no node takes the server's pod: {_short(unscheduled.get('message'))}",
            ("kubectl get nodes", f"{where} describe pod {name}"),
            is_final=False,
        )
    elif "running" in (container.get("state") or {}):
        yield Blocker(
            "start",
            "the server has started, and is not ready yet",
            (f"{where} logs {name}",),
            is_final=False,
        )


def _newest_pods(deployment: Json, sets: Sequence[Json], pods: Sequence[Json]) -> list[Json]:
    """Those of an older revision say nothing about what was applied now."""
    revision = (deployment["metadata"].get("annotations") or {}).get(_REVISION)
    newest = {
        each["metadata"]["labels"].get(_HASH)
        for each in sets
        if (each["metadata"].get("annotations") or {}).get(_REVISION) == revision
    }
    return [
        each
        for each in pods
        if each["metadata"]["labels"].get(_HASH) in newest
        and not each["metadata"].get("deletionTimestamp")
    ]


def _uses_claim(state: ServerState) -> bool:
    volumes = (state.deployment or {})["spec"]["template"]["spec"].get("volumes") or ()
    return any(
        (each.get("persistentVolumeClaim") or {}).get("claimName") == CLAIM for each in volumes
    )


def _container(pod: Json) -> Json:
    found = (pod.get("status") or {}).get("containerStatuses") or ()
    return found[0] if found else {}


def _end_of(container: Json) -> Json | None:
    """How it ended, unless it runs again."""
    state = container.get("state") or {}
    if "running" in state:
        return None
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
    return ended if isinstance(ended, Mapping) else None


def _condition(pod: Json, kind: str, status: str) -> Json | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next(
        (each for each in conditions if (each["type"], each["status"]) == (kind, status)), None
    )


def _newest_event(
    state: ServerState, kind: str, name: str, reasons: tuple[str, ...]
) -> Json | None:
    found = [
        each
        for each in state.events
        if each.get("reason") in reasons
        and (each["involvedObject"].get("kind"), each["involvedObject"].get("name")) == (kind, name)
    ]
    return max(
        found,
        key=lambda each: str(each.get("lastTimestamp") or each.get("eventTime") or ""),
        default=None,
    )


def _short(message: object) -> str:
    text = " ".join(str(message or "").split()).rstrip(".")
    return text if len(text) <= _MOST_MESSAGE else f"{text[:_MOST_MESSAGE]}…"


async def _find(client: InstallClient, path: str) -> Json | None:
    try:
        return await client.get(path)
    except NotFound:
        return None


async def _log(client: InstallClient, pod: Json) -> list[str]:
    """Of the start that ended; nothing where the node has no log of it any more."""
    path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/log"
    has_next = bool((_container(pod).get("lastState") or {}).get("terminated"))
    is_over = bool((_container(pod).get("state") or {}).get("terminated"))
    previous = "true" if has_next and not is_over else "false"
    try:
        said = await client.read(path, tailLines=str(LOG_LINES), previous=previous)
    except EngineError:
        return []
    return said.decode("utf-8", "replace").splitlines()
