"""Names, labels and addresses of the pods of a job."""

from __future__ import annotations

import re

import pytest
from tests.cluster.contract.jobs import (
    PYTHON_IMAGE,
    a_node,
    a_runtime,
    a_trainjob,
    by_rank,
    phases,
    pods_of,
)

# Rank 0 stays: the record of a pod goes when the pod ends. It may come a little later than rank 1.
RESOLVE = """
import os, socket, time
print("hostname", socket.gethostname(), flush=True)
if os.environ["JOB_COMPLETION_INDEX"] == "0":
    time.sleep(3600)
for name in os.environ["NAMES"].split():
    while True:
        try:
            print(name, socket.gethostbyname(name), flush=True)
            break
        except socket.gaierror:
            time.sleep(0.2)
time.sleep(1)
"""


@pytest.mark.req("M132", "M123", "M13", "M26")
def test_pods_are_found_by_label_and_find_each_other_by_name(space):
    node = a_node(RESOLVE, command=["python3", "-c"], image=PYTHON_IMAGE)
    space.create(a_runtime(node))
    master = "net-node-0-0.net"
    names = f"{master} {master}.{space.name}.svc.cluster.local"

    space.create(a_trainjob("net", nodes=2, trainer={"env": [{"name": "NAMES", "value": names}]}))
    pods = space.until(
        "pods", lambda all_: phases(all_) == ["Running", "Succeeded"], labelSelector=pods_of("net")
    )
    first, second = by_rank(pods)

    address = first["status"]["podIP"]
    assert space.log(second["metadata"]["name"]).splitlines() == [
        "hostname net-node-0-1",
        *(f"{name} {address}" for name in names.split()),
    ]
    assert re.fullmatch(r"net-node-0-0-[a-z0-9]{5}", first["metadata"]["name"])
    assert re.fullmatch(r"net-node-0-1-[a-z0-9]{5}", second["metadata"]["name"])
    assert (second["spec"]["hostname"], second["spec"]["subdomain"]) == ("net-node-0-1", "net")


@pytest.mark.req("M132")
def test_pods_carry_what_is_needed_to_tell_them_apart(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob("net", nodes=2))
    pods = space.until("pods", lambda all_: len(all_) == 2, labelSelector=pods_of("net"))

    second = by_rank(pods)[1]["metadata"]
    expected = {
        "batch.kubernetes.io/job-completion-index": "1",
        "batch.kubernetes.io/job-name": "net-node-0",
        "jobset.sigs.k8s.io/jobset-name": "net",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": "0",
    }
    assert expected.items() <= second["labels"].items()
    in_both = {key for key in expected if key != "batch.kubernetes.io/job-name"}
    assert in_both <= second["annotations"].keys()


@pytest.mark.req("M132")
def test_the_service_of_a_job_has_its_name_and_no_address(space):
    space.create(a_runtime(a_node("exit 0")))

    space.create(a_trainjob("net", suspend=True))
    service = space.until_one("services", "net")["spec"]

    assert service["clusterIP"] == "None"
    assert service["publishNotReadyAddresses"] is True
    assert service["selector"] == {"jobset.sigs.k8s.io/jobset-name": "net"}


@pytest.mark.req("M132")
def test_labels_of_a_trainjob_do_not_reach_its_pods(space, version):
    space.create(a_runtime(a_node("exit 0")))
    trainjob = a_trainjob("net", **({"labels": {"team": "vision"}} if version == "2.1" else {}))
    trainjob["metadata"]["labels"] = {"owner": "user123"}

    space.create(trainjob)
    (pod,) = space.until("pods", bool, labelSelector=pods_of("net"))
    job_set = space.get("jobsets", "net")["metadata"]

    assert {"team", "owner"} & pod["metadata"]["labels"].keys() == set()
    assert job_set.get("labels") == ({"team": "vision"} if version == "2.1" else None)
