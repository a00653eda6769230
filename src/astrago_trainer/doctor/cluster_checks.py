"""Judges a cluster as a place for jobs: runtimes, names, nodes, GPUs, storage. Pure: facts to findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from astrago_trainer import catalogue
from astrago_trainer.core.quantity import Quantity, QuantityError
from astrago_trainer.doctor import operator_checks, tenancy_checks
from astrago_trainer.doctor.cluster_facts import ClusterFacts, Trouble
from astrago_trainer.doctor.findings import Finding, counted, listed, ok, shortened, warning, wrong
from astrago_trainer.doctor.operator_checks import has_ready, unread, without_trainer
from astrago_trainer.install.differences import first_difference
from astrago_trainer.install.preflight import class_names, default_classes

Json = Mapping[str, Any]

GPU = "nvidia.com/gpu"
_ENFORCERS = (
    "anetd",  # GKE, Dataplane V2
    "antrea-agent",
    "aws-eks-nodeagent",  # a container of aws-node
    "azure-npm",
    "calico-node",
    "canal",
    "cilium",
    "kube-network-policies",
    "kube-router",
    "ovnkube-node",
    "weave-net",
)
"""DaemonSets and containers of network plug-ins that hold pods to network policies."""
_DEVICES = ("gpu", "/mig-", "tpu", "gaudi", "neuron", "Ascend")
"""Parts of the names that device plug-ins give to what trains."""


def check_cluster(facts: ClusterFacts) -> list[Finding]:
    return [
        operator_checks.check_kubernetes(facts),
        operator_checks.check_account(facts),
        operator_checks.check_trainer(facts),
        operator_checks.check_jobset(facts),
        operator_checks.check_controllers(facts),
        operator_checks.check_webhooks(facts),
        operator_checks.check_probe(facts),
        check_dns(facts),
        check_network(facts),
        check_runtimes(facts),
        check_nodes(facts),
        check_gpus(facts),
        check_storage(facts),
        tenancy_checks.check_rights(facts),
        tenancy_checks.check_roles(facts),
        tenancy_checks.check_policies(facts),
        tenancy_checks.check_server(facts),
        *tenancy_checks.check_blockers(facts),
        tenancy_checks.check_tenants(facts),
    ]


def check_dns(facts: ClusterFacts) -> Finding:
    """Ranks find each other by name."""
    if facts.is_resolved is not None:
        if facts.is_resolved:
            return ok("DNS", "names of services resolve in this pod")
        return wrong(
            "DNS",
            "kubernetes.default.svc does not resolve in this pod: ranks will not find each other",
            "kubectl -n kube-system get pods -l k8s-app=kube-dns",
        )
    if isinstance(facts.dns_service, Trouble):
        return warning(
            "DNS",
            "there is no service kube-system/kube-dns: whether names resolve was not looked at",
            "kubectl -n kube-system get pods | grep -i dns",
        )
    if not has_ready(facts.dns_endpoints):
        return wrong(
            "DNS",
            "no pod is ready behind kube-system/kube-dns: ranks will not find each other",
            "kubectl -n kube-system get pods -l k8s-app=kube-dns",
        )
    return ok("DNS", "kube-system/kube-dns has ready pods")


def check_network(facts: ClusterFacts) -> Finding:
    """Network policies are words until somebody enforces them, and the API server takes them either way."""
    subject = "network"
    if isinstance(facts.daemon_sets, Trouble):
        return unread(subject, facts.daemon_sets)
    names = {
        name
        for each in facts.daemon_sets["items"]
        for name in (each["metadata"]["name"], *_container_names(each))
    }
    found = sorted(name for name in names if name.startswith(_ENFORCERS))
    if found:
        return ok(subject, f"network policies are enforced by {found[0]}")
    return warning(
        subject,
        "nobody was found who enforces network policies: pods of tenants reach each other, the API server and the "
        "addresses at which clouds hand out credentials",
        "kubectl get daemonsets -A",
    )


def check_runtimes(facts: ClusterFacts) -> Finding:
    """The catalogue: there, and as this release has it."""
    subject = "runtimes"
    if not facts.dialect:
        return without_trainer(subject)
    if isinstance(facts.runtimes, Trouble):
        return unread(subject, facts.runtimes)
    found = {each["metadata"]["name"]: each for each in facts.runtimes["items"]}
    missing = [name for name in catalogue.names() if name not in found]
    if missing:
        return wrong(
            subject,
            f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} missing: jobs on "
            f"{'it' if len(missing) == 1 else 'them'} are refused",
            tenancy_checks.install_command(facts),
            *(
                f"astrago runtimes {name} -o yaml | kubectl apply --server-side -f -"
                for name in missing[:1]
            ),
        )
    changed = {
        name: where
        for name in catalogue.names()
        if (where := first_difference(catalogue.load_runtime(name), found[name]))
    }
    if changed:
        told = [f"{name} ({shortened(where)})" for name, where in changed.items()]
        return warning(
            subject,
            f"not as this release has them: {listed(told, 3)}; jobs run on what the cluster has",
            tenancy_checks.install_command(facts, "--diff"),
        )
    others = len(found) - len(catalogue.names())
    return ok(
        subject,
        f"all {len(catalogue.names())} of the catalogue"
        + (f", and {counted(others, 'other')}" if others else ""),
    )


def check_nodes(facts: ClusterFacts) -> Finding:
    if isinstance(facts.nodes, Trouble):
        return unread("nodes", facts.nodes)
    nodes = facts.nodes["items"]
    ready = [each for each in nodes if _is_ready(each)]
    away = [each["metadata"]["name"] for each in nodes if not _is_ready(each)]
    if not ready:
        return wrong(
            "nodes",
            f"none is ready{f', of {len(nodes)}' if nodes else ''}: jobs wait, unless nodes are made on demand",
            "kubectl get nodes",
        )
    if away:
        return warning(
            "nodes",
            f"{len(ready)} of {len(nodes)} ready; not ready: {listed(away)}",
            f"kubectl describe node {away[0]}",
        )
    return ok("nodes", f"{counted(len(ready), 'node')} ready")


def check_gpus(facts: ClusterFacts) -> Finding:
    if isinstance(facts.nodes, Trouble):
        return unread("GPUs", facts.nodes)
    total: Counter[str] = Counter()
    holders = 0
    idle = []
    for node in facts.nodes["items"]:
        devices = _devices(node)
        total.update(devices)
        holders += any(devices.values())
        is_marked = (node["metadata"].get("labels") or {}).get("nvidia.com/gpu.present") == "true"
        if is_marked and not devices.get(GPU):
            idle.append(node["metadata"]["name"])
    if idle:
        return warning(
            "GPUs",
            f"{listed(idle)}: labelled as a GPU node, but offers no {GPU}; the device plug-in does not run there",
            "kubectl get pods -A -o wide | grep nvidia-device-plugin",
        )
    if not holders:
        return ok("GPUs", "none now; jobs that ask for one wait until a node has it")
    told = ", ".join(f"{number} {name}" for name, number in sorted(total.items()) if number)
    if not total[GPU]:
        return warning("GPUs", f"{told} on {counted(holders, 'node')}; jobs ask for {GPU}")
    return ok("GPUs", f"{told} on {counted(holders, 'node')}")


def check_storage(facts: ClusterFacts) -> Finding:
    if isinstance(facts.storage_classes, Trouble):
        return unread("storage", facts.storage_classes)
    classes = facts.storage_classes["items"]
    names, defaults = class_names(classes), default_classes(classes)
    if not names:
        return warning(
            "storage",
            "no storage class: claims wait until somebody makes a volume for them by hand",
            "astrago install --apply --storage none",
        )
    if len(defaults) != 1:
        which = f"{listed(defaults)} are all" if defaults else f"none of {listed(names)} is"
        return warning(
            "storage",
            f"{which} the default class: say which one a claim means",
            f"astrago install --apply --storage-class {names[0]}",
        )
    return ok("storage", f"{listed(names)}; default {defaults[0]}")


def _container_names(daemon_set: Json) -> list[str]:
    return [each["name"] for each in daemon_set["spec"]["template"]["spec"]["containers"]]


def _is_ready(node: Json) -> bool:
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in (node.get("status") or {}).get("conditions") or ()
    )


def _devices(node: Json) -> dict[str, int]:
    amounts = (node.get("status") or {}).get("allocatable") or {}
    return {
        name: _number(value)
        for name, value in amounts.items()
        if "/" in name and any(each in name for each in _DEVICES)
    }


def _number(text: object) -> int:
    try:
        quantity = Quantity.parse(str(text))
    except QuantityError:
        return 0
    return int(quantity.number * 10.0**quantity.scale)
