"""How long a name may be: two limits, and the lower one is noticed only after the job was accepted."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    SHELL_IMAGE,
    a_node,
    a_runtime,
    a_trainjob,
    conditions,
    refusal,
)

from builders import a_job

TOO_LONG = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"


@pytest.mark.req("M121")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("9job", "metadata.name must match RFC 1035 DNS label format"),
        ("my.job", "metadata.name must match RFC 1035 DNS label format"),
        ("j" * 64, "metadata.name must be no more than 63 characters"),
        ("Job", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric"),
        ("job-", "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric"),
    ],
    ids=["digit first", "dot", "64 characters", "upper case", "dash last"],
)
def test_a_name_that_is_no_dns_label_is_refused(space, name, reason):
    space.create(a_runtime(a_node("exit 0")))

    answer = space.try_create(a_trainjob(name))

    assert answer.code == 422
    assert reason in answer.message


@pytest.mark.req("M121", "M122")
def test_a_name_of_63_characters_is_taken_but_its_job_is_never_made(space, version):
    space.create(a_runtime(a_node("exit 0")))
    name = "j" * 63

    space.create(a_trainjob(name))
    event = space.until_event("TrainJobResourcesCreationFailed", name)

    assert event["type"] == "Warning"
    assert event["message"].startswith("TrainJob resources reconciliation failed: ")
    assert refusal(TOO_LONG, version, name) in event["message"]
    space.settle()
    assert conditions(space.get("trainjobs", name)) == {}
    assert space.find("jobsets", name) is None


@pytest.mark.req("M122")
@pytest.mark.parametrize(("nodes", "longest"), [(1, 48), (10, 48), (11, 47), (100, 47), (101, 46)])
def test_the_longest_name_depends_on_the_number_of_nodes(space, version, nodes, longest):
    space.create(a_runtime(a_node("exit 0")))
    fits, too_long = "j" * longest, "k" * (longest + 1)

    space.create(
        a_trainjob(fits, nodes=nodes, suspend=True), a_trainjob(too_long, nodes=nodes, suspend=True)
    )

    space.until_one("jobsets", fits)
    event = space.until_event("TrainJobResourcesCreationFailed", too_long)
    assert refusal(TOO_LONG, version, too_long) in event["message"]


@pytest.mark.req("M122")
def test_the_longest_name_of_an_mpi_job_is_44_characters(space, version):
    container = {"name": "node", "image": SHELL_IMAGE}
    launcher = a_job("launcher", "trainer", pod={"containers": [container]})
    worker = a_job("node", None, pod={"containers": [container]})
    space.create(a_runtime(launcher, worker, policy={"numNodes": 1, "mpi": {}}))
    fits, too_long = "j" * 44, "k" * 45

    space.create(a_trainjob(fits, suspend=True), a_trainjob(too_long, suspend=True))

    space.until_one("jobsets", fits)
    event = space.until_event("TrainJobResourcesCreationFailed", too_long)
    assert refusal(TOO_LONG, version, too_long) in event["message"]
