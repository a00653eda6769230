"""Nodes of a cloud, as users of the service see them: the list, who is on them, and why a job finds no room."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.nodes import set_fake_nodes
from cluster.operators import Kubectl
from tests.cluster.api import PATIENCE

ASTRAGO = str(Path(sys.executable).with_name("astrago"))


@pytest.fixture
def nodes(kubectl: Kubectl) -> Iterator[None]:
    set_fake_nodes(kubectl, 4)
    yield
    set_fake_nodes(kubectl, 0)


def astrago(person, *words):
    """The command as people type it, with a token in the environment."""
    settings = {"ASTRAGO_SERVER": person.address, "ASTRAGO_TOKEN": person.token}
    done = subprocess.run(
        [ASTRAGO, *words],
        env={**os.environ, **settings, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def until_listed(person, count):
    """The engine watches nodes, so its list follows them."""
    while len(found := person.ask("GET", "/api/v1/nodes").json()["items"]) != count:
        assert found
    return found


@pytest.mark.req("M113", "X15")
def test_the_list_has_the_columns_and_what_is_free(ann, nodes):
    found = until_listed(ann, 5)
    large = next(each for each in found if each["name"] == "fake-0000")
    assert (large["instance_type"], large["zone"], large["capacity_type"], large["gpus"]) == (
        "g6e.48xlarge",
        "ap-northeast-2a",
        "on-demand",
        8,
    )
    assert large["free"] == large["capacity"]
    heading, *rows = astrago(ann, "nodes").splitlines()
    assert heading.split() == [
        "NAME", "INSTANCE-TYPE", "ARCH", "OS-IMAGE", "GPU", "CAPACITY", "FREE",
    ]  # fmt: skip
    row = next(row for row in rows if row.startswith("fake-0000"))
    assert row.split()[:3] == ["fake-0000", "g6e.48xlarge", "amd64"]
    assert row.endswith("8/8 GPU")
    arm = next(row for row in rows if row.startswith("fake-0002"))
    assert ("<none>" in arm, "spot" in arm) == (True, True)
    assert json.loads(astrago(ann, "nodes", "-o", "json"))["items"] == found


@pytest.mark.req("M107", "M112", "X19")
def test_a_job_that_fits_nowhere_is_told_with_the_numbers_of_each_node(ann, nodes):
    until_listed(ann, 5)
    ann.submit("print('never')\n", name="huge", resources={"gpus": 64, "memory": "1Gi", "cpu": 1})
    waiting = ann.until("huge", lambda job: "5 Insufficient nvidia.com/gpu" in job.message)
    assert (waiting.phase, waiting.reason) == ("Pending", "Unschedulable")
    assert "It needs 1 CPU, 1 GiB, 64 GPU" in waiting.message
    assert "fake-0000: 192 of 192 CPU, 1536 of 1536 GiB, 8 of 8 GPU" in waiting.message
    # An autoscaler says that a node is on its way (M112): the wait is normal, and told as such.
    (pod,) = ann.space.list("pods")
    meta = pod["metadata"]
    ann.space.create(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "nominated"},
            "involvedObject": {
                "kind": "Pod",
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
            },
            "reason": "Nominated",
            "message": "Pod should schedule on: nodeclaim/gpu-abcde",
            "source": {"component": "karpenter"},
            "firstTimestamp": meta["creationTimestamp"],
            "lastTimestamp": meta["creationTimestamp"],
            "type": "Normal",
        }
    )
    hopeful = ann.until("huge", lambda job: job.reason == "NodeProvisioning")
    assert "nodeclaim/gpu-abcde" in hopeful.message
    ann.delete("huge")
