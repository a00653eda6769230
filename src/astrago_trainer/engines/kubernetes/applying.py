"""Makes a job in the cluster, step by step, so that any step may be the last before a crash.

ConfigMaps and an own runtime come first, the TrainJob after them, owner references last. Every step finds out what is
there already, so that the next call completes what this one began. The name is the guard: the API server lets one
TrainJob have it, and the label says whether that one is ours.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Mapping
from typing import Any

from astrago_trainer.core.render import owner_reference
from astrago_trainer.core.render.configmaps import MANAGED_BY, USER_LABEL
from astrago_trainer.engines.base import Effective, EngineRejected, EngineUnavailable, Handle
from astrago_trainer.engines.kubernetes.client import (
    MERGE,
    STRATEGIC,
    AlreadyExists,
    Client,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
)
from astrago_trainer.engines.kubernetes.resources import (
    BY_KIND,
    JOB_UID,
    SUSPENDED_BY_US,
    TRAINJOBS,
)

Json = dict[str, Any]

_log = logging.getLogger(__name__)
_TRIES = 40
_PAUSE = 0.1
"""The webhook reads runtimes from a cache that lags behind their creation; it was seen to take less than a second."""


async def apply(
    client: Client,
    handle: Handle,
    effective: Effective,
    step: Callable[[str], None] = lambda _: None,
) -> Mapping[str, Any]:
    """The TrainJob as the API server has it now. `step` is called between any two writes, by name."""
    *others, wanted = _manifests(handle, effective)
    found = await _find_ours(client, handle)
    if found is None:
        for each in others:
            await _ensure(client, handle, each)
            step(f"made {each['kind']} {each['metadata']['name']}")
        found = await _create(client, handle, wanted, others)
        step("made the TrainJob")
    for each in others:
        if _belongs_to_jobs(each):
            await _own(client, handle, each, str(found["metadata"]["uid"]))
            step(f"owns {each['kind']} {each['metadata']['name']}")
    return await _suspend(client, handle, found, wish=effective.suspend)


def is_ours(found: Mapping[str, Any], handle: Handle) -> bool:
    labels = found["metadata"].get("labels") or {}
    return bool(labels.get(JOB_UID) == handle.uid)


def _manifests(handle: Handle, effective: Effective) -> list[Json]:
    """What is written, the TrainJob last, each with the labels that tell whose it is."""
    manifests = [copy.deepcopy(dict(each)) for each in effective.objects]
    kinds = [each["kind"] for each in manifests]
    is_whole = kinds.count("TrainJob") == 1 and kinds[-1] == "TrainJob"
    if not is_whole or manifests[-1]["metadata"]["name"] != handle.name:
        raise EngineRejected(
            f"job {handle.namespace}/{handle.name}: one TrainJob of this name is expected as the last object, "
            f"found {', '.join(kinds) or 'none'}"
        )
    for each in manifests:
        each["metadata"]["namespace"] = handle.namespace
        labels = each["metadata"].setdefault("labels", {})
        labels.update(MANAGED_BY)
        if each["kind"] == "TrainJob" or _belongs_to_jobs(each):
            labels[JOB_UID] = handle.uid
    trainjob = manifests[-1]
    if effective.suspend:
        trainjob["spec"]["suspend"] = True
        trainjob["metadata"].setdefault("annotations", {})[SUSPENDED_BY_US] = "true"
    return manifests


def _belongs_to_jobs(manifest: Json) -> bool:
    """Whether it goes with the last job that uses it; the platform's scripts are everybody's, and stay."""
    is_users = USER_LABEL in (manifest["metadata"].get("labels") or {})
    return bool(manifest["kind"] in ("TrainingRuntime", "Secret") or is_users)


async def _find_ours(client: Client, handle: Handle) -> Mapping[str, Any] | None:
    found = await client.find(TRAINJOBS, handle.namespace, handle.name)
    if found is None:
        return None
    where = f"TrainJob {handle.namespace}/{handle.name}"
    if found["metadata"].get("deletionTimestamp"):
        raise EngineUnavailable(f"{where} is still being removed")
    if is_ours(found, handle):
        return found
    raise EngineRejected(
        f"{where} exists and was not made for this job (label {JOB_UID} is "
        f"{(found['metadata'].get('labels') or {}).get(JOB_UID)!r}, not {handle.uid!r}). "
        "Delete it, or submit the job under another name"
    )


async def _create(
    client: Client, handle: Handle, wanted: Json, others: list[Json]
) -> Mapping[str, Any]:
    ref = wanted["spec"]["runtimeRef"]
    has_own_runtime = any(
        each["kind"] == ref.get("kind") and each["metadata"]["name"] == ref["name"]
        for each in others
    )
    for _ in range(_TRIES if has_own_runtime else 1):
        try:
            return await client.create(wanted, handle.namespace)
        except AlreadyExists:  # our own request, whose answer was lost, or somebody else's
            found = await _find_ours(client, handle)
            if found is None:
                raise EngineUnavailable(
                    f"TrainJob {handle.namespace}/{handle.name} came and went meanwhile"
                ) from None
            return found
        except Refused as error:
            if not (has_own_runtime and "must be created before the TrainJob" in str(error)):
                raise _named(error, wanted) from error
            await asyncio.sleep(_PAUSE)
    raise EngineUnavailable(
        f"the Trainer's webhook does not see the runtime of {handle.namespace}/{handle.name} yet"
    )


async def _ensure(client: Client, handle: Handle, wanted: Json) -> None:
    """There, with this content."""
    try:
        await client.create(wanted, handle.namespace)
        return
    except AlreadyExists:
        pass
    except Forbidden:
        if wanted["kind"] != "Secret":
            raise
        # Pods take it if it is there: reporting progress is not worth rights on secrets where nobody gave them.
        _log.info("job %s/%s gets no token: no right to", handle.namespace, handle.name)
        return
    except Refused as error:
        raise _named(error, wanted) from error
    resource, name = BY_KIND[wanted["kind"]], wanted["metadata"]["name"]
    found = await client.find(resource, handle.namespace, name)
    if found is None:
        raise EngineUnavailable(f"{wanted['kind']} {name} came and went meanwhile")
    if wanted["kind"] in ("TrainingRuntime", "Secret"):
        _check_own(found, handle, wanted["kind"])
    elif not _has_content(found, wanted):
        if _belongs_to_jobs(wanted):
            raise await _other_code(client, handle, found)
        await _renew(client, handle, found, wanted)


def _check_own(found: Mapping[str, Any], handle: Handle, kind: str) -> None:
    """What belongs to one job alone: this one's, or in the way."""
    where = f"{kind} {handle.namespace}/{found['metadata']['name']}"
    if is_ours(found, handle):
        if found["metadata"].get("deletionTimestamp"):
            raise EngineUnavailable(f"{where} is still being removed")
        return
    if JOB_UID in (found["metadata"].get("labels") or {}):
        # An earlier job's of this name, whose TrainJob has gone: Kubernetes removes it in a moment.
        raise EngineUnavailable(f"{where} of an earlier job is still being removed")
    raise EngineRejected(
        f"{where} exists and was not made for this job. "
        "Delete it, or submit the job under another name"
    )


def _has_content(found: Mapping[str, Any], wanted: Json) -> bool:
    return all((found.get(key) or {}) == (wanted.get(key) or {}) for key in ("data", "binaryData"))


async def _other_code(
    client: Client, handle: Handle, found: Mapping[str, Any]
) -> EngineRejected | EngineUnavailable:
    """Why a job cannot have its code under this name; it is not in the way for long when its jobs are gone."""
    name = f"ConfigMap {handle.namespace}/{found['metadata']['name']}"
    owners = {each["uid"]: each["name"] for each in found["metadata"].get("ownerReferences") or ()}
    trainjobs = [await client.find(TRAINJOBS, handle.namespace, each) for each in owners.values()]
    alive = {each["metadata"]["uid"] for each in trainjobs if each is not None}
    if owners and owners.keys().isdisjoint(alive):
        return EngineUnavailable(f"{name} of an earlier job is still being removed")
    return EngineRejected(
        f"{name} holds other files than this job's, and is never rewritten: jobs that use it go on. "
        "Submit the job again, and its files get a name of their own"
    )


async def _renew(client: Client, handle: Handle, found: Mapping[str, Any], wanted: Json) -> None:
    """Only what is the platform's: its scripts change with its release."""
    name = f"{wanted['kind']} {handle.namespace}/{wanted['metadata']['name']}"
    if not (found["metadata"].get("labels") or {}).items() >= MANAGED_BY.items():
        raise EngineRejected(
            f"{name} exists and was not made by this platform; it is needed for the platform's scripts. "
            "Rename or delete it"
        )
    version = found["metadata"]["resourceVersion"]
    metadata = {**wanted["metadata"], "resourceVersion": version}
    try:
        await client.replace({**wanted, "metadata": metadata}, handle.namespace)
    except (Conflict, NotFound) as error:
        raise EngineUnavailable(f"{name} is being changed by somebody else") from error


async def _own(client: Client, handle: Handle, wanted: Json, uid: str) -> None:
    """Lets it go with the TrainJob. An earlier job that used it may just have taken it along: then it is made anew."""
    resource, name = BY_KIND[wanted["kind"]], wanted["metadata"]["name"]
    reference = owner_reference(handle.name, uid)
    # Built-in kinds merge owners by uid, so that several jobs may add themselves at once; custom ones have one owner.
    kind = MERGE if wanted["kind"] == "TrainingRuntime" else STRATEGIC
    change = {"metadata": {"ownerReferences": [reference]}}
    try:
        await client.patch(resource, handle.namespace, name, change, kind)
    except Forbidden:
        if wanted["kind"] != "Secret":
            raise
    except NotFound:
        again = copy.deepcopy(wanted)
        again["metadata"]["ownerReferences"] = [reference]
        await _ensure(client, handle, again)


async def _suspend(
    client: Client, handle: Handle, found: Mapping[str, Any], *, wish: bool
) -> Mapping[str, Any]:
    """As wished; a finished job is left as it is."""
    is_over = any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in (found.get("status") or {}).get("conditions") or ()
    )
    is_suspended = bool(found["spec"].get("suspend"))
    is_by_us = (found["metadata"].get("annotations") or {}).get(SUSPENDED_BY_US) == "true"
    if is_over or wish == is_suspended or (is_suspended and not is_by_us):
        return found
    change = {
        # This very TrainJob: another of its name would be refused.
        "metadata": {
            "uid": found["metadata"]["uid"],
            "annotations": {SUSPENDED_BY_US: "true" if wish else None},
        },
        "spec": {"suspend": wish},
    }
    try:
        return await client.patch(TRAINJOBS, handle.namespace, handle.name, change)
    except (Conflict, NotFound) as error:
        raise EngineUnavailable(
            f"TrainJob {handle.namespace}/{handle.name} went while it was being changed"
        ) from error
    except Refused as error:
        raise _named(error, {"kind": "TrainJob", "metadata": {"name": handle.name}}) from error


def _named(error: Refused, manifest: Mapping[str, Any]) -> EngineRejected:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    return EngineRejected(f"the cluster refuses {kind} {name}: {error}")
