"""The first API on the real Trainer: both bodies, the three objects, status, logs, deletion."""

from __future__ import annotations

import re

import pytest
from tests.cluster.api import LINGER

from astrago_trainer.catalogue import names, system_scripts

IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"
CODE = LINGER + "import os\nprint('I am', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"


def nested(person, code=CODE, framework="pytorch"):
    """As M21, without GPUs, which this cluster has none of."""
    return {
        "user_id": person.user,
        "namespace": person.namespace,
        "framework": framework,
        "training_code": code,
        "config": {
            "num_nodes": 2,
            "gpu_per_node": 0,
            "cpu_per_node": 1,
            "memory_per_node": "256Mi",
        },
    }


def flat(person, code=CODE):
    """As M54, without GPUs and claims."""
    return {
        "user_id": person.user,
        "namespace": person.namespace,
        "framework": "pytorch",
        "training_code": code,
        "image": IMAGE,
        "num_nodes": 2,
        "cpu_request": "50m",
        "cpu_limit": "1",
        "memory_request": "128Mi",
        "memory_limit": "256Mi",
        "gpu_count": 0,
        "command": 'python /workspace/scripts/train.py; echo "$EPOCHS" epochs',
        "env_vars": [{"name": "EPOCHS", "value": "10"}],
        "volumes": [],
    }


def create(person, body):
    made = person.first("POST", "create", body)
    assert made["status"] == "success"
    assert made["namespace"] == person.namespace
    assert re.fullmatch(rf"{person.user}-job-\d{{14}}(-\w+)?", made["trainjob_name"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", made["created_at"])
    return made["trainjob_name"]


@pytest.mark.req("M4", "M6", "M7", "M10", "M14", "M15", "M16", "M17", "M21", "M22")
def test_the_three_objects_are_there_when_the_answer_comes(ann):
    name = create(ann, nested(ann))

    trainjob = ann.space.get("trainjobs", name)
    code = ann.space.get("configmaps", f"{ann.user}-train-script")
    system = ann.space.get("configmaps", "pytorch-pet-setup")
    assert code["data"] == {"train.py": CODE}
    assert system["data"]["setup_pytorch_env.sh"] == system_scripts()["setup_pytorch_env.sh"]
    trainer = trainjob["spec"]["trainer"]
    assert trainjob["spec"]["runtimeRef"]["name"] == "pytorch-simple"
    assert (trainer["numNodes"], trainer["resourcesPerNode"]["limits"]) == (
        2,
        {"cpu": "1", "memory": "256Mi"},
    )

    second = create(ann, nested(ann, code=CODE + "# changed\n"))

    assert second != name
    assert ann.space.get("configmaps", "pytorch-pet-setup")["metadata"] == system["metadata"]
    assert ann.space.get("configmaps", f"{ann.user}-train-script")["data"] == {"train.py": CODE}


@pytest.mark.req("M1", "M2", "M11", "M19", "M23", "M24", "M25", "M26", "M27", "M28", "M61", "M131")
@pytest.mark.seeds("S0-30")
def test_a_job_from_its_creation_to_its_deletion(ann):
    name = create(ann, nested(ann))
    place = {"namespace": ann.namespace}

    running = ann.first("GET", f"{name}/status", **place)
    assert (running["state"], running["completed_at"]) == ("Running", None)
    job = ann.wait(name)
    status = ann.first("GET", f"{name}/status", **place)
    condition = ann.space.get("trainjobs", name)["status"]["conditions"][-1]
    assert (status["state"], status["message"]) == ("Complete", "jobset completed successfully")
    assert status["completed_at"] == condition["lastTransitionTime"]
    assert status["created_at"] <= status["completed_at"]
    assert job.started_at is not None

    logs = [ann.first("GET", f"{name}/logs", worker=worker, **place)["logs"] for worker in (0, 1)]
    assert ["I am 0 of 2" in logs[0], "I am 1 of 2" in logs[1]] == [True, True]
    missing = ann.ask("GET", f"/api/trainjob/{name}/logs?namespace={ann.namespace}&worker=9")
    assert (missing.status_code, "detail" in missing.json()) == (404, True)

    gone = ann.first("DELETE", name, **place)
    assert gone == {"status": "success", "trainjob_name": name, "namespace": ann.namespace}
    for kind in ("trainjobs", "jobsets", "jobs", "pods"):
        ann.space.until_gone(kind)
    ann.space.until_gone("configmaps", fieldSelector=f"metadata.name={ann.user}-train-script")
    assert ann.space.find("configmaps", "pytorch-pet-setup") is not None
    ann.until_gone(name)
    assert ann.ask("GET", f"/api/trainjob/{name}/status?namespace=x").status_code == 404


@pytest.mark.req("M37", "M41", "M51", "M52", "M54", "M55")
def test_the_second_body_runs_its_command_with_its_variables(ann):
    name = create(ann, flat(ann))
    assert ann.wait(name).has_succeeded, ann.client.get(name)
    logs = ann.first("GET", f"{name}/logs", namespace=ann.namespace, worker=1)["logs"]
    assert "I am 1 of 2\n10 epochs\n" in logs
    trainer = ann.space.get("trainjobs", name)["spec"]["trainer"]
    assert (trainer["image"], trainer["numNodes"]) == (IMAGE, 2)
    assert {"name": "EPOCHS", "value": "10"} in trainer["env"]
    assert trainer["resourcesPerNode"] == {
        "limits": {"cpu": "1", "memory": "256Mi"},
        "requests": {"cpu": "50m", "memory": "128Mi"},
    }


@pytest.mark.req("M23", "M24")
def test_a_job_that_ends_badly_says_why(ann):
    name = create(ann, nested(ann, code=LINGER + "sys.exit('no data')\n"))
    assert ann.wait(name).phase == "Failed"
    status = ann.first("GET", f"{name}/status", namespace=ann.namespace)
    assert status["state"] == "Failed"
    assert "exit code 1" in status["message"]
    assert "no data" in status["message"]


@pytest.mark.req("M28", "M56", "M57")
def test_what_is_wrong_with_a_request_is_told_and_makes_nothing(ann):
    broken = [
        {**nested(ann), "framework": "caffe"},
        {key: value for key, value in nested(ann).items() if key != "training_code"},
        {**nested(ann), "config": {"num_nodes": 0}},
    ]
    for body in broken:
        answer = ann.ask("POST", "/api/trainjob/create", body)
        assert (answer.status_code, bool(answer.json()["detail"])) == (422, True)
    assert ann.space.list("trainjobs") == []


@pytest.mark.req("M12", "M13", "M20", "M39")
def test_tensorflow_finds_its_workers(ann):
    code = LINGER + "import os\nprint('TF_CONFIG is', os.environ['TF_CONFIG'])\n"
    name = create(ann, nested(ann, code=code, framework="tensorflow"))
    assert ann.wait(name).has_succeeded, ann.client.get(name)
    hosts = [f"{name}-node-0-{index}.{name}.{ann.namespace}.svc.cluster.local" for index in (0, 1)]
    for rank in (0, 1):
        (said,) = [line for line in ann.lines(name, rank) if line.startswith("TF_CONFIG is")]
        assert all(f"{host}:2222" in said for host in hosts)
        assert re.search(rf'"index": ?{rank}\b', said)


@pytest.mark.req("M8")
def test_runtimes_are_the_administrators_and_stay_as_they_are(ann, api):
    def runtimes():
        answer = api.ask("GET", "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes")
        return {
            each["metadata"]["name"]: (each["metadata"]["uid"], each["spec"])
            for each in answer.body["items"]
            if each["metadata"]["name"] in names()
        }

    before = runtimes()
    name = create(ann, nested(ann))
    ann.wait(name)
    ann.delete(name)
    assert runtimes() == before
    assert set(before) == set(names())
