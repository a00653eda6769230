"""What a backend does with the files of the first document, and the manifests of the second, on the real operator."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster.errors import ClusterError
from cluster.operators import Kubectl
from tests.cluster.api import Space
from tests.seeds.bodies import nested
from tests.seeds.documents import ROOT
from tests.seeds.steps import read

Json = dict[str, Any]
INTEGRATION = ROOT / "kubeflow-training-integration"
JOB = "user123-job-20251105130000"


@pytest.fixture
def runtimes(kubectl: Kubectl, version: str) -> None:
    if version != "2.1":
        pytest.skip(f"the documents are about Trainer 2.1, and {version} runs here")
    for name in ("pytorch/pytorch-runtime-simple.yaml", "tensorflow/tensorflow-runtime.yaml"):
        kubectl("apply", "--server-side", "--force-conflicts", "-f", str(INTEGRATION / name))


@pytest.fixture
def user_namespace(kubectl: Kubectl) -> Iterator[str]:
    """Of the second document's manifests, which name it."""
    name = "user-namespace"
    kubectl("create", "namespace", name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")


def load(path: Path) -> Json:
    found: Json = next(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    return found


def in_namespace(file: str, namespace: str) -> Json:
    """A template, for a user's namespace: the first document sets this one field."""
    found = load(INTEGRATION / file)
    found["metadata"]["namespace"] = namespace
    return found


def filled_in(namespace: str, body: Json, name: str) -> Json:
    """The TrainJob's template with a request's values, at the places that the first document sets."""
    job = in_namespace("pytorch/pytorch-distributed-with-configmap.yaml", namespace)
    size = body["config"]
    job["metadata"]["name"] = name
    trainer = job["spec"]["trainer"]
    trainer["numNodes"] = size["num_nodes"]
    limits = trainer["resourcesPerNode"]["limits"]
    limits["nvidia.com/gpu"] = str(size["gpu_per_node"])
    limits["cpu"] = str(size["cpu_per_node"])
    limits["memory"] = size["memory_per_node"]
    for override in job["spec"]["podTemplateOverrides"]:
        for volume in override["spec"]["volumes"]:
            if volume["name"] == "train-script":
                volume["configMap"]["name"] = f"{body['user_id']}-train-script"
    return job


@pytest.mark.seeds("S0-05", "S0-06", "S0-07", "S0-08", "S0-27", "S0-30")
@pytest.mark.req("M10", "M14", "M15", "M26", "M27")
def test_a_backend_that_fills_in_the_files_as_the_document_does(runtimes, space: Space):
    body = nested()
    for file in (
        "pytorch/pytorch-pet-setup.yaml",
        "tensorflow/tensorflow-tf-config-generator.yaml",
    ):
        template = in_namespace(file, space.name)
        space.create(template)
        again = space.try_create(template)
        assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    code = f"{body['user_id']}-train-script"
    space.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": code, "namespace": space.name},
            "data": {"train.py": body["training_code"]},
        }
    )
    space.create(filled_in(space.name, body, JOB))

    pods = space.until("pods", lambda found: len(found) == 2)

    names = sorted(each["metadata"]["name"] for each in pods)
    assert [name.rsplit("-", 1)[0] for name in names] == [f"{JOB}-node-0-{n}" for n in (0, 1)]
    for pod in pods:
        (node,) = pod["spec"]["containers"]
        assert node["resources"]["limits"] == {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
        volumes = {each["name"]: each for each in pod["spec"]["volumes"]}
        assert volumes["train-script"]["configMap"]["name"] == code

    space.delete("trainjobs", JOB)
    space.until_gone("pods")
    for name in ("pytorch-pet-setup", code):
        assert space.find("configmaps", name) is not None


@pytest.mark.seeds("S1-02", "S1-03", "S1-16")
@pytest.mark.req("M38", "M39", "M126", "X6")
def test_the_second_documents_manifests_with_their_variables_moved(
    runtimes: None, user_namespace: str, kubectl: Kubectl, create: Callable[[Json], str]
):
    steps = {step.id: step.data for step in read("S1").steps}
    for manifest in (steps["S1-02"], steps["S1-03"]):
        with pytest.raises(ClusterError, match="must not have envs"):
            create(manifest)

        moved = deepcopy(manifest)
        (override,) = moved["spec"]["podTemplateOverrides"]
        (node,) = override["spec"]["containers"]
        moved["spec"]["trainer"]["env"] = node.pop("env")

        kubectl(
            "create", "--validate=strict", "--dry-run=server", "-f", "-", stdin=json.dumps(moved)
        )
    assert override["spec"]["initContainers"] == steps["S1-16"]["initContainers"]
