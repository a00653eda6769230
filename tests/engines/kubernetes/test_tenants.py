"""What a tenant's namespace holds."""

from __future__ import annotations

import pytest

from astrago_trainer.engines.kubernetes.tenants import (
    TenantPolicy,
    namespace_manifest,
    tenant_manifests,
)

SERVER = "system:serviceaccount:astrago-system:astrago"


PLAIN = TenantPolicy()


def by_kind(policy: TenantPolicy = PLAIN, server: str = SERVER):
    return {
        (each["kind"], each["metadata"]["name"]): each for each in tenant_manifests(policy, server)
    }


def test_the_namespace_says_whose_it_is_and_what_it_enforces():
    found = namespace_manifest("user-123", TenantPolicy(pod_security="restricted"))
    assert found["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "astrago-trainer",
        "trainer.astrago.io/tenant": "user-123",
        "pod-security.kubernetes.io/enforce": "restricted",
    }


@pytest.mark.parametrize(
    ("server", "subject"),
    [
        (SERVER, {"kind": "ServiceAccount", "namespace": "astrago-system", "name": "astrago"}),
        ("ann", {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}),
    ],
)
def test_the_server_is_given_its_role_there(server, subject):
    binding = by_kind(server=server)["RoleBinding", "trainjob-backend-role"]
    assert binding["subjects"] == [subject]
    assert binding["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "ClusterRole",
        "name": "trainjob-backend-role",
    }


def test_a_ceiling_is_only_there_where_it_was_set():
    assert not {"ResourceQuota", "LimitRange"} & {kind for kind, _ in by_kind()}
    limits = ({"type": "Container", "default": {"cpu": "1"}},)
    found = by_kind(TenantPolicy(quota={"requests.cpu": "8"}, limits=limits))
    assert found["ResourceQuota", "astrago"]["spec"] == {"hard": {"requests.cpu": "8"}}
    assert found["LimitRange", "astrago"]["spec"] == {"limits": list(limits)}


def test_pods_reach_each_other_and_dns_and_what_was_allowed():
    policy = TenantPolicy(networks=("10.1.0.0/16",), has_internet=False)
    spec = by_kind(policy)["NetworkPolicy", "astrago"]["spec"]
    within = [{"podSelector": {}}]
    assert (spec["podSelector"], spec["policyTypes"]) == ({}, ["Ingress", "Egress"])
    assert spec["ingress"] == [{"from": within}]
    own, dns, outside = spec["egress"]
    assert own == {"to": within}
    assert {each["port"] for each in dns["ports"]} == {53}
    assert outside == {"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}


def test_the_internet_is_without_private_addresses_and_credentials_of_nodes():
    *_, outside = by_kind()["NetworkPolicy", "astrago"]["spec"]["egress"]
    (block,) = [each["ipBlock"] for each in outside["to"]]
    assert block["cidr"] == "0.0.0.0/0"
    assert {"10.0.0.0/8", "169.254.0.0/16"} <= set(block["except"])
