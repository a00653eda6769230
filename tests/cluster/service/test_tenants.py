"""Tenants on one cluster: each has a namespace of its own with what it needs, and sees nothing of the other."""

from __future__ import annotations

import json
import time

import pytest
from tests import patient
from tests.cluster.api import PATIENCE
from tests.cluster.service.people import a_server
from tests.server.serving import bearer

POLICY = {
    "pod_security": "restricted",
    "quota": {"requests.cpu": "4", "count/trainjobs.trainer.kubeflow.org": "3"},
    "limits": [{"type": "Container", "defaultRequest": {"cpu": "10m", "memory": "16Mi"}}],
    "networks": ["10.9.0.0/16"],
}


@pytest.mark.req("M3", "M5", "X17")
def test_a_sign_up_makes_a_namespace_with_what_a_tenant_needs(ann, api):
    namespace = api.ask("GET", f"/api/v1/namespaces/{ann.namespace}").body
    assert ann.namespace == ann.user.replace("user", "user-")
    labels = namespace["metadata"]["labels"]
    assert labels["trainer.astrago.io/tenant"] == ann.namespace
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert ann.space.get("serviceaccounts", "default")["automountServiceAccountToken"] is False
    policy = ann.space.get("networkpolicies", "astrago")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    bound = {each["roleRef"]["name"] for each in ann.space.list("rolebindings")}
    assert bound == {"trainjob-backend-role", "astrago-job-runtimes"}


def test_what_the_administrator_wants_is_in_new_and_old_namespaces(
    newcomer, runtimes, tmp_path, kubectl
):
    data, file = tmp_path / "data", tmp_path / "tenants.json"
    with a_server(data) as server:
        ann = newcomer(server.address)
        assert ann.space.list("resourcequotas") == []
    file.write_text(json.dumps(POLICY))
    with a_server(data, ASTRAGO_TENANTS=str(file)) as server:
        ann.space.until_one("limitranges", "astrago")
        bob = newcomer(server.address)
        for person in (ann, bob):
            hard = person.space.get("resourcequotas", "astrago")["spec"]["hard"]
            assert hard == POLICY["quota"]
        namespace = json.loads(kubectl("get", "namespace", bob.namespace, "-o", "json"))
        level = namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        assert level == "restricted"
        networks = bob.space.get("networkpolicies", "astrago")["spec"]["egress"][-1]["to"]
        assert {"ipBlock": {"cidr": "10.9.0.0/16"}} in networks
        # The quota counts, and is told in the cluster's words.
        job = bob.submit("print('never')", resources={"cpu": 3, "memory": "64Mi"}, nodes=2)
        waiting = bob.until(job.name, lambda job: job.reason in ("QuotaExceeded", "PodSecurity"))
        assert waiting.phase in ("Queued", "Pending")
        until_counted(bob)


def until_counted(person):
    """The cluster counts a moment later, and the server sees it by a watch."""
    path = f"/api/v1/namespaces/{person.namespace}/quota"
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = {each["resource"]: each for each in person.ask("GET", path).json()["items"]}
        count = found.get("count/trainjobs.trainer.kubeflow.org", {})
        if (count.get("hard"), count.get("used")) == ("3", "1"):
            assert found["requests.cpu"]["hard"] == POLICY["quota"]["requests.cpu"]
            return
    raise AssertionError(f"not counted: {found}")


def test_a_namespace_of_somebody_else_is_not_given_out(server, kubectl, namespace):
    user = namespace  # there is one of this name, made by others
    body = {"user": user}
    answer = patient.post(f"{server.address}/api/v1/signup", json=body, timeout=PATIENCE)
    assert answer.status_code == 409, answer.text
    assert f"kubectl label namespace {namespace}" in answer.json()["detail"]
    kubectl(*answer.json()["detail"].rstrip(".").split("kubectl ")[1].split(" "))
    answer = patient.post(f"{server.address}/api/v1/signup", json=body, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["namespace"]) == (201, namespace)


@pytest.mark.req("M3", "M4", "M6")
def test_two_tenants_at_once_and_neither_sees_the_other(ann, bob, server, version):
    script = "import os\nprint('secret of', os.environ['OWNER'])\n"
    jobs = {
        person: person.submit(
            script, name="same", nodes=2, env=[{"name": "OWNER", "value": person.user}]
        )
        for person in (ann, bob)
    }
    for person in jobs:
        assert person.wait("same").has_succeeded, person.client.get("same")
    for person, other in ((ann, bob), (bob, ann)):
        for rank in (0, 1):
            assert person.lines("same", rank)[-1] == f"secret of {person.user}"
        assert [job.name for job in person.client.list()] == ["same"]
        made = {each["metadata"]["name"] for each in person.space.list("configmaps")}
        own = {"kube-root-ca.crt", "pytorch-pet-setup", f"{person.user}-train-script"}
        own |= {"same-runtime-snapshot"} if version == "2.3" else set()  # the Trainer's
        assert made == own
        assert [each["metadata"]["name"] for each in person.space.list("trainjobs")] == ["same"]
        theirs = f"/api/v1/namespaces/{other.namespace}/jobs"
        for path in (theirs, f"{theirs}/same", f"{theirs}/same/logs", f"{theirs}/same/manifest"):
            assert person.ask("GET", path).status_code == 404, path
        status = f"/api/trainjob/same/status?namespace={other.namespace}"
        assert person.ask("GET", status).status_code == 404
        assert person.ask("DELETE", f"{theirs}/same").status_code == 404
        assert other.user not in person.ask("GET", "/api/v1/nodes").text
    nobody = patient.get(
        f"{server.address}/api/v1/namespaces/{ann.namespace}/jobs",
        headers=bearer("astrago_none"),
        timeout=PATIENCE,
    )
    assert nobody.status_code == 401


@pytest.mark.req("M113", "X15")
def test_a_running_job_is_seen_on_its_node_by_its_owner_alone(ann, bob):
    script = "import time\ntime.sleep(1000)\n"
    room = {"cpu": "100m", "memory": "128Mi"}
    job = ann.submit(script, nodes=2, resources=room)
    ann.until(job.name, lambda job: job.phase == "Running")

    def node(person):
        found = person.ask("GET", "/api/v1/nodes").json()["items"]
        return next(each for each in found if each["name"] == "astrago")

    shares = {"pods": 2, "cpu": 0.2, "memory": 256 * 2**20, "gpus": 0}
    mine = [each for each in node(ann)["jobs"] if each["namespace"] == ann.namespace]
    assert mine == [{"namespace": ann.namespace, "name": job.name, **shares}]
    seen = node(bob)
    assert [each["name"] for each in seen["jobs"]] == ["another tenant"]
    assert seen["used"]["cpu"] >= 0.2
    assert seen["capacity"]["cpu"] == pytest.approx(seen["used"]["cpu"] + seen["free"]["cpu"])
    assert (seen["architecture"], seen["gpus"]) == ("amd64", None)
    ann.delete(job.name)
    ann.space.until_gone("pods")
