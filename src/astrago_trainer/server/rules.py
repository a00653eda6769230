"""Who may call what: every route has its rule here, and a route without one is refused.

A namespace that is not the caller's looks like one that does not exist, down to the words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from astrago_trainer.server.page import METHODS as PAGE_METHODS
from astrago_trainer.server.page import PATHS as PAGE_PATHS
from astrago_trainer.server.problems import forbidden, unauthenticated
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Identity, Role

ALL_NAMESPACES = "-"
"""In a path: all of them; no namespace can be called so."""


class Where(StrEnum):
    """What a role is asked for."""

    ANYBODY = "anybody"
    """No token is looked at."""
    SIGNED_IN = "signed in"
    """Anybody who is somebody; the handler shows or changes only what is theirs."""
    NAMESPACE = "namespace"
    """The role, in the namespace of the path."""
    REQUEST = "request"
    """The role, in the namespace that the query or body names: the handler calls `enter`."""
    INSTALLATION = "installation"
    """An administrator of the whole installation."""


@dataclass(frozen=True, slots=True)
class Rule:
    where: Where
    role: Role = Role.VIEWER
    takes_all: bool = False
    """`-` may stand for all namespaces, for administrators of the installation."""
    takes_job: bool = False
    """The running job itself may, for itself."""
    takes_backend: bool = True
    """A backend may; what a backend is and may do is decided by people."""


_ANYBODY = Rule(Where.ANYBODY)
_SIGNED_IN = Rule(Where.SIGNED_IN)
_PERSON = Rule(Where.SIGNED_IN, takes_backend=False)
_READ = Rule(Where.NAMESPACE, Role.VIEWER)
_READ_ALL = Rule(Where.NAMESPACE, Role.VIEWER, takes_all=True)
_CHANGE = Rule(Where.NAMESPACE, Role.MEMBER)
_GOVERN = Rule(Where.NAMESPACE, Role.ADMINISTRATOR)
_ADMIN = Rule(Where.INSTALLATION)

JOBS = "/api/v1/namespaces/{namespace}/jobs"
JOB = JOBS + "/{name}"
MEMBERS = "/api/v1/tenants/{namespace}/members"
INVITATIONS = "/api/v1/tenants/{namespace}/invitations"
BACKEND = "/api/v1/backends/{user}"
STATUS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{name}/status"

RULES: Mapping[tuple[str, str], Rule] = MappingProxyType(
    {
        ("GET", "/healthz"): _ANYBODY,
        ("GET", "/readyz"): _ANYBODY,
        ("GET", "/metrics"): _ANYBODY,
        ("GET", "/openapi.json"): _ANYBODY,
        # The page holds nothing of anybody.
        **{(method, path): _ANYBODY for path in PAGE_PATHS for method in PAGE_METHODS},
        ("POST", "/api/trainjob/create"): Rule(Where.REQUEST, Role.MEMBER),
        ("GET", "/api/trainjob/{trainjob_name}/status"): Rule(Where.REQUEST, Role.VIEWER),
        ("GET", "/api/trainjob/{trainjob_name}/logs"): Rule(Where.REQUEST, Role.VIEWER),
        ("DELETE", "/api/trainjob/{trainjob_name}"): Rule(Where.REQUEST, Role.MEMBER),
        ("POST", JOBS): _CHANGE,
        ("GET", JOBS): _READ_ALL,
        ("POST", JOBS + ":preview"): _CHANGE,
        ("POST", JOBS + ":retell"): _CHANGE,
        ("GET", JOB): _READ,
        ("DELETE", JOB): _CHANGE,
        ("POST", JOB + ":suspend"): _CHANGE,
        ("POST", JOB + ":resume"): _CHANGE,
        ("POST", JOB + ":restart"): _CHANGE,
        ("POST", JOB + ":clone"): _CHANGE,
        ("GET", JOB + "/logs"): _READ,
        ("GET", JOB + "/logs/lines"): _READ,
        ("GET", JOB + "/logs/hits"): _READ,
        ("GET", JOB + "/events"): _READ,
        ("GET", JOB + "/metrics"): _READ,
        ("GET", JOB + "/pods"): _READ,
        ("GET", JOB + "/explain"): _READ,
        ("GET", JOB + "/checkpoints"): _READ,
        ("GET", JOB + "/manifest"): _READ,
        ("GET", "/api/v1/namespaces/{namespace}/stream"): _READ_ALL,
        ("GET", "/api/v1/namespaces/{namespace}/images"): _READ,
        ("GET", "/api/v1/namespaces/{namespace}/quota"): _READ,
        ("POST", STATUS): Rule(Where.NAMESPACE, Role.MEMBER, takes_job=True),
        ("GET", "/api/v1/runtimes"): _SIGNED_IN,
        ("GET", "/api/v1/runtimes/{name}"): _SIGNED_IN,
        ("GET", "/api/v1/nodes"): _SIGNED_IN,
        ("GET", "/api/v1/offers"): _SIGNED_IN,
        ("GET", "/api/v1/whoami"): _SIGNED_IN,
        ("GET", "/api/v1/sign-in"): _ANYBODY,
        # Whether somebody may sign up is a setting, and who comes in that way is nobody yet.
        ("POST", "/api/v1/signup"): _ANYBODY,
        ("GET", "/api/v1/tokens"): _PERSON,
        ("POST", "/api/v1/tokens"): _PERSON,
        ("DELETE", "/api/v1/tokens/{id}"): _PERSON,
        ("GET", "/api/v1/tenants"): _SIGNED_IN,
        ("POST", "/api/v1/tenants"): _ADMIN,
        ("GET", MEMBERS): _GOVERN,
        ("PUT", MEMBERS + "/{user}"): _GOVERN,
        ("DELETE", MEMBERS + "/{user}"): _GOVERN,
        ("GET", INVITATIONS): _GOVERN,
        ("POST", INVITATIONS): _GOVERN,
        ("DELETE", INVITATIONS + "/{user}"): _GOVERN,
        ("POST", "/api/v1/tenants/{namespace}:leave"): Rule(
            Where.NAMESPACE, Role.VIEWER, takes_backend=False
        ),
        # Of the caller; the tenant is not theirs yet.
        ("GET", "/api/v1/invitations"): _PERSON,
        ("POST", "/api/v1/invitations/{tenant}:accept"): _PERSON,
        ("POST", "/api/v1/invitations/{tenant}:decline"): _PERSON,
        ("GET", "/api/v1/users"): _ADMIN,
        ("POST", "/api/v1/users"): _ADMIN,
        ("POST", "/api/v1/users/{user}:disable"): _ADMIN,
        ("POST", "/api/v1/users/{user}:enable"): _ADMIN,
        ("DELETE", "/api/v1/users/{user}"): _ADMIN,
        ("DELETE", "/api/v1/users/{user}/tokens"): _PERSON,
        ("PUT", BACKEND): _ADMIN,
        ("DELETE", BACKEND): _ADMIN,
        # Of one namespace for its administrators, of everything for those of the installation.
        ("GET", "/api/v1/audit"): Rule(Where.REQUEST, Role.ADMINISTRATOR),
    }
)


def check(rule: Rule, identity: Identity | None, namespace: str | None, job: str | None) -> None:
    """Raises what the caller is told: 401, 403, or the 404 of something that does not exist."""
    if rule.where is Where.ANYBODY:
        return
    if identity is None:
        raise unauthenticated("this needs a token: Authorization: Bearer …")
    if identity.job is not None:
        if rule.takes_job and identity.job == (namespace, job):
            return
        raise forbidden("this token is a running job's: it reports the progress of that job alone.")
    if identity.backend and not rule.takes_backend:
        raise forbidden("this is a backend's token: an administrator manages tokens for it.")
    if rule.where is Where.INSTALLATION and not identity.is_administrator:
        raise forbidden("this is for administrators of the installation.")
    if rule.where is Where.NAMESPACE:
        assert namespace is not None
        if namespace == ALL_NAMESPACES and not rule.takes_all:
            raise no_such(namespace, job)
        enter(rule.role, identity, namespace, job)


def enter(role: Role, identity: Identity, namespace: str, job: str | None = None) -> None:
    """The same for a namespace that only the handler knows."""
    if identity.may(role, namespace):
        return
    if (held := identity.role_in(namespace)) is not None:
        raise forbidden(
            f"this needs the role {role.value} in the namespace {namespace!r}; "
            f"{identity.name!r} is {held.value} there."
        )
    raise no_such(namespace, job)


def no_such(namespace: str, job: str | None) -> NotFound:
    """For what is not there, and for what is not the caller's."""
    if job is None:
        return NotFound(f"there is no namespace {namespace!r}.")
    return NotFound(f"there is no job {job!r} in the namespace {namespace!r}.")
