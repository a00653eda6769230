"""The first API in namespaces that somebody made with kubectl: without tokens, as administrator, as a backend."""

from __future__ import annotations

import json

import pytest
from cluster.operators import Kubectl
from tests import patient
from tests.cluster.api import PATIENCE, Api, Space
from tests.cluster.install.conftest import a_kubeconfig
from tests.cluster.service.people import Person, a_server
from tests.cluster.service.test_first_api import create, flat
from tests.cluster.service.test_first_api import nested as of_full_cores

from astrago_trainer.install.manifests import shipped_objects

OPEN = {"ASTRAGO_AUTH": "off", "ASTRAGO_SIGNUP": "off"}
CREATE = "/api/trainjob/create"


def a_person(address: str, namespace: str, api: Api, token: str = "", user: str = "user123"):
    return Person(user, namespace, token, address, Space(api, namespace))


def nested(person: Person):
    """The same body, for a cluster that others use as well."""
    body = of_full_cores(person)
    return {**body, "config": {**body["config"], "cpu_per_node": "100m"}}


def lives(person: Person, body) -> None:
    """A job from its creation to its deletion, through the first API alone."""
    place = {"namespace": person.namespace}
    name = create(person, body)
    person.space.until_one("trainjobs", name)
    assert person.wait(name).has_succeeded, person.client.get(name)
    status = person.first("GET", f"{name}/status", **place)
    assert (status["state"], status["message"]) == ("Complete", "jobset completed successfully")
    logs = person.first("GET", f"{name}/logs", worker=1, **place)["logs"]
    assert "I am 1 of 2" in logs
    person.first("DELETE", name, **place)
    person.space.until_gone("trainjobs")


def is_untouched(api: Api, space: Space) -> None:
    """Running a job changed nothing in the namespace but the job."""
    labels = api.ask("GET", f"/api/v1/namespaces/{space.name}").body["metadata"]["labels"]
    assert labels == {"kubernetes.io/metadata.name": space.name}
    for kind in ("rolebindings", "networkpolicies", "resourcequotas", "limitranges"):
        assert space.list(kind) == []
    assert "automountServiceAccountToken" not in space.get("serviceaccounts", "default")


@pytest.mark.req("M4", "M21", "M22", "M23", "M25", "M26", "M51", "M54")
def test_without_tokens_both_bodies_run_in_a_namespace_made_by_kubectl(
    runtimes, namespace, api, tmp_path
):
    with a_server(tmp_path / "data", **OPEN) as server:
        assert server.process.stdout is not None
        said = server.process.stdout.readline()
        assert said.startswith("No token is needed: requests use the rights of ")
        assert "(context " in said
        person = a_person(server.address, namespace, api)
        lives(person, nested(person))
        lives(person, flat(person))
        is_untouched(api, person.space)

        absent = person.ask("POST", CREATE, {**nested(person), "namespace": "test-nowhere"})
        assert absent.status_code == 404
        assert "kubectl create namespace test-nowhere" in absent.json()["detail"]
        reserved = person.ask("POST", CREATE, {**nested(person), "namespace": "default"})
        assert reserved.status_code == 409
        assert "ASTRAGO_NAMESPACES='*,default'" in reserved.json()["detail"]
        never = person.ask("POST", CREATE, {**nested(person), "namespace": "kube-system"})
        assert never.status_code == 422
        stranger = patient.post(
            f"{server.address}{CREATE}",
            json=nested(person),
            headers={"origin": "http://evil.example"},
            timeout=PATIENCE,
        )
        assert stranger.status_code == 403


@pytest.mark.req("M3", "M21", "M22", "M26")
def test_an_administrator_and_a_backend_use_a_namespace_that_exists(
    runtimes, namespace, kubectl: Kubectl, api, tmp_path
):
    other = f"{namespace}-other"
    kubectl("create", "namespace", other)
    try:
        with a_server(tmp_path / "data", ASTRAGO_SIGNUP="off") as server:
            token = (tmp_path / "data" / "admin-token").read_text().strip()
            boss = a_person(server.address, namespace, api, token)
            portal = boss.ask("PUT", "/api/v1/backends/portal", {"namespaces": [other]})
            assert portal.status_code == 200, portal.text
            made = boss.ask("POST", "/api/v1/tokens", {"user": "portal"}).json()
            backend = a_person(server.address, other, api, made["secret"], user="kim")

            lives(boss, nested(boss))
            lives(backend, flat(backend))
            is_untouched(api, boss.space)
            is_untouched(api, backend.space)

            crossed = backend.ask("POST", CREATE, {**nested(backend), "namespace": namespace})
            assert (crossed.status_code, crossed.json()["detail"]) == (
                404,
                f"there is no namespace '{namespace}'.",
            )
            assert backend.ask("POST", "/api/v1/tokens", {}).status_code == 403
            rows = boss.ask("GET", f"/api/v1/audit?namespace={other}").json()["items"]
            found = {(each["action"], each["actor"], each["detail"]) for each in rows}
            assert {
                ("tenant.adopt", "portal", ""),
                ("job.submit", "portal", "for kim"),
                ("job.delete", "portal", "for kim"),
            } <= found
    finally:
        kubectl("delete", "namespace", other, "--wait=false")


@pytest.mark.req("M33")
def test_without_tokens_an_account_of_one_namespace_works_there_and_nowhere_else(
    runtimes, namespace, kubectl: Kubectl, api, tmp_path
):
    group = "rbac.authorization.k8s.io"
    (role,) = [
        each for each in shipped_objects() if each["metadata"]["name"] == "trainjob-backend-role"
    ]
    bound = [
        {"kind": "Role", "metadata": {"name": "trains"}, "rules": role["rules"]},
        {
            "kind": "RoleBinding",
            "metadata": {"name": "trains"},
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "trains"},
            "subjects": [{"kind": "ServiceAccount", "name": "kim", "namespace": namespace}],
        },
    ]
    kubectl("-n", namespace, "create", "serviceaccount", "kim")
    for each in bound:
        manifest = json.dumps({"apiVersion": f"{group}/v1", **each})
        kubectl("-n", namespace, "create", "-f", "-", stdin=manifest)
    token = kubectl("-n", namespace, "create", "token", "kim").strip()
    path = a_kubeconfig(tmp_path / "config", token)
    config = json.loads(path.read_text())
    config["contexts"][0]["context"]["namespace"] = namespace
    path.write_text(json.dumps(config))

    with a_server(tmp_path / "data", **OPEN, KUBECONFIG=str(path)) as server:
        assert server.process.stdout is not None
        assert f"system:serviceaccount:{namespace}:kim" in server.process.stdout.readline()
        person = a_person(server.address, namespace, api)
        assert person.ask("GET", "/api/v1/whoami").json()["default_namespace"] == namespace
        lives(person, nested(person))
        away = person.ask("POST", CREATE, {**nested(person), "namespace": "test-nowhere"})
        assert away.status_code == 409
        assert f"watches the namespaces {namespace} alone" in away.json()["detail"]
