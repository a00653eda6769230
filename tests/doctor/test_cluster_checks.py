"""Each thing that can be missing in a cluster is named, with its weight and what mends it."""

from __future__ import annotations

import copy

import pytest
from tests.doctor.facts import (
    a_class,
    a_cluster,
    a_daemon_set,
    a_deployment,
    a_node,
    a_tenant,
    a_webhook,
    assert_only,
    installed,
    items,
    kinds,
    slices,
)

from astrago_trainer import catalogue
from astrago_trainer.doctor.cluster_checks import check_cluster
from astrago_trainer.doctor.cluster_facts import Trouble
from astrago_trainer.doctor.findings import State
from astrago_trainer.doctor.rights import EVERYWHERE, IN_TENANTS, Right, rights_of
from astrago_trainer.install.manifests import NAMESPACE, Installation, installation_objects
from astrago_trainer.install.server_state import ServerState

FORBIDDEN = Trouble(403, 'nodes is forbidden: User "me" cannot list')
MISSING = Trouble(404, "not found")
RUNTIMES = [catalogue.load_runtime(name) for name in catalogue.names()]


def without(kind, name):
    found = installed()
    found[kind, name] = MISSING
    return found


def changed(kind, name, change):
    found = copy.deepcopy(installed())
    change(found[kind, name])
    return found


def another_image(runtime):
    made = copy.deepcopy(runtime)
    job = made["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["template"]["spec"]["containers"][0]["image"] = "mine:1"
    return made


def test_a_healthy_cluster_has_nothing_to_mend():
    findings = check_cluster(a_cluster())
    assert [each for each in findings if each.state is not State.OK] == []
    assert not any(each.mend for each in findings)


@pytest.mark.parametrize(
    ("changes", "subject", "state", "said", "mend"),
    [
        ({"version": {"gitVersion": "v1.28.3"}}, "Kubernetes", "wrong", "1.30 or later", ""),
        ({"version": {"gitVersion": ""}}, "Kubernetes", "warning", "does not say", ""),
        ({"me": FORBIDDEN}, "account", "warning", "who you are", ""),
        ({"trainer_kinds": kinds("trainjobs", "trainingruntimes")},
         "Trainer", "wrong", "clustertrainingruntimes", "ref=v2.1.0"),
        ({"jobset_kinds": MISSING}, "JobSet", "wrong", "no job gets pods", "v0.10.1/manifests.yaml"),
        ({"operators": items(a_deployment("jobset-controller-manager", "j:1", available=0))},
         "controllers", "wrong", "jobset-controller-manager does not run", "describe deployment"),
        ({"operators": items()}, "controllers", "warning", "none are in", "kubectl get deployments -A"),
        ({"operators": FORBIDDEN}, "controllers", "warning", "may not look", ""),
        ({"webhooks": items()}, "webhooks", "wrong", "none stands before", "ref=v2.1.0"),
        ({"webhooks": items(a_webhook("trainjobs", "trainer.kubeflow.org", ca=""))},
         "webhooks", "wrong", "trainjobs without the certificate", "rollout restart"),
        ({"endpoints": {("kubeflow-system", "hooks"): slices(ready=False)}},
         "webhooks", "wrong", "behind kubeflow-system/hooks", "get pods"),
        ({"webhooks": FORBIDDEN}, "webhooks", "warning", "may not look", ""),
        ({"probe": Trouble(0, 'failed calling webhook "validator"')},
         "admission", "wrong", "failed calling webhook", "endpointslices"),
        ({"probe": Trouble(403, 'User "me" cannot create')}, "admission", "warning", "not tried", ""),
        ({"probe": {"kind": "TrainJob"}}, "admission", "warning", "was accepted", "ref=v2.1.0"),
        ({"is_resolved": False}, "DNS", "wrong", "does not resolve", "k8s-app=kube-dns"),
        ({"dns_service": MISSING}, "DNS", "warning", "no service", "grep -i dns"),
        ({"dns_endpoints": slices(ready=False)}, "DNS", "wrong", "no pod is ready", "k8s-app=kube-dns"),
        ({"daemon_sets": items(a_daemon_set("kube-proxy"), a_daemon_set("aws-node"))},
         "network", "warning", "nobody was found who enforces", "kubectl get daemonsets"),
        ({"daemon_sets": FORBIDDEN}, "network", "warning", "may not look", ""),
        ({"runtimes": items(*RUNTIMES[1:])}, "runtimes", "wrong", "horovod-runtime is missing",
         "astrago runtimes horovod-runtime -o yaml | kubectl apply"),
        ({"runtimes": items(another_image(RUNTIMES[0]), *RUNTIMES[1:])},
         "runtimes", "warning", "containers[0].image", "install --diff"),
        ({"runtimes": MISSING}, "runtimes", "wrong", "cannot be read", ""),
        ({"nodes": items(a_node(nvidia_gpu="1"), a_node("b", ready="Unknown"))},
         "nodes", "warning", "not ready: b", "describe node b"),
        ({"nodes": items(a_node(labels={"nvidia.com/gpu.present": "true"}))},
         "GPUs", "warning", "device plug-in", "nvidia-device-plugin"),
        ({"storage_classes": items()}, "storage", "warning", "no storage class", "--storage none"),
        ({"storage_classes": items(a_class("a"))}, "storage", "warning", "none of a is", "--storage-class a"),
        ({"storage_classes": items(a_class("a", default=True), a_class("b", default=True))},
         "storage", "warning", "a, b are all", "--storage-class a"),
        ({"storage_classes": FORBIDDEN}, "storage", "warning", "may not look", ""),
        ({"missing_rights": [Right("create", "", "namespaces", "")]},
         "rights", "wrong", "may not create namespaces", "install --apply"),
        ({"rights_trouble": "no reviews here"}, "rights", "warning", "no reviews here", ""),
        ({"installed": without("ClusterRole", "astrago-reader")},
         "roles", "wrong", "ClusterRole astrago-reader missing", "install --apply"),
        ({"installed": changed("ClusterRole", "astrago-reader", lambda role: role.update(rules=[]))},
         "roles", "warning", "ClusterRole astrago-reader (rules)", "install --diff"),
        ({"installed": without("ValidatingAdmissionPolicyBinding", "astrago-tenant-pods")},
         "policies", "wrong", "astrago-tenant-pods missing", "install --apply"),
        ({"installed": without("Deployment", "astrago")}, "server", "warning", "not installed", "install --apply"),
        ({"installed": changed("Deployment", "astrago", lambda found: found.update(status={}))},
         "server", "wrong", "not available", "logs deployment/astrago"),
        ({"tenants": items(a_tenant(level="privileged"))},
         "tenants", "warning", "not enforced in user-1", "kubectl label namespace user-1"),
        ({"accounts": {"user-1": {}}}, "tenants", "warning", "get a token", "automountServiceAccountToken"),
        ({"tenants": FORBIDDEN}, "tenants", "warning", "may not look", ""),
        ({"unbound": ["user-1"]}, "tenants", "warning", "has no role in user-1",
         "--serviceaccount=astrago-system:astrago"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(changes, subject, state, said, mend):
    assert_only(check_cluster(a_cluster(**changes)), subject, state, said, mend)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nodes": items(a_node())}, "none now; jobs that ask for one wait"),
        ({"is_resolved": True}, "names of services resolve"),
        (
            {"daemon_sets": items(a_daemon_set("aws-node", "aws-node", "aws-eks-nodeagent"))},
            "enforced by aws-eks-nodeagent",
        ),
        ({"tenants": items(), "accounts": {}}, "none yet"),
    ],
)
def test_what_only_looks_like_trouble_is_fine(changes, said):
    findings = check_cluster(a_cluster(**changes))
    assert [each for each in findings if each.state is not State.OK] == []
    assert any(said in each.text for each in findings)


def test_a_missing_trainer_is_one_wrong_thing_with_a_command_for_each_release():
    gone = {"runtimes": MISSING, "probe": MISSING, "trainer_kinds": MISSING, "webhooks": items()}
    said = "the cluster has no Kubeflow Trainer"
    facts = a_cluster(dialect="", dialect_trouble=said, **gone)
    found = {each.subject: each for each in check_cluster(facts) if each.state is not State.OK}
    assert found.keys() == {"Trainer", "webhooks", "admission", "runtimes"}
    wrong = [each for each in found.values() if each.state is State.WRONG]
    assert wrong == [found["Trainer"]]
    assert found["Trainer"].text == said
    assert [command.rpartition("=")[2] for command in found["Trainer"].mend] == [
        'v2.1.0"',
        'v2.2.1"',
        'v2.3.0"',
    ]


def test_a_cluster_without_nodes_is_wrong_and_its_gpus_are_none():
    found = {each.subject: each for each in check_cluster(a_cluster(nodes=items()))}
    assert found["nodes"].state is State.WRONG
    assert found["GPUs"].state is State.OK


def test_other_devices_are_named_and_what_jobs_ask_for():
    node = a_node()
    node["status"]["allocatable"]["amd.com/gpu"] = "4"
    (finding,) = [
        each for each in check_cluster(a_cluster(nodes=items(node))) if each.state is not State.OK
    ]
    assert finding.text == "4 amd.com/gpu on 1 node; jobs ask for nvidia.com/gpu"


def test_nothing_installed_is_a_warning_since_the_server_may_run_outside():
    found = dict.fromkeys(installed(), MISSING)
    findings = {each.subject: each for each in check_cluster(a_cluster(installed=found))}
    for subject in ("roles", "policies", "server"):
        assert findings[subject].state is State.WARNING
        (command,) = findings[subject].mend
        assert command.startswith("astrago install --apply --image REGISTRY/astrago-trainer:")


def test_what_blocks_an_installed_server_is_named_by_itself():
    said = "no persistent volumes available for this claim and no storage class is set"
    about = {"kind": "PersistentVolumeClaim", "name": "astrago-data"}
    event = {"reason": "FailedBinding", "message": said, "involvedObject": about}
    claim = {"spec": {}, "status": {"phase": "Pending"}}
    deployment = {**installed()["Deployment", "astrago"], "status": {}}
    state = ServerState(NAMESPACE, deployment, (), claim, (event,))
    found = {each.subject: each for each in check_cluster(a_cluster(state=state))}
    assert (found["claim"].state, said in found["claim"].text) == (State.WRONG, True)
    assert any("--storage-class NAME" in each for each in found["claim"].mend)

    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    pod = {
        "metadata": {"name": "x"},
        "status": {"containerStatuses": [{"state": {"waiting": waiting}}]},
    }
    found = {
        each.subject: each
        for each in check_cluster(a_cluster(state=ServerState(NAMESPACE, deployment, (pod,))))
    }
    assert found["image"].state is State.WRONG
    assert "astrago-trainer" in found["image"].text
    assert any("--image REGISTRY" in each for each in found["image"].mend)


def test_policies_are_compared_with_the_rule_that_the_server_was_installed_with():
    settings = {"ASTRAGO_NAMESPACES": "user-*"}
    objects = installation_objects(Installation(settings=settings))
    there = {(each["kind"], each["metadata"]["name"]): each for each in objects}
    there["Deployment", "astrago"]["status"] = {"availableReplicas": 1}
    found = {each.subject: each for each in check_cluster(a_cluster(installed=there))}
    assert found["policies"].state is State.OK
    policy = there["ValidatingAdmissionPolicy", "astrago-server-writes"]
    policy["spec"]["validations"][0]["expression"] = "true"
    found = {each.subject: each for each in check_cluster(a_cluster(installed=there))}
    assert found["policies"].state is State.WARNING


def test_another_namespace_is_in_the_commands():
    facts = a_cluster(namespace="ml", missing_rights=[Right("get", "", "nodes", "")])
    found = {each.subject: each for each in check_cluster(facts)}
    assert found["rights"].mend == ("astrago install --apply --namespace ml",)


def test_the_rights_are_those_of_the_shipped_roles():
    everywhere, in_tenants = rights_of(EVERYWHERE), rights_of(IN_TENANTS)
    assert (
        Right("bind", "rbac.authorization.k8s.io", "clusterroles", "trainjob-backend-role")
        in everywhere
    )
    assert Right("get", "", "pods/log", "") in in_tenants
    assert Right("watch", "trainer.kubeflow.org", "trainjobs", "") in in_tenants
    assert str(Right("get", "", "pods/log", "")) == "get pods/log"
    assert Right("get", "", "pods/log", "").attributes("x") == {
        "verb": "get", "group": "", "resource": "pods", "subresource": "log", "namespace": "x", "name": "",
    }  # fmt: skip
