"""The kubernetes engine of a server: which cluster, which release of the Trainer, what tenants get there.

The file of ASTRAGO_TENANTS, all of it optional:

{"pod_security": "restricted",
 "quota": {"requests.cpu": "64", "requests.memory": "256Gi", "requests.nvidia.com/gpu": "8"},
 "limits": [{"type": "Container", "default": {"cpu": "4", "memory": "16Gi"}}],
 "networks": ["10.1.0.0/16"], "has_internet": true}
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.platform import Platform
from astrago_trainer.engines.base import EngineError
from astrago_trainer.engines.kubernetes.client import Client
from astrago_trainer.engines.kubernetes.credentials import Access, find_access
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine
from astrago_trainer.engines.kubernetes.namespaces import may_i, who_am_i
from astrago_trainer.engines.kubernetes.tenants import PodSecurity, TenantPolicy
from astrago_trainer.server.context import OwnRights
from astrago_trainer.server.settings import BadSettings, ServerSettings


class Tenants(BaseModel):
    """The file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pod_security: PodSecurity = "baseline"
    quota: dict[str, str] = {}
    limits: tuple[dict[str, Any], ...] = ()
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()
    has_internet: bool = True

    def policy(self) -> TenantPolicy:
        return TenantPolicy(
            pod_security=self.pod_security,
            quota=self.quota,
            limits=self.limits,
            networks=tuple(map(str, self.networks)),
            has_internet=self.has_internet,
        )


@asynccontextmanager
async def opened_cluster(
    settings: ServerSettings,
) -> AsyncIterator[tuple[KubernetesEngine, Platform, OwnRights | None]]:
    """The engine, the platform in the dialect of its Trainer, and whose rights are used without authentication.

    Raises BadSettings when there is no such cluster, or it must not be used like this.
    """
    policy = read_tenants(settings.tenants).policy()
    try:
        access = find_access(context=settings.kube_context or None)
    except EngineError as error:
        raise BadSettings(f"ASTRAGO_ENGINE=kubernetes: {error}.") from error
    rights, namespaces = None, None
    if not settings.has_auth:
        rights, namespaces = await _own_rights(settings, access)
        policy = replace(policy, roles=())  # a person's rights are given by others
    engine = KubernetesEngine(
        settings.data,
        access=access,
        namespaces=namespaces,
        tenants=policy,
        log_limits=settings.log_limits,
    )
    try:
        platform = default_platform(await _release(settings, engine))  # type: ignore[arg-type]
        yield engine, platform, rights
    finally:
        await engine.close()


async def _own_rights(
    settings: ServerSettings, access: Access
) -> tuple[OwnRights, list[str] | None]:
    """Whose rights are used, and the namespaces that can be watched with them; None for all."""
    if access.is_in_cluster:
        raise BadSettings(
            "inside a cluster the server has the rights of its own account in all tenants' namespaces: without "
            "authentication every program that reaches it would have them. Set ASTRAGO_AUTH=tokens."
        )
    client = Client(access)
    try:
        user = await who_am_i(client)
        is_everywhere = await may_i(
            client, "list", "trainer.kubeflow.org", "trainjobs"
        ) and await may_i(client, "list", "", "pods")
    except EngineError as error:
        raise BadSettings(f"ASTRAGO_ENGINE=kubernetes: {error}.") from error
    finally:
        await client.close()
    rights = OwnRights(user, access.context, access.namespace or "default")
    if is_everywhere:
        return rights, None
    named = [each for each in settings.namespace_rule.patterns if "*" not in each]
    watched = named or [access.namespace] * bool(access.namespace)
    if not watched:
        raise BadSettings(
            f"{user} may not list TrainJobs and pods of all namespaces. Name those that you use: "
            "ASTRAGO_NAMESPACES=team-a, "
            "or kubectl config set-context --current --namespace=team-a."
        )
    return rights, watched


async def _release(settings: ServerSettings, engine: KubernetesEngine) -> str:
    """What is stored of a job is in this dialect, so it is not guessed."""
    if settings.trainer != "auto":
        return settings.trainer
    try:
        return await engine.dialect()
    except EngineError as error:
        raise BadSettings(
            f"ASTRAGO_ENGINE=kubernetes: {error}. Name the release, ASTRAGO_TRAINER=2.1, to start while the cluster is "
            "away."
        ) from error


def read_tenants(path: Path | None) -> Tenants:
    """Raises BadSettings that names what is wrong."""
    if path is None:
        return Tenants()
    try:
        return Tenants.model_validate_json(path.read_bytes())
    except OSError as error:
        raise BadSettings(f"ASTRAGO_TENANTS: {path}: {error.strerror}.") from error
    except ValidationError as error:
        where = "; ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5]
        )
        raise BadSettings(f"ASTRAGO_TENANTS: {path}: {where}.") from None
