"""A tenant and what the engine has to hold for it: first the engine's part, then the rows.

In this order a crash in between leaves a namespace without a tenant, which the next sign-up of the same name finds and
takes; the other way round there would be a tenant whose jobs cannot run.
"""

from __future__ import annotations

import asyncio
import logging

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import check_namespace, tenant_namespace
from astrago_trainer.engines.base import (
    Ability,
    Engine,
    EngineError,
    EngineRejected,
    EngineUnavailable,
    MakesNamespaces,
)
from astrago_trainer.service.access import Access
from astrago_trainer.service.errors import Conflict
from astrago_trainer.service.identity import Identity
from astrago_trainer.store.access import Tenant

_AGAIN_SECONDS = 30.0
_log = logging.getLogger(__name__)


class Tenancy:
    """Makes tenants."""

    def __init__(self, access: Access, engine: Engine) -> None:
        self._access = access
        self._engine = engine

    async def sign_up(self, actor: Identity, user: str, title: str = "") -> Identity:
        """See `Access.sign_up`; raises Conflict as well for a namespace that the engine does not give out."""
        namespace = tenant_namespace(user)
        self._access.check_free(namespace, user)
        await self._prepare(namespace)
        return await self._access.sign_up(actor, user, title)

    async def create_tenant(self, actor: Identity, namespace: str, title: str = "") -> Tenant:
        if problems := check_namespace(namespace):
            raise InvalidRequest(problems)
        self._access.check_free(namespace)
        await self._prepare(namespace)
        return await self._access.create_tenant(actor, namespace, title)

    async def prepare_all(self) -> None:
        """Once after the start: what the administrator has changed since reaches every tenant."""
        left = [each.namespace for each in self._access.tenants()]
        while left and Ability.NAMESPACES in self._engine.abilities:
            left = [each for each in left if not await self._is_prepared(each)]
            if left:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _is_prepared(self, namespace: str) -> bool:
        """Whether it is, or will never be: then the log says so, and so does every job in it."""
        try:
            await self._prepare(namespace)
        except EngineUnavailable as error:
            _log.warning("the namespace %s is not up to date yet: %s", namespace, error)
            return False
        except (Conflict, EngineError) as error:
            _log.error("the tenant %s cannot run jobs: %s", namespace, error)
        return True

    async def _prepare(self, namespace: str) -> None:
        engine = self._engine
        if Ability.NAMESPACES not in engine.abilities or not isinstance(engine, MakesNamespaces):
            return
        try:
            await engine.make_namespace(namespace)
        except EngineRejected as error:
            raise Conflict(f"{error}.") from error
