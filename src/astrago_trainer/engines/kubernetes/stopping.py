"""Ends a job and takes away what was made for it alone; what others use stays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.render.reporting import token_secret_name
from astrago_trainer.engines.base import EngineUnavailable, Handle
from astrago_trainer.engines.kubernetes.applying import is_ours
from astrago_trainer.engines.kubernetes.client import Client, Conflict, Forbidden, NotFound
from astrago_trainer.engines.kubernetes.resources import (
    CONFIGMAPS,
    JOB_UID,
    RUNTIMES,
    SECRETS,
    TRAINJOBS,
    Resource,
)

_TRIES, _PAUSE = 100, 0.1
"""Up to Trainer 2.2 a runtime stays until the controller has noticed that its last job is gone; none are watched."""


async def delete_trainjob(client: Client, handle: Handle) -> str | None:
    """The uid of the TrainJob, which is being removed from now on; empty when it is gone, None when it is another's.

    In the background. In the foreground the TrainJob would stay until its pods are gone, and for longer than its
    JobSet: Trainer 2.1 then makes another JobSet, and the training begins anew for a moment.
    """
    found = await client.find(TRAINJOBS, handle.namespace, handle.name)
    if found is None:
        return ""
    if not is_ours(found, handle):
        return None
    uid = str(found["metadata"]["uid"])
    if not found["metadata"].get("deletionTimestamp"):
        try:
            await client.delete(TRAINJOBS, handle.namespace, handle.name, uid=uid)
        except NotFound:
            return ""
        except Conflict as error:
            raise EngineUnavailable(
                f"TrainJob {handle.namespace}/{handle.name} was replaced while it was being removed"
            ) from error
    return uid


async def delete_leftovers(client: Client, handle: Handle) -> None:
    """The job's own runtime, and what a crash left between two steps of its creation.

    A ConfigMap that has an owner goes with the last of its owners, by Kubernetes itself. Returns when the runtime is
    gone, because the next job of this name needs its name.
    """
    for each in await client.list(CONFIGMAPS, handle.namespace, f"{JOB_UID}={handle.uid}"):
        if not each["metadata"].get("ownerReferences"):
            await _delete(client, CONFIGMAPS, each)
    await _delete_token(client, handle)
    for _ in range(_TRIES):
        try:
            runtimes = await client.list(RUNTIMES, handle.namespace, f"{JOB_UID}={handle.uid}")
        except Forbidden:  # then none was ever made
            return
        for each in runtimes:
            if not each["metadata"].get("deletionTimestamp"):
                await _delete(client, RUNTIMES, each)
        if not runtimes:
            return
        await asyncio.sleep(_PAUSE)
    raise EngineUnavailable(
        f"TrainingRuntime {runtimes[0]['metadata']['name']} in {handle.namespace} is still being removed"
    )


async def _delete_token(client: Client, handle: Handle) -> None:
    """One that a crash left without an owner; where secrets are not ours to read there is none."""
    try:
        found = await client.find(SECRETS, handle.namespace, token_secret_name(handle.name))
    except Forbidden:
        return
    if found is not None and is_ours(found, handle):
        await _delete(client, SECRETS, found)


async def _delete(client: Client, resource: Resource, found: Mapping[str, Any]) -> None:
    """By its version: a job that takes it over in this moment keeps it."""
    meta = found["metadata"]
    try:
        await client.delete(
            resource,
            meta["namespace"],
            meta["name"],
            uid=meta["uid"],
            version=meta["resourceVersion"],
        )
    except (NotFound, Conflict):
        return
