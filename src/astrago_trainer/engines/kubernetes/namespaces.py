"""Makes a tenant's namespace and what is in it; every step may be the last before a crash, and the next call goes on.

Done with few rights: namespaces are made and never changed, so that a server in wrong hands loosens none of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.kubernetes.client import AlreadyExists, Client, NotFound, Refused
from astrago_trainer.engines.kubernetes.resources import ACCOUNTS, NAMESPACES, TENANT
from astrago_trainer.engines.kubernetes.tenants import (
    DEFAULT_ACCOUNT,
    POD_SECURITY,
    TenantPolicy,
    is_ours,
    namespace_manifest,
    tenant_manifests,
)

_WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_TRIES, _PAUSE = 100, 0.1
"""For the account `default`, which Kubernetes itself makes a moment after the namespace."""
_log = logging.getLogger(__name__)


async def make_namespace(client: Client, namespace: str, policy: TenantPolicy) -> None:
    """There, ours, and as the policy says now. The right to work in it comes first, what limits it after that."""
    wanted = namespace_manifest(namespace, policy)
    try:
        await client.create(wanted, "")
    except AlreadyExists:
        _check(await client.find(NAMESPACES, "", namespace), namespace, policy)
    except Refused as error:
        raise _named(error, wanted, namespace) from error
    server = await who_am_i(client)
    for each in tenant_manifests(policy, server):
        try:
            await client.apply(each, namespace)
        except Refused as error:
            raise _named(error, each, namespace) from error
    await _close_account(client, namespace)


async def who_am_i(client: Client) -> str:
    """The name under which the API server knows us."""
    question = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = await client.review(_WHO_AM_I, question)
    return str(found["status"]["userInfo"]["username"])


async def _close_account(client: Client, namespace: str) -> None:
    for _ in range(_TRIES):
        try:
            await client.patch(ACCOUNTS, namespace, "default", DEFAULT_ACCOUNT)
            return
        except NotFound:
            await asyncio.sleep(_PAUSE)
    raise EngineUnavailable(f"the namespace {namespace} has no service account 'default' yet")


def _check(found: Mapping[str, Any] | None, namespace: str, policy: TenantPolicy) -> None:
    """Raises unless it is a tenant's; tells of one that enforces something else than is wished now."""
    if found is None or found["metadata"].get("deletionTimestamp"):
        raise EngineUnavailable(f"the namespace {namespace} is being removed from the cluster")
    if not is_ours(found, namespace):
        raise EngineRejected(
            f"the cluster has a namespace {namespace} already, which was not made for a tenant of this platform, and "
            f"is not touched. Take another name; or hand it over: kubectl label namespace {namespace} "
            f"{TENANT}={namespace} {POD_SECURITY}={policy.pod_security}"
        )
    level = found["metadata"]["labels"].get(POD_SECURITY)
    if level != policy.pod_security:
        _log.warning(
            "the namespace %s enforces Pod Security %s, not %s: kubectl label namespace %s %s=%s --overwrite",
            *(namespace, level, policy.pod_security),
            *(namespace, POD_SECURITY, policy.pod_security),
        )


def _named(error: Refused, manifest: Mapping[str, Any], namespace: str) -> Exception:
    what = f"{manifest['kind']} {manifest['metadata']['name']} of the namespace {namespace}"
    if isinstance(error, NotFound):
        return EngineUnavailable(f"{what}: the namespace went meanwhile")
    return EngineRejected(f"the cluster refuses {what}: {error}")
