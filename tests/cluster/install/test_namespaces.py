"""The installed server adopts namespaces where its rule says so, and gives itself the right to run jobs there."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import httpx
import pytest
from cluster.operators import Kubectl
from tests import patient
from tests.cluster.api import LINGER, PATIENCE, Api, Space
from tests.cluster.install.conftest import ADOPTED, Installed
from tests.server.serving import bearer

from astrago_trainer.client import TrainerClient
from astrago_trainer.install.manifests import NAMESPACE

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"


@pytest.fixture
def adoptable(kubectl: Kubectl) -> Iterator[str]:
    name = f"{ADOPTED}{uuid.uuid4().hex[:8]}"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def boss(installed: Installed) -> dict[str, str]:
    command = ("exec", "deployment/astrago", "--", "cat", "/data/admin-token")
    return bearer(installed.kubectl("-n", NAMESPACE, *command).strip())


def a_body(namespace: str) -> dict[str, object]:
    return {
        "user_id": "user123",
        "namespace": namespace,
        "framework": "pytorch",
        "training_code": LINGER + "print('adopted')",
        "config": {
            "num_nodes": 1,
            "gpu_per_node": 0,
            "cpu_per_node": 1,
            "memory_per_node": "256Mi",
        },
    }


def create(installed: Installed, namespace: str, headers: dict[str, str]) -> httpx.Response:
    return patient.post(
        f"{installed.address}/api/trainjob/create",
        json=a_body(namespace),
        headers=headers,
        timeout=PATIENCE,
    )


@pytest.mark.req("M5", "M21", "M33")
def test_a_namespace_of_the_rule_gets_the_servers_rights_and_nothing_else(
    installed: Installed, boss: dict[str, str], adoptable: str, api: Api
):
    made = create(installed, adoptable, boss)
    assert made.status_code == 200, made.text
    space = Space(api, adoptable)
    bound = {each["roleRef"]["name"]: each["subjects"] for each in space.list("rolebindings")}
    server = [{"kind": "ServiceAccount", "name": "astrago", "namespace": NAMESPACE}]
    assert bound == {"trainjob-backend-role": server, "astrago-job-runtimes": server}
    for kind in ("networkpolicies", "resourcequotas", "limitranges"):
        assert space.list(kind) == []
    token = boss["authorization"].removeprefix("Bearer ")
    client = TrainerClient(installed.address, token=token, namespace=adoptable)
    name = made.json()["trainjob_name"]
    assert client.wait(name, timeout_seconds=PATIENCE).has_succeeded
    assert "adopted" in {line.text for line in client.logs(name)}
    client.delete(name)
    space.until_gone("trainjobs")


def test_another_namespace_is_refused_with_the_setting_that_names_it(
    installed: Installed, boss: dict[str, str], namespace: str, api: Api
):
    refused = create(installed, namespace, boss)
    assert refused.status_code == 409
    assert "exists in the cluster but is not adopted" in refused.json()["detail"]
    assert f"ASTRAGO_NAMESPACES='{ADOPTED}*,{namespace}'" in refused.json()["detail"]
    assert Space(api, namespace).list("rolebindings") == []


def test_the_policy_lets_the_servers_account_bind_only_there_and_only_itself(
    as_server: httpx.Client, adoptable: str, namespace: str
):
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole"}
    mine = {"kind": "ServiceAccount", "name": "astrago", "namespace": NAMESPACE}

    def bind(place: str, subject: dict[str, str]) -> httpx.Response:
        manifest = {
            "metadata": {"name": "trainjob-backend-role"},
            "roleRef": {**role, "name": "trainjob-backend-role"},
            "subjects": [subject],
        }
        return as_server.post(BINDINGS.format(place), json=manifest)

    assert bind(namespace, mine).status_code == 422
    assert bind("kube-system", mine).status_code == 422
    assert bind(adoptable, {**mine, "name": "default"}).status_code == 422
    policy = {"metadata": {"name": "open"}, "spec": {"podSelector": {}}}
    assert as_server.post(POLICIES.format(adoptable), json=policy).status_code == 422
    assert bind(adoptable, mine).status_code == 201
