"""What the server's account may do, and what it may not, as the API server itself answers."""

from __future__ import annotations

import httpx
import pytest
from tests.cluster.api import Api, Space
from tests.cluster.install.conftest import Tenant

from astrago_trainer.install.manifests import NAMESPACE

TENANT, ANY = "tenant", "anywhere"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

BACKEND = {
    ("", resource, verb)
    for resource in ("configmaps", "pods", "pods/log")
    for verb in ("create", "get", "list", "update", "patch", "delete")
} | {
    ("trainer.kubeflow.org", "trainjobs", verb)
    for verb in ("create", "get", "list", "update", "patch", "delete", "watch")
}
READ = {
    (group, resource, verb)
    for group, resources in {
        "": ("nodes", "pods", "events", "persistentvolumeclaims", "resourcequotas"),
        "batch": ("jobs",),
        "jobset.x-k8s.io": ("jobsets",),
        "trainer.kubeflow.org": ("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
    }.items()
    for resource in resources
    for verb in ("get", "list", "watch")
}
SIGN_UP = {
    (group, resource, verb)
    for group, resource in (
        ("", "resourcequotas"),
        ("", "limitranges"),
        ("networking.k8s.io", "networkpolicies"),
        ("rbac.authorization.k8s.io", "rolebindings"),
    )
    for verb in ("create", "get", "list", "patch")
} | {("", "namespaces", verb) for verb in ("create", "get", "list", "watch", "patch")}

NEVER = [
    *(("", "secrets", verb) for verb in ("get", "list", "watch", "create", "delete")),
    *(("", "pods/exec", verb) for verb in ("create", "get")),
    *(("", "pods/attach", verb) for verb in ("create", "get")),
    *(("", "pods/portforward", "create"), ("", "pods/ephemeralcontainers", "patch")),
    *(("", "serviceaccounts", verb) for verb in ("create", "patch", "delete", "impersonate")),
    *(("", "serviceaccounts/token", "create"), ("", "users", "impersonate")),
    *(("", "groups", "impersonate"), ("", "namespaces", "delete"), ("", "namespaces", "update")),
    *(("", "nodes", verb) for verb in ("create", "patch", "update", "delete")),
    *(("", "nodes/proxy", "get"), ("", "pods", "deletecollection")),
    *(("", "persistentvolumeclaims", verb) for verb in ("create", "delete", "patch")),
    *(("", "persistentvolumes", verb) for verb in ("get", "create", "delete")),
    *(("", "resourcequotas", "delete"), ("", "limitranges", "delete")),
    *(("apps", "deployments", verb) for verb in ("get", "create", "patch", "delete")),
    *(("apps", "daemonsets", "create"), ("batch", "jobs", "create"), ("batch", "jobs", "delete")),
    *(("jobset.x-k8s.io", "jobsets", verb) for verb in ("create", "patch", "delete")),
    *(("rbac.authorization.k8s.io", "rolebindings", verb) for verb in ("delete", "update")),
    *(
        ("rbac.authorization.k8s.io", resource, verb)
        for resource in ("roles", "clusterroles", "clusterrolebindings")
        for verb in ("create", "patch", "escalate", "delete", "bind")
    ),
    *(
        ("trainer.kubeflow.org", "clustertrainingruntimes", verb)
        for verb in ("create", "patch", "delete")
    ),
    *(("networking.k8s.io", "networkpolicies", "delete"),),
    *(
        ("admissionregistration.k8s.io", "validatingadmissionpolicies", verb)
        for verb in ("get", "patch", "delete")
    ),
]


def may(
    as_server: httpx.Client, right: tuple[str, str, str], namespace: str, name: str = ""
) -> bool:
    group, resource, verb = right
    resource, _, part = resource.partition("/")
    attributes = {
        "group": group,
        "resource": resource,
        "subresource": part,
        "verb": verb,
        "namespace": namespace,
        "name": name,
    }
    question = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    answer = as_server.post(REVIEWS, json=question)
    assert answer.status_code == 201, answer.text
    return bool(answer.json()["status"]["allowed"])


@pytest.mark.req("M33")
def test_in_a_tenants_namespace_it_has_the_role_of_the_mission(
    as_server: httpx.Client, tenant: Tenant
):
    refused = {right for right in BACKEND if not may(as_server, right, tenant.namespace)}
    assert refused == set()


@pytest.mark.req("M33", "X18")
def test_elsewhere_it_reads_jobs_and_nodes_and_makes_tenants(as_server: httpx.Client):
    """`default` is nobody's namespace, and `""` means all of them."""
    for namespace in ("default", NAMESPACE, ""):
        allowed = {right for right in BACKEND | READ | SIGN_UP if may(as_server, right, namespace)}
        assert allowed == READ | SIGN_UP


@pytest.mark.req("M33")
@pytest.mark.parametrize("right", NEVER, ids=lambda right: " ".join(filter(None, right)))
def test_it_never_may(as_server: httpx.Client, tenant: Tenant, right: tuple[str, str, str]):
    for namespace in (tenant.namespace, "default", ""):
        assert not may(as_server, right, namespace)


@pytest.mark.parametrize("role", ["trainjob-backend-role", "astrago-job-runtimes"])
def test_it_binds_two_roles_alone(as_server: httpx.Client, role: str):
    bind = ("rbac.authorization.k8s.io", "clusterroles", "bind")
    assert may(as_server, bind, "", role)
    assert not may(as_server, bind, "", "cluster-admin")
    assert not may(as_server, bind, "", "astrago-signup")


@pytest.mark.req("X17")
def test_a_new_tenants_account_hands_out_no_token(tenant_space: Space, api: Api):
    path = f"/api/v1/namespaces/{tenant_space.name}/serviceaccounts/default"
    assert api.ask("GET", path).body["automountServiceAccountToken"] is False
