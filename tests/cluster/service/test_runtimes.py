"""A server on a cluster offers, previews and runs the runtimes that are installed there, whatever it was built with."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

import pytest
from cluster.operators import Kubectl
from tests.cluster.api import PATIENCE
from tests.cluster.service.people import Person

from astrago_trainer import catalogue
from astrago_trainer.client import Refused


@pytest.fixture
def other(kubectl: Kubectl, ann: Person) -> Iterator[str]:
    """One of the administrators' own: ours under another name, with a variable of theirs."""
    manifest = catalogue.load_runtime("pytorch-runtime")
    name = manifest["metadata"]["name"] = f"of-the-house-{uuid.uuid4().hex[:6]}"
    apply(kubectl, manifest, "one")
    yield name
    kubectl("delete", "clustertrainingruntime", name, "--wait=false")


def apply(kubectl: Kubectl, manifest: dict, value: str) -> None:
    (job,) = manifest["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] = [
        *(each for each in container.get("env", []) if each["name"] != "HOUSE"),
        {"name": "HOUSE", "value": value},
    ]
    kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))


def request(ann: Person, runtime: str) -> dict:
    return {
        "name": "job",
        "user": ann.user,
        "framework": "pytorch",
        "runtime": runtime,
        "nodes": 1,
        "resources": {"cpu": "50m", "memory": "256Mi"},
        "code": {"inline": "import os; print(os.environ['HOUSE'])\n"},
    }


def offered(ann: Person) -> dict[str, dict]:
    return {each["name"]: each for each in ann.ask("GET", "/api/v1/runtimes").json()["items"]}


def until_offered(ann: Person, name: str, value: str) -> None:
    """The watch shows it a moment after it was written."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        answer = ann.ask("GET", f"/api/v1/runtimes/{name}")
        if f'{{"name":"HOUSE","value":"{value}"}}' in answer.text.replace(" ", ""):
            return
    raise AssertionError(f"{name} does not say {value}: {answer.text}")


def test_a_runtime_of_the_administrators_is_offered_previewed_and_run(ann, kubectl, other):
    until_offered(ann, other, "one")
    found = offered(ann)
    assert set(catalogue.names()) <= set(found)
    assert found["pytorch-simple"]["about"] == catalogue.get_runtime("pytorch-simple").about
    assert "cluster" in found[other]["summary"]
    path = f"/api/v1/namespaces/{ann.namespace}/jobs"
    preview = ann.ask("POST", f"{path}:preview", request(ann, other))
    assert preview.status_code == 200, preview.text
    assert '"HOUSE"' in preview.text
    ann.client.submit(**request(ann, other))
    assert ann.wait("job").has_succeeded
    assert ann.lines("job")[-1] == "one"


def test_a_change_of_a_runtime_shows_in_the_next_preview(ann, kubectl, other):
    until_offered(ann, other, "one")
    manifest = json.loads(kubectl("get", "clustertrainingruntime", other, "-o", "json"))
    for key in ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation"):
        manifest["metadata"].pop(key, None)
    apply(kubectl, manifest, "two")
    until_offered(ann, other, "two")
    path = f"/api/v1/namespaces/{ann.namespace}/jobs:preview"
    assert '"two"' in ann.ask("POST", path, request(ann, other)).text


def test_a_runtime_that_is_not_there_is_refused_at_once(ann):
    with pytest.raises(Refused) as refused:
        ann.client.submit(**request(ann, "pytorch-simpel"))
    (problem,) = refused.value.problems
    assert "on this cluster" in problem.message
    assert "pytorch-simple" in problem.remedy
    assert "torch-distributed" in problem.remedy, "upstream's are offered as well"
