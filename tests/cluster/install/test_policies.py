"""What our API refuses the cluster refuses again, in words; what our catalogue makes is let through."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from cluster.operators import Kubectl
from tests.cluster.api import PATIENCE, Answer, Api, Space
from tests.cluster.install.conftest import Installed, Tenant

from astrago_trainer import catalogue
from astrago_trainer.core.merge import VERSIONS
from astrago_trainer.core.preview import preview_pair
from astrago_trainer.engines.kubernetes.resources import TENANT
from astrago_trainer.install.manifests import NAMESPACE, shipped_objects

Json = dict[str, Any]

POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one"},
    "spec": {"containers": [{"name": "node", "image": "busybox:1.36.1"}]},
}
HOST_VOLUME = {"volumes": [{"name": "host", "hostPath": {"path": "/etc"}}]}
PRIVILEGED = {"securityContext": {"privileged": True}}
CAPABLE = {"securityContext": {"capabilities": {"add": ["NET_ADMIN"]}}}
PORTED = {"ports": [{"containerPort": 80, "hostPort": 80}]}

FORBIDDEN = {
    "privileged": ({}, PRIVILEGED, "privileged containers are not allowed"),
    "capabilities": ({}, CAPABLE, "added capabilities are not allowed"),
    "host port": ({}, PORTED, "ports of the node are not allowed"),
    "hostPath": (HOST_VOLUME, {}, "folders of the node (hostPath) are not allowed"),
    "hostNetwork": ({"hostNetwork": True}, {}, "hostNetwork"),
    "hostPID": ({"hostPID": True}, {}, "hostPID"),
    "hostIPC": ({"hostIPC": True}, {}, "hostIPC"),
    "account": ({"serviceAccountName": "builder"}, {}, "run as the service account default"),
}


@pytest.fixture(scope="module")
def lax(api: Api, installed: Installed) -> Space:
    """A tenant's namespace without Pod Security, so that the policy is what refuses; and with a second account."""
    change = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    space = Space(api, installed.sign_up().namespace)
    path = f"/api/v1/namespaces/{space.name}"
    answer = api.ask("PATCH", path, change, "application/merge-patch+json")
    assert answer.code == 200, answer.text
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "builder"}}
    answer = api.ask("POST", f"{path}/serviceaccounts", account)
    assert answer.code == 201, answer.text
    return space


def a_pod(pod: Json, container: Json, *, where: str = "containers") -> Json:
    made = copy.deepcopy(POD)
    made["spec"].update(copy.deepcopy(pod))
    if where == "containers":
        made["spec"]["containers"][0].update(container)
    else:
        made["spec"][where] = [{**POD["spec"]["containers"][0], "name": "first", **container}]
    return made


def test_a_plain_pod_is_let_through(lax: Space):
    assert lax.try_create(POD, dryRun="All").code == 201


@pytest.mark.req("M50")
@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_pod_with_more_is_refused_in_words(lax: Space, what: str):
    pod, container, said = FORBIDDEN[what]
    answer = lax.try_create(a_pod(pod, container), dryRun="All")
    assert (answer.code, answer.body["reason"]) == (422, "Invalid"), answer.text
    assert "astrago-tenant-pods" in answer.message
    assert said in answer.message


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_servers_own_account_is_refused_as_well(as_server: httpx.Client, lax: Space, what: str):
    pod, container, said = FORBIDDEN[what]
    path = f"/api/v1/namespaces/{lax.name}/pods?dryRun=All"
    answer = as_server.post(path, json=a_pod(pod, container))
    assert answer.status_code == 422, answer.text
    assert said in answer.json()["message"]


def test_init_containers_are_looked_at_as_well(lax: Space):
    answer = lax.try_create(a_pod({}, PRIVILEGED, where="initContainers"), dryRun="All")
    assert "privileged containers are not allowed in namespaces of tenants: first" in answer.message


def test_a_container_that_is_added_later_is_looked_at(lax: Space):
    pod = copy.deepcopy(POD)
    pod["metadata"]["name"] = "later"
    pod["spec"]["containers"][0]["command"] = ["sleep", "1000"]
    lax.create(pod)
    added = {"name": "debug", "image": "busybox:1.36.1", **PRIVILEGED}
    answer = lax.api.ask(
        "PATCH",
        f"/api/v1/namespaces/{lax.name}/pods/later/ephemeralcontainers",
        {"spec": {"ephemeralContainers": [added]}},
        "application/strategic-merge-patch+json",
    )
    assert answer.code == 422
    assert "privileged containers are not allowed in namespaces of tenants: debug" in answer.message
    lax.delete("pods", "later")


def test_other_namespaces_are_left_alone(space: Space, installed: Installed):
    for pod, container, _ in (FORBIDDEN["privileged"], FORBIDDEN["hostPath"]):
        assert space.try_create(a_pod(pod, container), dryRun="All").code == 201


def a_runtime(pod: Json, container: Json) -> Json:
    made = catalogue.load_runtime("pytorch-simple")
    made["kind"] = "TrainingRuntime"
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    spec = job["template"]["spec"]["template"]["spec"]
    spec.update(pod)
    spec["containers"][0].update(container)
    return made


@pytest.mark.parametrize("what", FORBIDDEN)
def test_a_tenants_own_runtime_is_refused_in_words(lax: Space, what: str):
    pod, container, said = FORBIDDEN[what]
    answer = lax.try_create(a_runtime(pod, container), dryRun="All")
    assert answer.code == 422, answer.text
    assert "astrago-tenant-jobs" in answer.message
    assert said in answer.message


def an_overriding_job(version: str, spec: Json) -> Json:
    job = catalogue.sample_trainjob("pytorch-simple")
    for name in ("podTemplateOverrides", "runtimePatches"):
        job["spec"].pop(name, None)
    job["metadata"] = {"name": "overriding"}
    if version == "2.1":
        job["spec"]["podTemplateOverrides"] = [{"targetJobs": [{"name": "node"}], "spec": spec}]
        return job
    node = {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}
    patch = {"template": {"spec": {"replicatedJobs": [node]}}}
    job["spec"]["runtimePatches"] = [
        {"manager": "tests.astrago.io/one", "trainingRuntimeSpec": patch}
    ]
    return job


@pytest.mark.parametrize("what", ["hostPath", "account"])
def test_a_trainjobs_overrides_are_refused_in_words(lax: Space, version: str, what: str):
    """Volumes and the account are what an override can ask for."""
    assert version in VERSIONS
    spec, _, said = FORBIDDEN[what]
    answer = lax.try_create(an_overriding_job(version, spec), dryRun="All")
    assert answer.code == 422, answer.text
    assert "astrago-tenant-jobs" in answer.message
    assert said in answer.message


def test_what_was_there_before_the_policy_can_be_finished(
    kubectl: Kubectl, space: Space, installed: Installed
):
    pod = a_pod({"terminationGracePeriodSeconds": 0}, PRIVILEGED)
    pod["spec"]["containers"][0]["command"] = ["sleep", "1000"]
    space.create(pod)
    kubectl("label", "namespace", space.name, f"{TENANT}={space.name}")
    assert space.try_create(a_pod({}, PRIVILEGED), dryRun="All").code == 422
    space.patch("pods", "one", {"metadata": {"labels": {"seen": "yes"}}})
    space.delete("pods", "one")
    space.until_gone("pods")


@pytest.fixture(scope="module")
def probes(kubectl: Kubectl) -> Iterator[None]:
    """A kind of our own under a copy of the policy: a release has one way to patch pods, this kind has all of them."""
    kind = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "probes.tests.astrago.io"},
        "spec": {
            "group": "tests.astrago.io",
            "scope": "Namespaced",
            "names": {"kind": "Probe", "plural": "probes", "singular": "probe"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "x-kubernetes-preserve-unknown-fields": True,
                        }
                    },
                }
            ],
        },
    }
    policy, binding = (
        each for each in shipped_objects() if each["metadata"]["name"] == "astrago-tenant-jobs"
    )
    policy["metadata"]["name"] = binding["metadata"]["name"] = "astrago-test-probes"
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    rule.update(apiGroups=["tests.astrago.io"], resources=["probes"])
    binding["spec"] = {"policyName": "astrago-test-probes", "validationActions": ["Deny"]}
    made = json.dumps({"apiVersion": "v1", "kind": "List", "items": [kind, policy, binding]})
    kubectl("apply", "-f", "-", stdin=made)
    kubectl("wait", "--for=condition=Established", "crd/probes.tests.astrago.io")
    yield
    kubectl("delete", "-f", "-", stdin=made)


DIALECTS = {
    "2.1": lambda spec: {"podTemplateOverrides": [{}, {"spec": spec}]},
    "2.2": lambda spec: {
        "runtimePatches": [
            {"manager": "one"},
            {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": a_job(spec)}}}},
        ]
    },
    "runtime": lambda spec: {"template": {"spec": {"replicatedJobs": a_job(spec)}}},
}


def a_job(spec: Json) -> list[Json]:
    return [{"name": "first"}, {"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_is_read(probes: None, api: Api, space: Space, dialect: str):
    """Pods of a patch have only some fields; none of them may be missed for that."""

    def tried(pod: Json) -> Answer:
        probe = {
            "apiVersion": "tests.astrago.io/v1",
            "kind": "Probe",
            "metadata": {"name": "one"},
            "spec": DIALECTS[dialect](pod),
        }
        path = f"/apis/tests.astrago.io/v1/namespaces/{space.name}/probes?dryRun=All"
        return api.ask("POST", path, probe)

    end = time.monotonic() + PATIENCE
    while tried({"hostPID": True}).code == 201:  # a policy counts a little later than it is made
        assert time.monotonic() < end
    for fine in (
        {},
        {"serviceAccountName": "default"},
        {"volumes": [{"name": "a", "emptyDir": {}}]},
    ):
        assert tried(fine).code == 201
    for pod, container, said in FORBIDDEN.values():
        containers = {"initContainers": [{"name": "a", **container}]} if container else {}
        answer = tried({**pod, **containers})
        assert answer.code == 422
        assert said in answer.message


@pytest.mark.parametrize("name", catalogue.names())
def test_jobs_of_the_catalogue_are_let_through(tenant: Tenant, api: Api, name: str, version: str):
    """The TrainJob of the sample, and every pod that it becomes, under the Pod Security of tenants."""
    space = Space(api, tenant.namespace)
    trainjob = catalogue.sample_trainjob(name)
    trainjob["metadata"].pop("namespace", None)
    if version == "2.1" or "podTemplateOverrides" not in trainjob["spec"]:
        answer = space.try_create(trainjob, dryRun="All")
        assert answer.code == 201, answer.text
    seen = preview_pair(catalogue.load_runtime(name), trainjob, "2.1")
    jobs = seen.objects[0]["spec"]["replicatedJobs"]
    for job in jobs:
        template = job["template"]["spec"]["template"]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "one"},
            "spec": template["spec"],
        }
        answer = space.try_create(pod, dryRun="All")
        assert answer.code == 201, answer.text


def test_the_server_makes_no_namespace_but_a_tenants(as_server: httpx.Client):
    def made(labels: Json) -> httpx.Response:
        metadata = {"name": "astrago-test-policy", "labels": labels}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        return as_server.post("/api/v1/namespaces?dryRun=All", json=body)

    level = "pod-security.kubernetes.io/enforce"
    assert "namespaces of tenants alone" in made({}).text
    assert "enforces Pod Security" in made({TENANT: "x", level: "privileged"}).text
    assert made({TENANT: "x", level: "baseline"}).status_code == 201


def test_the_server_takes_over_no_namespace(as_server: httpx.Client):
    change = {
        "metadata": {"labels": {TENANT: "x", "pod-security.kubernetes.io/enforce": "baseline"}}
    }
    answer = as_server.patch(
        "/api/v1/namespaces/kube-system?dryRun=All",
        json=change,
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert answer.status_code == 422
    assert "kube-system has no label trainer.astrago.io/tenant" in answer.json()["message"]


def a_binding(account: str = "astrago") -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "test-policy"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "trainjob-backend-role",
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}],
    }


def test_the_server_gives_itself_rights_in_tenants_namespaces_alone(
    as_server: httpx.Client, tenant: Tenant
):
    def bound(namespace: str, binding: Json) -> httpx.Response:
        path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
        return as_server.post(f"{path}?dryRun=All", json=binding)

    assert bound(tenant.namespace, a_binding()).status_code == 201
    elsewhere = bound("kube-system", a_binding())
    assert elsewhere.status_code == 422
    assert "the server changes namespaces of tenants alone" in elsewhere.json()["message"]
    for_another = bound(tenant.namespace, a_binding("somebody"))
    assert "binds roles to itself alone" in for_another.json()["message"]
    wider = a_binding()
    wider["roleRef"]["name"] = "cluster-admin"
    assert bound(tenant.namespace, wider).status_code == 403
