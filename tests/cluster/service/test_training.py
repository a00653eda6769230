"""Plain training code of both frameworks, posted without any set-up, trains on two nodes of the cluster."""

from __future__ import annotations

import json

import pytest
from tests.cluster.api import LINGER

from astrago_trainer.catalogue import script

ENV = [{"name": "EPOCHS", "value": "1"}, {"name": "SAMPLES", "value": "1920"}]
MILESTONES = {
    "pytorch": ("pytorch-simple", ("Rank: 0/2", "분산 학습 완료!", "노드 수: 2")),
    "tensorflow": (
        "tensorflow-distributed",
        ("initialized with 2 replicas", "분산 학습 완료!", "노드 수: 2"),
    ),
}


def a_volume(name, claim, folder):
    """A claim and a folder of the node for it, as an administrator makes them; the cluster has no provisioner."""
    size = {"storage": "16Mi"}
    modes = ["ReadWriteMany"]
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {
                "capacity": size,
                "accessModes": modes,
                "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"name": claim[1], "namespace": claim[0]},
                "hostPath": {"path": str(folder), "type": "DirectoryOrCreate"},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim[1], "namespace": claim[0]},
            "spec": {
                "accessModes": modes,
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": size},
            },
        },
    ]


@pytest.mark.req("M1", "M2", "M36", "M62", "M71", "M72")
@pytest.mark.parametrize("framework", MILESTONES)
def test_plain_code_trains_on_two_nodes(framework, ann):
    runtime, milestones = MILESTONES[framework]
    body = {
        "user_id": ann.user,
        "namespace": ann.namespace,
        "framework": framework,
        "training_code": script(runtime),
        "image": {
            "pytorch": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
            "tensorflow": "tensorflow/tensorflow:2.15.0-gpu",
        }[framework],
        "num_nodes": 2,
        "cpu_request": "100m",
        "cpu_limit": "2",
        "memory_request": "512Mi",
        "memory_limit": "2Gi",
        "gpu_count": 0,
        "command": f"python{'3' * (framework == 'tensorflow')} /workspace/scripts/train.py",
        "env_vars": ENV,
    }
    name = ann.first("POST", "create", body)["trainjob_name"]
    job = ann.wait(name)
    log = "\n".join(ann.lines(name))
    assert job.has_succeeded, f"{job.message}\n{log}"
    place = 0
    for each in milestones:
        assert each in log[place:], f"{each!r} is missing, or too early, in:\n{log}"
        place = log.index(each, place)


@pytest.mark.req("M46", "M50", "M53", "M62")
def test_code_data_and_models_are_volumes_at_once(ann, kubectl, tmp_path):
    """Data cannot be written to, models stay for the next job."""
    volumes = []
    for name in ("dataset", "models"):
        made = a_volume(
            f"{ann.namespace}-{name}",
            (ann.namespace, f"{ann.user}-{name}-pvc"),
            f"/tmp/{ann.user}-{name}",
        )
        kubectl(
            "create",
            "-f",
            "-",
            stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": made}),
        )
        volumes.append(
            {
                "name": name,
                "pvc": f"{ann.user}-{name}-pvc",
                "mountPath": "/data" if name == "dataset" else "/models",
                "readOnly": name == "dataset",
            }
        )
    code = (
        f"{LINGER}import os, pathlib\n"
        "model = pathlib.Path('/models/model')\n"
        "print('model', model.read_text() if model.exists() else 'none', os.environ['EPOCHS'])\n"
        "model.write_text('trained')\n"
        "try:\n    pathlib.Path('/data/x').write_text('x')\n"
        "except OSError as error: print('data', error.strerror)\n"
    )
    body = {
        "user_id": ann.user,
        "namespace": ann.namespace,
        "framework": "pytorch",
        "training_code": code,
        "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
        "num_nodes": 1,
        "cpu_request": "50m",
        "cpu_limit": "1",
        "memory_request": "64Mi",
        "memory_limit": "128Mi",
        "gpu_count": 0,
        "command": "python /workspace/scripts/train.py",
        "env_vars": [{"name": "EPOCHS", "value": "10"}],
        "volumes": volumes,
    }
    try:
        for model in ("none", "trained"):
            name = ann.first("POST", "create", body)["trainjob_name"]
            job = ann.wait(name)
            assert job.has_succeeded, job.message
            assert ann.lines(name)[-2:] == [f"model {model} 10", "data Read-only file system"]
    finally:
        for name in ("dataset", "models"):
            kubectl("delete", "persistentvolume", f"{ann.namespace}-{name}", "--wait=false")
