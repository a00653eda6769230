"""Whether jobs may run in a namespace: it is a tenant's, or it becomes one now."""

from __future__ import annotations

from astrago_trainer.engines.base import Ability
from astrago_trainer.server.context import Context
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Identity


async def admit(shared: Context, actor: Identity, namespace: str) -> None:
    """Raises NotFound or Conflict with the command that helps; the caller may use the namespace (`rules.enter`).

    A namespace that the cluster has becomes a tenant where the rule of the settings allows it. On one machine without
    authentication every name is a namespace.
    """
    service, settings = shared.service, shared.settings
    if service.access.has_tenant(namespace):
        return
    if not settings.has_auth and settings.engine != "kubernetes":
        return
    if Ability.NAMESPACES in service.engine.abilities:
        await service.tenancy.adopt(
            actor, namespace, settings.namespace_rule, is_personal=not settings.has_auth
        )
        return
    raise NotFound(
        f"there is no namespace {namespace!r}. Make it: astrago tenants create {namespace}"
    )
