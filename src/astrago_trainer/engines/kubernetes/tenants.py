"""What a tenant's namespace holds from the first day on. Pure: a policy to manifests.

Whatever a tenant's pods do stays inside: they get no account of the cluster, a ceiling where the administrator wants
one, and a network that ends at the namespace, at DNS and at what was allowed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from astrago_trainer.core.render.configmaps import MANAGED_BY
from astrago_trainer.engines.kubernetes.resources import TENANT

Json = dict[str, Any]
PodSecurity = Literal["baseline", "restricted"]

POD_SECURITY = "pod-security.kubernetes.io/enforce"
NAME = "astrago"
"""Of what is one of its kind in the namespace."""
PRIVATE = (
    "10.0.0.0/8",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
)
"""Nodes, other tenants' pods, services, and the addresses at which clouds hand out a node's credentials."""
_LOCAL_DNS = "169.254.20.10/32"
"""Where NodeLocal DNSCache listens, which is no pod."""
_ACCOUNT = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class TenantPolicy:
    """What an administrator decides for all tenants."""

    pod_security: PodSecurity = "baseline"
    """The Pod Security standard that is enforced."""
    quota: Mapping[str, str] = field(default_factory=dict)
    """`spec.hard` of a ResourceQuota; empty for none."""
    limits: tuple[Mapping[str, Any], ...] = ()
    """`spec.limits` of a LimitRange; empty for none."""
    networks: tuple[str, ...] = ()
    """Private networks that pods may reach as well: storage, a registry, this server."""
    has_internet: bool = True
    """Whether pods reach public addresses: data sets, packages, git."""
    roles: tuple[str, ...] = ("trainjob-backend-role", "astrago-job-runtimes")
    """ClusterRoles that this server is given in the namespace, and nowhere else; none: it works with other rights."""


def namespace_manifest(namespace: str, policy: TenantPolicy) -> Json:
    labels = {**MANAGED_BY, TENANT: namespace, POD_SECURITY: policy.pod_security}
    return _object("v1", "Namespace", namespace, labels=labels)


DEFAULT_ACCOUNT: Json = {"automountServiceAccountToken": False}
"""Pods that name no account have `default`: it opens nothing, so its token is not handed out either."""


def tenant_manifests(policy: TenantPolicy, server: str) -> list[Json]:
    """All that is made inside, in this order; `server` is who this server is to the cluster."""
    found = [*binding_manifests(policy, server), _network(policy)]
    if policy.quota:
        found.append(_object("v1", "ResourceQuota", NAME, spec={"hard": dict(policy.quota)}))
    if policy.limits:
        limits = [dict(each) for each in policy.limits]
        found.append(_object("v1", "LimitRange", NAME, spec={"limits": limits}))
    return found


def binding_manifests(policy: TenantPolicy, server: str) -> list[Json]:
    """The server's rights in the namespace."""
    return [_binding(role, server) for role in policy.roles]


def binding_commands(policy: TenantPolicy, server: str, namespace: str) -> list[str]:
    """The same for a person to type."""
    subject = _subject(server)
    who = (
        f"--serviceaccount={subject['namespace']}:{subject['name']}"
        if subject["kind"] == "ServiceAccount"
        else f"--user={server}"
    )
    return [
        f"kubectl -n {namespace} create rolebinding {role} --clusterrole={role} {who}"
        for role in policy.roles
    ]


def is_ours(found: Mapping[str, Any], namespace: str) -> bool:
    labels = found["metadata"].get("labels") or {}
    return bool(labels.get(TENANT) == namespace)


def _binding(role: str, server: str) -> Json:
    return _object(
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        role,
        roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        subjects=[_subject(server)],
    )


def _subject(user: str) -> Json:
    if user.startswith(_ACCOUNT):
        namespace, _, name = user.removeprefix(_ACCOUNT).partition(":")
        return {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}


def _network(policy: TenantPolicy) -> Json:
    within: Json = {"podSelector": {}}
    dns = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}
    ports = [{"port": 53, "protocol": each} for each in ("UDP", "TCP")]
    to: list[Json] = [{"ipBlock": {"cidr": each}} for each in policy.networks]
    if policy.has_internet:
        to.append({"ipBlock": {"cidr": "0.0.0.0/0", "except": list(PRIVATE)}})
    spec: Json = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [within]}],
        "egress": [
            {"to": [within]},
            {"to": [dns, {"ipBlock": {"cidr": _LOCAL_DNS}}], "ports": ports},
            *([{"to": to}] if to else []),
        ],
    }
    return _object("networking.k8s.io/v1", "NetworkPolicy", NAME, spec=spec)


def _object(
    version: str, kind: str, name: str, *, labels: Mapping[str, str] = MANAGED_BY, **rest: Any
) -> Json:
    metadata = {"name": name, "labels": dict(labels)}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
