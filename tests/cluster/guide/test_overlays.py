"""The legacy overlays as kustomize renders them, and as the operator's own schema takes them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from cluster.operators import Kubectl
from tests.cluster.guide.pages import ROOT

KUSTOMIZE = ROOT / "kustomize"
JOB_NAME = "training.kubeflow.org/job-name"


def rendered(kubectl: Kubectl, folder: str) -> dict[str, Any]:
    return objects(kubectl, folder)["PyTorchJob"]


def objects(kubectl: Kubectl, folder: str) -> dict[str, Any]:
    found = yaml.safe_load_all(kubectl("kustomize", str(KUSTOMIZE / folder)))
    return {each["kind"]: each for each in found}


def take_code(replica: dict[str, Any]) -> tuple[str, str]:
    """Name of the ConfigMap and where it is mounted; both are removed from the pod."""
    (volume,) = replica["template"]["spec"].pop("volumes")
    (mount,) = container(replica).pop("volumeMounts")
    assert volume["name"] == mount["name"]
    return volume["configMap"]["name"], mount["mountPath"]


def replicas(job: dict[str, Any]) -> dict[str, Any]:
    return job["spec"]["pytorchReplicaSpecs"]


def container(replica: dict[str, Any]) -> dict[str, Any]:
    (found,) = replica["template"]["spec"]["containers"]
    return found


@pytest.mark.req("M92", "M93", "M98")
def test_the_base_has_a_master_and_a_worker_that_are_alike(kubectl):
    job = rendered(kubectl, "base")
    gpu = {"nvidia.com/gpu": "1"}

    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v1", "PyTorchJob")
    assert job["spec"]["runPolicy"] == {"cleanPodPolicy": "Running"}
    assert replicas(job)["Master"] == replicas(job)["Worker"]
    master = replicas(job)["Master"]
    assert (master["replicas"], master["restartPolicy"]) == (1, "OnFailure")
    assert master["template"]["spec"]["nodeSelector"] == {"karpenter.sh/nodepool": "gpu"}
    assert master["template"]["spec"]["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    ]
    assert container(master)["name"] == "pytorch"
    assert container(master)["command"] == ["/bin/bash", "-c"]
    assert container(master)["resources"] == {"limits": gpu, "requests": gpu}


@pytest.mark.req("M89", "M94")
def test_ddp_replaces_the_script_of_both_brings_its_code_and_changes_nothing_else(kubectl):
    base, job = rendered(kubectl, "base"), rendered(kubectl, "overlays/ddp")

    for replica in replicas(job).values():
        script = container(replica)["args"].pop().splitlines()
        assert take_code(replica) == ("mnist-ddp", "/workspace/code/samples")
        assert script == [
            "set -e",
            "cd /workspace/code/samples",
            "exec torchrun --nnodes 2 --nproc_per_node=1 mnist-ddp.py",
        ]
    for replica in replicas(base).values():
        container(replica)["args"].pop()
    assert job == base


@pytest.mark.req("M95")
def test_fsdp_has_three_workers_that_follow_the_master_to_its_machine(kubectl):
    found = replicas(rendered(kubectl, "overlays/fsdp"))
    affinities = {name: each["template"]["spec"]["affinity"] for name, each in found.items()}
    (rule,) = affinities["Worker"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]

    assert {name: each["replicas"] for name, each in found.items()} == {"Master": 1, "Worker": 3}
    for each in found.values():
        script = container(each)["args"][0].splitlines()
        assert take_code(each) == ("t5-fsdp", "/workspace/code/samples/fsdp")
        assert script[1:3] == [
            "cd /workspace/code/samples/fsdp",
            "pip install -r requirements.txt",
        ]
        assert script[3].startswith("exec torchrun --nnodes 4 --nproc_per_node=1 t5-fsdp.py")
    assert affinities["Master"]["nodeAffinity"] == affinities["Worker"]["nodeAffinity"]
    assert "podAffinity" not in affinities["Master"], "it is the first"
    assert rule["topologyKey"] == "kubernetes.io/hostname"
    assert rule["labelSelector"] == {"matchLabels": {JOB_NAME: "pytorch-dist-job"}}


def test_ddp_without_gpus_asks_for_nothing_of_a_gpu_node(kubectl):
    for replica in replicas(rendered(kubectl, "overlays/ddp-cpu")).values():
        assert take_code(replica) == ("mnist-ddp", "/workspace/code/samples")
        assert set(replica["template"]["spec"]) == {"containers"}
        assert set(container(replica)["resources"]["requests"]) == {"cpu", "memory"}
        assert set(container(replica)["resources"]["limits"]) == {"memory"}


@pytest.mark.parametrize(
    ("overlay", "names"),
    [("ddp", ["mnist-ddp.py"]), ("fsdp", ["t5-fsdp.py", "requirements.txt"])],
)
def test_the_code_of_an_overlay_is_in_its_config_map(kubectl, overlay, names):
    data = objects(kubectl, f"overlays/{overlay}")["ConfigMap"]["data"]

    folder = KUSTOMIZE / "overlays" / overlay
    assert data == {name: (folder / name).read_text(encoding="utf-8") for name in names}


@pytest.mark.req("M89")
@pytest.mark.parametrize("overlay", ["ddp", "ddp-cpu", "fsdp"])
def test_the_operator_takes_every_overlay(kubectl, namespace, overlay):
    if "pytorchjobs.kubeflow.org" not in kubectl("get", "crd", "-o", "name"):
        pytest.skip("the legacy operator is not installed: make cluster LEGACY=1")
    job = kubectl("kustomize", str(KUSTOMIZE / "overlays" / overlay))

    created = kubectl(
        "create", "-n", namespace, "--dry-run=server", "--validate=strict", "-f", "-", stdin=job
    )

    config_map, job = created.splitlines()
    assert config_map.startswith("configmap/")
    assert config_map.endswith(" created (server dry run)")
    assert job == "pytorchjob.kubeflow.org/pytorch-dist-job created (server dry run)"
