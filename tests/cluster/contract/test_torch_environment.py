"""What the torch policy puts into the container `node`, read inside it."""

from __future__ import annotations

import pytest
from tests.cluster.contract.jobs import (
    SHELL_IMAGE,
    TORCH,
    a_node,
    a_runtime,
    a_trainjob,
    by_rank,
    ended,
    environment,
    pods_of,
    without_trainer,
)

from builders import container_of, env_of, pod_of


@pytest.mark.req("M123", "M19")
def test_each_rank_finds_the_variables_of_torchrun(space):
    space.create(a_runtime(a_node("env; sleep 1")))

    space.create(
        a_trainjob("ranks", nodes=2, trainer={"resourcesPerNode": {"requests": {"cpu": "500m"}}})
    )
    space.until_one("trainjobs", "ranks", ended)

    pods = by_rank(space.list("pods", labelSelector=pods_of("ranks")))
    seen = [environment(space.log(pod["metadata"]["name"])) for pod in pods]
    torchrun = [{key: env[key] for key in env if key.startswith("PET_")} for env in seen]
    common = {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": "ranks-node-0-0.ranks",
        "PET_MASTER_PORT": "29500",
    }
    assert torchrun == [{**common, "PET_NODE_RANK": "0"}, {**common, "PET_NODE_RANK": "1"}]
    others = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
    assert [others & env.keys() for env in seen] == [set(), set()]
    assert [env["JOB_COMPLETION_INDEX"] for env in seen] == ["0", "1"]


GPU = {"limits": {"nvidia.com/gpu": "4", "cpu": "8"}}


@pytest.mark.req("M123", "M120")
def test_the_number_of_processes_follows_the_cpus_unless_there_is_a_gpu(space):
    space.create(a_runtime(a_node("env")))
    expected = {
        "half": ({"requests": {"cpu": "500m"}}, "1"),
        "one-and-a-half": ({"requests": {"cpu": "1500m"}}, "2"),
        "limit-alone": ({"limits": {"cpu": "3"}}, "3"),
        "request-first": ({"requests": {"cpu": "2"}, "limits": {"cpu": "8"}}, "2"),
        "memory-alone": ({"requests": {"memory": "1Gi"}}, "1"),
        "gpu": (GPU, "auto"),
        "no-gpu": ({"limits": {"nvidia.com/gpu": "0", "cpu": "4"}}, "4"),
        "slice-of-one": ({"limits": {"nvidia.com/mig-1g.5gb": "1", "cpu": "4"}}, "4"),
    }

    for name, (resources, _) in expected.items():
        space.create(a_trainjob(name, suspend=True, trainer={"resourcesPerNode": resources}))
    found = {name: _processes(space, name) for name in expected}

    assert found == {name: count for name, (_, count) in expected.items()}


@pytest.mark.req("M123", "M120")
def test_a_given_number_of_processes_is_kept(space, version):
    space.create(a_runtime(a_node("env")))
    given = {"number": 3}
    if version == "2.1":
        given |= {"word-cpu": "cpu", "word-gpu": "gpu", "word-auto": "auto"}

    for name, count in given.items():
        trainer = {"numProcPerNode": count, "resourcesPerNode": GPU}
        space.create(a_trainjob(name, suspend=True, trainer=trainer))
    found = {name: _processes(space, name) for name in given}

    # cpu is counted by the operator; gpu and auto are left to torchrun
    counted = {"number": "3", "word-cpu": "8", "word-gpu": "gpu", "word-auto": "auto"}
    assert found == {name: counted[name] for name in given}


@pytest.mark.req("M123", "M127")
def test_a_trainjob_without_trainer_gets_no_variables_at_all(space):
    space.create(a_runtime(a_node("env"), policy={**TORCH, "numNodes": 2}))

    space.create(without_trainer(a_trainjob(suspend=True)))
    job_set = space.until_one("jobsets", "job")

    assert "env" not in container_of(job_set)
    assert job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] == 2


@pytest.mark.req("M123")
def test_other_containers_get_no_variables(space):
    prepare = {"name": "prepare", "image": SHELL_IMAGE}
    space.create(a_runtime(a_node("env", pod={"initContainers": [prepare]})))

    space.create(a_trainjob(suspend=True))
    pod = pod_of(space.until_one("jobsets", "job"))

    assert "env" not in pod["initContainers"][0]


def _processes(space, name: str) -> str | None:
    return env_of(container_of(space.until_one("jobsets", name)))["PET_NPROC_PER_NODE"]
