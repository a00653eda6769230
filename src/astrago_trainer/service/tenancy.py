"""A tenant and what the engine has to hold for it: first the engine's part, then the rows.

In this order a crash in between leaves a namespace without a tenant, which the next sign-up of the same name finds and
takes; the other way round there would be a tenant whose jobs cannot run.
"""

from __future__ import annotations

import asyncio
import logging

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import check_namespace, tenant_namespace
from astrago_trainer.core.namespace_rules import NamespaceRule, is_reserved
from astrago_trainer.engines.base import (
    Ability,
    Engine,
    EngineError,
    EngineRejected,
    EngineUnavailable,
    MakesNamespaces,
)
from astrago_trainer.service.access import Access
from astrago_trainer.service.errors import Conflict, NotFound
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

    async def adopt(
        self, actor: Identity, namespace: str, rule: NamespaceRule, *, is_personal: bool = False
    ) -> None:
        """A namespace that the engine has becomes a tenant; nothing in it changes but the server's own rights.

        One that was handed over to this platform gets all that a tenant gets, unless the server is `is_personal`:
        it works with a person's rights, and the namespace may be a tenant's of another server.
        Raises NotFound for one that is not there, Conflict for one that the rule does not allow; both with the
        commands that change it.
        """
        engine = self._engine
        assert isinstance(engine, MakesNamespaces)
        if problems := check_namespace(namespace):
            raise InvalidRequest(problems)
        try:
            found = await engine.find_namespace(namespace)
            if found is None:
                raise NotFound(
                    f"there is no namespace {namespace!r} in the cluster. Make it: kubectl create namespace "
                    f"{namespace}, or astrago tenants create {namespace}"
                )
            if found.is_leaving:
                raise Conflict(f"the namespace {namespace!r} is being removed from the cluster.")
            is_adopted = is_personal or not found.is_tenants
            if not is_adopted:
                await engine.make_namespace(namespace)
            elif found.is_tenants or rule.allows(namespace, found.labels):
                await engine.adopt_namespace(namespace)
            else:
                raise Conflict(_not_adopted(namespace, rule))
        except EngineRejected as error:
            raise Conflict(f"{error}.") from error
        try:
            await self._access.create_tenant(actor, namespace, is_adopted=is_adopted)
        except Conflict:  # two requests came at once
            await self._access.load()
            if not self._access.has_tenant(namespace):
                raise

    async def prepare_all(self) -> None:
        """Once after the start: what the administrator has changed since reaches every tenant."""
        left = self._access.tenants()
        while left and Ability.NAMESPACES in self._engine.abilities:
            left = [each for each in left if not await self._is_prepared(each)]
            if left:
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _is_prepared(self, tenant: Tenant) -> bool:
        """Whether it is, or will never be: then the log says so, and so does every job in it."""
        namespace = tenant.namespace
        try:
            await self._prepare(namespace, is_adopted=tenant.is_adopted)
        except EngineUnavailable as error:
            _log.warning("the namespace %s is not up to date yet: %s", namespace, error)
            return False
        except (Conflict, EngineError) as error:
            _log.error("the tenant %s cannot run jobs: %s", namespace, error)
        return True

    async def _prepare(self, namespace: str, *, is_adopted: bool = False) -> None:
        engine = self._engine
        if Ability.NAMESPACES not in engine.abilities or not isinstance(engine, MakesNamespaces):
            return
        try:
            if is_adopted:
                await engine.adopt_namespace(namespace)
            else:
                await engine.make_namespace(namespace)
        except EngineRejected as error:
            raise Conflict(f"{error}.") from error


def _not_adopted(namespace: str, rule: NamespaceRule) -> str:
    exists = f"namespace {namespace!r} exists in the cluster but is not adopted"
    if is_reserved(namespace):
        listed = ",".join((*rule.patterns, namespace) if rule.patterns else ("*", namespace))
        return f"{exists}: it is reserved. Start the server with ASTRAGO_NAMESPACES='{listed}' to use it."
    ways = [f"start the server with ASTRAGO_NAMESPACES='{','.join((*rule.patterns, namespace))}'"]
    if rule.selector:
        labels = " ".join(f"{each.key}={each.value or 'yes'}" for each in rule.selector)
        ways.insert(0, f"kubectl label namespace {namespace} {labels}")
    return f"{exists}: the rule of this server does not name it. To adopt it: {', or '.join(ways)}."
