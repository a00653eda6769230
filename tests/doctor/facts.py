"""A healthy machine and a healthy cluster, from which tests take one thing away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from astrago_trainer import __version__, catalogue
from astrago_trainer.doctor.cluster_facts import ClusterFacts
from astrago_trainer.doctor.findings import Finding, State
from astrago_trainer.doctor.machine_facts import MachineFacts
from astrago_trainer.install.manifests import NAMESPACE, shipped_objects

Json = dict[str, Any]

MACHINE = MachineFacts(
    system="linux",
    version=__version__,
    python="3.11.7",
    executable="/opt/astrago/bin/python",
    settings_trouble="",
    users_are_trusted=False,
    environments_trouble="",
    frameworks={"/opt/astrago/bin": ("torch",)},
    provided={"torch 2.15": True, "tensorflow-cpu 2.15": False},
    isolation_trouble="",
    groups_trouble="",
    cpus=8.0,
    memory=32 * 2**30,
    gpus=2,
    has_driver=True,
    refuses_larger=False,
    open_files=65536,
    data="/data",
    data_trouble="",
    disk_free=100 * 2**30,
    disk_alarm="",
    database="/data/astrago.db",
    database_version="0001",
    newest_version="0001",
    database_trouble="",
    address="127.0.0.1:8000",
    port_trouble="",
    answering="",
)


def a_machine(**changes: Any) -> MachineFacts:
    return replace(MACHINE, **changes)


def items(*found: Json) -> Json:
    return {"items": list(found)}


def kinds(*names: str) -> Json:
    return {"resources": [{"name": name} for name in names]}


def a_deployment(name: str, image: str, *, available: int = 1) -> Json:
    return {
        "metadata": {"name": name},
        "spec": {"template": {"spec": {"containers": [{"image": image}]}}},
        "status": {"availableReplicas": available},
    }


def a_webhook(name: str, group: str, *, ca: str = "Q0E=", service: str = "hooks") -> Json:
    hook = {
        "name": name,
        "rules": [{"apiGroups": [group]}],
        "clientConfig": {
            "caBundle": ca,
            "service": {"namespace": "kubeflow-system", "name": service},
        },
    }
    return {"metadata": {"name": name}, "webhooks": [hook]}


def slices(*, ready: bool = True) -> Json:
    return items({"endpoints": [{"conditions": {"ready": ready}}]})


def a_daemon_set(name: str, *containers: str) -> Json:
    names = containers or (name,)
    template = {"spec": {"containers": [{"name": each} for each in names]}}
    return {"metadata": {"name": name}, "spec": {"template": template}}


def a_node(
    name: str = "a", *, ready: str = "True", labels: Json | None = None, **amounts: str
) -> Json:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": {"cpu": "8", "memory": "32Gi"}
            | {
                key.replace("_", "/", 1).replace("nvidia/", "nvidia.com/"): value
                for key, value in amounts.items()
            },
        },
    }


def a_class(name: str, *, default: bool = False) -> Json:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"metadata": {"name": name, "annotations": annotations}}


def a_tenant(name: str = "user-1", level: str = "baseline") -> Json:
    return {"metadata": {"name": name, "labels": {"pod-security.kubernetes.io/enforce": level}}}


def installed() -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {
        (each["kind"], each["metadata"]["name"]): each
        for each in shipped_objects()
        if each["kind"] != "ClusterTrainingRuntime"
    }
    deployment = found["Deployment", "astrago"]
    found["Deployment", "astrago"] = {**deployment, "status": {"availableReplicas": 1}}
    return found


def a_cluster(**changes: Any) -> ClusterFacts:
    healthy = ClusterFacts(
        server="https://10.0.0.1:6443",
        namespace=NAMESPACE,
        version={"gitVersion": "v1.34.4"},
        me={"status": {"userInfo": {"username": "admin"}}},
        dialect="2.1",
        dialect_trouble="",
        trainer_kinds=kinds("trainjobs", "trainingruntimes", "clustertrainingruntimes"),
        jobset_kinds=kinds("jobsets", "jobsets/status"),
        operators=items(
            a_deployment("kubeflow-trainer-controller-manager", "ghcr.io/kubeflow/trainer:v2.1.0"),
            a_deployment("jobset-controller-manager", "registry.k8s.io/jobset/jobset:v0.10.1"),
        ),
        webhooks=items(
            a_webhook("trainjobs", "trainer.kubeflow.org"), a_webhook("jobsets", "jobset.x-k8s.io")
        ),
        endpoints={("kubeflow-system", "hooks"): slices()},
        probe=refused_by_the_webhook(),
        dns_service={"metadata": {"name": "kube-dns"}},
        dns_endpoints=slices(),
        daemon_sets=items(a_daemon_set("calico-node"), a_daemon_set("kube-proxy")),
        is_resolved=None,
        runtimes=items(*(catalogue.load_runtime(name) for name in catalogue.names())),
        installed=installed(),
        rights_of_whom=f"system:serviceaccount:{NAMESPACE}:astrago",
        missing_rights=(),
        rights_trouble="",
        nodes=items(a_node(nvidia_gpu="8")),
        storage_classes=items(a_class("gp3", default=True)),
        tenants=items(a_tenant()),
        accounts={"user-1": {"automountServiceAccountToken": False}},
    )
    return replace(healthy, **changes)


def refused_by_the_webhook() -> Any:
    from astrago_trainer.doctor.cluster_facts import Trouble

    return Trouble(403, 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied it')


def assert_only(
    findings: Iterable[Finding], subject: str, state: str, said: str, mend: str
) -> None:
    """Exactly one finding is not ok: this one, with this among its words and its commands."""
    (finding,) = [each for each in findings if each.state is not State.OK]
    assert (finding.subject, finding.state.value) == (subject, state)
    assert said in finding.text
    assert mend in " ".join(finding.mend)
    assert bool(mend) == bool(finding.mend)
