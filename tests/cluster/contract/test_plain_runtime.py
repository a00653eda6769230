"""A runtime without torch or MPI: the operator counts nodes and hands variables on, the rank comes from Kubernetes."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    PLAIN,
    a_node,
    a_runtime,
    a_trainjob,
    by_rank,
    ended,
    environment,
    pods_of,
)


@pytest.mark.req("M124", "M20")
def test_a_plain_runtime_gives_a_rank_and_the_users_variables_and_nothing_else(space):
    space.create(a_runtime(a_node("env; sleep 1"), policy=PLAIN))
    mine = {"name": "EPOCHS", "value": "3"}

    space.create(a_trainjob(nodes=2, trainer={"env": [mine]}))
    space.until_one("trainjobs", "job", ended)

    pods = by_rank(space.list("pods", labelSelector=pods_of("job")))
    seen = [environment(space.log(pod["metadata"]["name"])) for pod in pods]
    assert [env["JOB_COMPLETION_INDEX"] for env in seen] == ["0", "1"]
    assert [env["EPOCHS"] for env in seen] == ["3", "3"]
    assert [name for env in seen for name in env if name.startswith("PET_")] == []


@pytest.mark.req("M124", "M127")
def test_a_plain_runtime_takes_the_variables_that_torch_reserves(space):
    space.create(a_runtime(a_node("env"), policy=PLAIN))
    theirs = {"name": "PET_NNODES", "value": "2"}

    answer = space.try_create(a_trainjob(trainer={"env": [theirs]}), dryRun="All")

    assert answer.code == 201
