"""Fake GPU nodes: they look like a cloud's, and what runs on them goes through its life without a process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from cluster.layout import NODE_NAME
from cluster.nodes import set_fake_nodes
from cluster.operators import Kubectl

LARGE = {
    "node.kubernetes.io/instance-type": "g6e.48xlarge",
    "topology.kubernetes.io/zone": "ap-northeast-2a",
}
COLUMNS = (
    r"NAME:.metadata.name,TYPE:.metadata.labels.node\.kubernetes\.io/instance-type,"
    r"ARCH:.status.nodeInfo.architecture,OS:.status.nodeInfo.osImage,"
    r"GPU:.status.capacity.nvidia\.com/gpu,CAPACITY:.metadata.labels.karpenter\.sh/capacity-type"
)


@pytest.fixture
def nodes(kubectl: Kubectl) -> Iterator[None]:
    set_fake_nodes(kubectl, 4)
    yield
    set_fake_nodes(kubectl, 0)


def gpu_job(name: str, nodes: int, gpus: int) -> dict:
    resources = {"nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "numNodes": nodes,
                "command": ["torchrun", "train.py"],
                "resourcesPerNode": {"limits": resources, "requests": resources},
            },
        },
    }


def pods_of(kubectl: Kubectl, namespace: str, job: str) -> list[dict]:
    selector = f"jobset.sigs.k8s.io/jobset-name={job}"
    return json.loads(kubectl("-n", namespace, "get", "pods", "-l", selector, "-o", "json"))[
        "items"
    ]


@pytest.mark.req("M113", "X15")
def test_the_node_list_has_the_columns_of_a_cloud(kubectl, nodes):
    listed = kubectl(
        "get", "nodes", "-l", "kwok.x-k8s.io/node=fake", "-o", f"custom-columns={COLUMNS}"
    )

    rows = [line.split() for line in listed.splitlines()]
    assert rows == [
        ["NAME", "TYPE", "ARCH", "OS", "GPU", "CAPACITY"],
        ["fake-0000", "g6e.48xlarge", "amd64", "Amazon", "Linux", "2023", "8", "on-demand"],
        ["fake-0001", "g6e.48xlarge", "amd64", "Amazon", "Linux", "2023", "8", "on-demand"],
        ["fake-0002", "c7g.2xlarge", "arm64", "Amazon", "Linux", "2023", "<none>", "spot"],
        ["fake-0003", "c6i.2xlarge", "amd64", "Amazon", "Linux", "2023", "<none>", "on-demand"],
    ]


@pytest.mark.req("M103", "M107", "X19")
def test_a_gpu_job_lands_on_matching_nodes_and_completes(kubectl, nodes, namespace, version):
    job = gpu_job("t5-large", nodes=2, gpus=8)
    pod = {"nodeSelector": LARGE}
    if version == "2.1":
        job["spec"]["podTemplateOverrides"] = [{"targetJobs": [{"name": "node"}], "spec": pod}]
    else:
        node = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
        template = {"template": {"spec": {"replicatedJobs": [node]}}}
        job["spec"]["runtimePatches"] = [
            {"manager": "example.org/test", "trainingRuntimeSpec": template}
        ]

    kubectl("-n", namespace, "create", "--validate=strict", "-f", "-", stdin=json.dumps(job))
    kubectl(
        "-n", namespace, "wait", "--for=condition=Complete", "trainjob/t5-large", "--timeout=120s"
    )

    pods = pods_of(kubectl, namespace, "t5-large")
    # Both on one when the first has ended before the second is placed: it takes a node's GPUs for a moment only.
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"fake-0000", "fake-0001"}
    assert len(pods) == 2
    assert {pod["status"]["phase"] for pod in pods} == {"Succeeded"}


def test_a_job_that_fits_nowhere_waits_with_the_reason(kubectl, nodes, namespace):
    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(gpu_job("huge", 1, gpus=64)))
    selector = "jobset.sigs.k8s.io/jobset-name=huge"
    kubectl("-n", namespace, "wait", "--for=create", "pod", "-l", selector, "--timeout=120s")
    kubectl(
        *("-n", namespace, "wait", "pod", "-l", selector, "--timeout=120s"),
        "--for=condition=PodScheduled=False",
    )

    (pod,) = pods_of(kubectl, namespace, "huge")
    (told,) = [each for each in pod["status"]["conditions"] if each["type"] == "PodScheduled"]
    assert told["reason"] == "Unschedulable"
    assert told["message"].startswith("0/5 nodes are available: 5 Insufficient nvidia.com/gpu.")


def test_pods_that_do_not_ask_for_a_gpu_stay_on_the_real_node(kubectl, nodes, namespace):
    pods = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "plain"},
        "spec": {
            "parallelism": 6,
            "completions": 6,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [
                        {"name": "c", "image": "busybox:1.36.1", "command": ["true"]},
                    ],
                }
            },
        },
    }

    kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(pods))
    kubectl("-n", namespace, "wait", "--for=condition=Complete", "job/plain", "--timeout=120s")

    found = json.loads(kubectl("-n", namespace, "get", "pods", "-o", "json"))["items"]
    assert {pod["spec"]["nodeName"] for pod in found} == {NODE_NAME}


def test_a_thousand_nodes_are_ready_and_go_again(kubectl):
    set_fake_nodes(kubectl, 1000)

    names = kubectl("get", "nodes", "-l", "kwok.x-k8s.io/node=fake", "-o", "name").split()
    set_fake_nodes(kubectl, 0)
    rest = kubectl("get", "nodes", "-o", "name").split()

    assert len(names) == 1000
    assert rest == [f"node/{NODE_NAME}"]
