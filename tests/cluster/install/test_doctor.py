"""The doctor at the bedside of a real cluster: what is well, and each thing that was broken, by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cluster.operators import Kubectl
from tests.cluster.api import PATIENCE, Api
from tests.cluster.install.conftest import OPTIONS, Installed, Tenant, a_kubeconfig, astrago

from astrago_trainer import catalogue
from astrago_trainer.engines.kubernetes.resources import TENANT
from astrago_trainer.install.manifests import NAMESPACE

Json = dict[str, Any]

NOT_HERE = {"DNS", "storage", "network"}
"""The test cluster has no service kube-dns, no storage class, and nobody who enforces network policies."""


def looked(*arguments: str) -> tuple[int, dict[str, Json]]:
    done = astrago("doctor", "--engine", "kubernetes", "--json", *arguments)
    assert not done.stderr
    found = json.loads(done.stdout)
    return done.returncode, {each["subject"]: each for each in found["findings"]}


def not_ok(findings: dict[str, Json]) -> dict[str, str]:
    return {subject: each["state"] for subject, each in findings.items() if each["state"] != "ok"}


@pytest.fixture
def allowed(installed: Installed, kubectl: Kubectl) -> set[str]:
    """Tenants of somebody else's server on this cluster are no tenants of this one, and are told."""
    names = kubectl("get", "namespaces", "-l", TENANT, "-o", "name").split()
    foreign = {name.removeprefix("namespace/") for name in names} - set(installed.namespaces)
    return NOT_HERE | ({"tenants"} if foreign else set())


def test_after_an_installation_all_is_well(installed: Installed, tenant: Tenant, allowed: set[str]):
    code, findings = looked()
    assert code == 0
    assert set(not_ok(findings)) <= allowed, findings
    assert findings["rights"]["text"].startswith(f"system:serviceaccount:{NAMESPACE}:astrago has")
    page = astrago("doctor", "--engine", "kubernetes").stdout
    assert "Nothing is wrong" in page
    assert all(len(line) <= 80 for line in page.splitlines() if "→" not in line)


@pytest.mark.req("M29", "M101")
def test_the_operators_are_named_with_their_releases(installed: Installed, version: str):
    _, findings = looked()
    assert findings["Trainer"]["text"].startswith(f"{version}, read off its schema")
    assert findings["runtimes"]["text"].startswith(f"all {len(catalogue.names())} of the catalogue")
    assert "jobset-controller-manager" in findings["controllers"]["text"]
    assert findings["admission"]["text"].startswith("the Trainer's webhook answers")


def test_inside_the_pod_it_looks_with_the_servers_rights(installed: Installed):
    command = ("astrago", "doctor", "--engine", "kubernetes", "--json")
    said = installed.kubectl("-n", NAMESPACE, "exec", "deployment/astrago", "--", *command)
    findings = {each["subject"]: each for each in json.loads(said)["findings"]}
    assert findings["account"]["text"] == f"you are system:serviceaccount:{NAMESPACE}:astrago"
    assert findings["DNS"]["text"] == "names of services resolve in this pod"
    assert "wrong" not in not_ok(findings).values(), findings
    assert findings["webhooks"]["text"].startswith("your account may not look")


def test_an_account_with_few_rights_is_told_what_it_may_not_see(
    installed: Installed, kubectl: Kubectl, namespace: str, tmp_path: Path
):
    kubectl("-n", namespace, "create", "serviceaccount", "nobody")
    token = kubectl("-n", namespace, "create", "token", "nobody").strip()
    code, findings = looked("--kubeconfig", str(a_kubeconfig(tmp_path / "config", token)))
    assert findings["account"]["text"] == f"you are system:serviceaccount:{namespace}:nobody"
    assert findings["Kubernetes"]["state"] == findings["Trainer"]["state"] == "ok"
    for subject in ("webhooks", "runtimes", "nodes", "storage", "roles", "policies", "tenants"):
        assert findings[subject]["state"] == "warning", findings[subject]
        assert "may not look" in findings[subject]["text"]
    # Whether the server is installed cannot be seen, so its own rights are what counts: it has none.
    assert findings["rights"]["state"] == "wrong"
    assert "your account may not" in findings["rights"]["text"]
    assert code == 1


def test_a_token_that_is_not_accepted_is_one_line(installed: Installed, tmp_path: Path):
    code, findings = looked("--kubeconfig", str(a_kubeconfig(tmp_path / "config", "wrong")))
    assert code == 1
    assert list(findings) == ["cluster", "platform"]  # the latter is read here, not in the cluster
    assert "Unauthorized" in findings["cluster"]["text"]


def test_a_runtime_that_is_missing_is_named_and_its_command_mends_it(
    installed: Installed, kubectl: Kubectl, allowed: set[str]
):
    kubectl("delete", "clustertrainingruntime", "horovod-runtime")
    code, findings = looked()
    assert code == 1
    assert findings["runtimes"]["state"] == "wrong"
    assert "horovod-runtime is missing" in findings["runtimes"]["text"]
    assert findings["runtimes"]["mend"][0] == "astrago install --apply"
    assert astrago("install", "--apply", *OPTIONS).returncode == 0
    assert set(not_ok(looked()[1])) <= allowed


def test_a_policy_that_is_missing_is_named(installed: Installed, kubectl: Kubectl):
    kubectl("delete", "validatingadmissionpolicybinding", "astrago-tenant-jobs")
    code, findings = looked()
    assert (code, findings["policies"]["state"]) == (1, "wrong")
    assert "astrago-tenant-jobs missing" in findings["policies"]["text"]
    assert astrago("install", "--apply", *OPTIONS).returncode == 0
    assert looked()[1]["policies"]["state"] == "ok"


def test_a_role_that_was_changed_is_named(installed: Installed, kubectl: Kubectl):
    change = json.dumps([{"op": "remove", "path": "/rules/0"}])
    kubectl("patch", "clusterrole/astrago-signup", "--type=json", "-p", change)
    code, findings = looked()
    assert code == 1
    assert "ClusterRole astrago-signup (rules)" in findings["roles"]["text"]
    assert "may not create namespaces" in findings["rights"]["text"]
    assert astrago("install", "--apply", "--force-conflicts", *OPTIONS).returncode == 0
    assert not {"roles", "rights"} & set(not_ok(looked()[1]))


def test_a_tenant_whose_namespace_was_changed_is_named(installed: Installed, api: Api):
    tenant = installed.sign_up()
    path = f"/api/v1/namespaces/{tenant.namespace}"
    label = "pod-security.kubernetes.io/enforce"
    merge = "application/merge-patch+json"
    api.ask("PATCH", path, {"metadata": {"labels": {label: None}}}, merge)
    lax = looked()[1]["tenants"]
    assert tenant.namespace in lax["text"]
    api.ask("PATCH", path, {"metadata": {"labels": {label: "baseline"}}}, merge)
    account = {"automountServiceAccountToken": True}
    api.ask("PATCH", f"{path}/serviceaccounts/default", account, merge)
    talking = looked()[1]["tenants"]
    assert "get a token of the cluster" in talking["text"]
    assert tenant.namespace in talking["text"]
    api.ask(
        "PATCH", f"{path}/serviceaccounts/default", {"automountServiceAccountToken": False}, merge
    )
    binding = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{tenant.namespace}/rolebindings"
    api.ask("DELETE", f"{binding}/trainjob-backend-role")
    unbound = looked()[1]["tenants"]
    assert "has no role in" in unbound["text"]
    assert tenant.namespace in unbound["text"]


def test_a_server_that_does_not_run_is_named(installed: Installed, kubectl: Kubectl):
    where = ("-n", NAMESPACE)
    kubectl(*where, "scale", "deployment/astrago", "--replicas=0")
    kubectl(
        *where,
        *("wait", "--for=delete", "pods", "-l", "app.kubernetes.io/name=astrago-trainer"),
        f"--timeout={PATIENCE:.0f}s",
    )
    code, findings = looked()
    assert (code, findings["server"]["state"]) == (1, "wrong")
    assert f"{NAMESPACE}/astrago is not available" in findings["server"]["text"]
    assert "logs deployment/astrago" in findings["server"]["mend"][1]
    kubectl(*where, "scale", "deployment/astrago", "--replicas=1")
    installed.until_it_answers()
