"""Makes a tenant's namespace and what is in it; every step may be the last before a crash, and the next call goes on.

Done with few rights: namespaces are made and never changed, so that a server in wrong hands loosens none of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from astrago_trainer.engines.base import EngineRejected, EngineUnavailable, FoundNamespace
from astrago_trainer.engines.kubernetes.client import (
    AlreadyExists,
    Client,
    Forbidden,
    NotFound,
    Refused,
)
from astrago_trainer.engines.kubernetes.resources import ACCOUNTS, NAMESPACES, TENANT
from astrago_trainer.engines.kubernetes.tenants import (
    DEFAULT_ACCOUNT,
    POD_SECURITY,
    TenantPolicy,
    binding_commands,
    binding_manifests,
    is_ours,
    namespace_manifest,
    tenant_manifests,
)

_WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_MAY_I = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_TRAINER = "trainer.kubeflow.org"
_RUNS_JOBS = (("create", _TRAINER, "trainjobs"), ("create", "", "configmaps"), ("get", "", "pods"))
"""What running a job needs at least: verb, group, resource."""
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


async def find_namespace(client: Client, namespace: str) -> FoundNamespace | None:
    """One that the cluster has. Who may not read namespaces, but may run jobs in this one, has found it."""
    try:
        found = await client.find(NAMESPACES, "", namespace)
    except Forbidden:
        if await may_run_jobs(client, namespace):
            return FoundNamespace({})
        raise
    if found is None:
        return None
    metadata = found["metadata"]
    return FoundNamespace(
        metadata.get("labels") or {},
        is_tenants=is_ours(found, namespace),
        is_leaving=bool(metadata.get("deletionTimestamp")),
    )


async def adopt_namespace(client: Client, namespace: str, policy: TenantPolicy) -> None:
    """The right to run jobs in it, where that is missing; everything else in it is its owner's."""
    if await may_run_jobs(client, namespace):
        return
    server = await who_am_i(client)
    if not policy.roles:
        ways = " && ".join(binding_commands(TenantPolicy(), server, namespace))
        raise EngineRejected(
            f"{server} may not run jobs in the namespace {namespace!r} (create TrainJobs and ConfigMaps, get pods). "
            f"A cluster administrator allows it: {ways}"
        )
    for each in binding_manifests(policy, server):
        try:
            await client.apply(each, namespace)
        except (Refused, Forbidden) as error:
            hand_over = f"kubectl label namespace {namespace} {TENANT}={namespace}"
            by_rule = f"astrago install --apply --set ASTRAGO_NAMESPACES={namespace}"
            by_hand = " && ".join(binding_commands(policy, server, namespace))
            ways = ", or ".join((hand_over, by_rule, by_hand))
            raise EngineRejected(
                f"namespace {namespace!r} exists in the cluster but is not adopted: {server} may not run jobs in it, "
                f"and may not give itself the right ({error}). A cluster administrator changes that: {ways}"
            ) from error


async def may_run_jobs(client: Client, namespace: str) -> bool:
    answers = await asyncio.gather(
        *(may_i(client, verb, group, resource, namespace) for verb, group, resource in _RUNS_JOBS)
    )
    return all(answers)


async def may_i(client: Client, verb: str, group: str, resource: str, namespace: str = "") -> bool:
    """Whether the cluster would let us; in all namespaces unless one is named."""
    wanted = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    question = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": wanted},
    }
    found = await client.review(_MAY_I, question)
    return bool(found["status"]["allowed"])


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
