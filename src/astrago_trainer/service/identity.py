"""Who acts. Plain data: it is made by whoever verified it, and says nothing about how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from astrago_trainer.core.namespace_rules import is_named


class Role(StrEnum):
    """What somebody may do in a tenant; each may do all that the ones before it may."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMINISTRATOR = "administrator"


RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody, or a part of this program."""

    name: str
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By namespace."""
    is_administrator: bool = False
    """Of the whole installation."""
    backend: tuple[str, ...] = ()
    """Names and patterns of the namespaces in which this one acts for others; empty: for itself alone."""
    job: tuple[str, str] | None = None
    """Namespace and name of the running job that this is: it may report its progress, and nothing else."""
    token: str = ""
    """Id of the token of ours that this one came with."""
    verified: tuple[str, str] | None = None
    """Issuer and subject of somebody whom an issuer has named and who is no user here yet."""
    request_id: str = ""
    """Of the request that this one came with; the audit has it."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(self.roles)

    def may(self, role: Role, namespace: str) -> bool:
        """Whether this one has at least that role there."""
        if self.is_administrator:
            return True
        held = self.role_in(namespace)
        return held is not None and RANK[held] >= RANK[role]

    def role_in(self, namespace: str) -> Role | None:
        """The role in this namespace; None where it looks as if it did not exist."""
        held = self.roles.get(namespace)
        if held is None and self.backend and is_named(namespace, self.backend):
            return Role.MEMBER
        return held

    def acts_for_others_in(self, namespace: str) -> bool:
        """Whether this one may submit jobs there whose owner is somebody else."""
        return self.is_administrator or is_named(namespace, self.backend)


SYSTEM = Identity("astrago")
"""What this program does by itself."""
