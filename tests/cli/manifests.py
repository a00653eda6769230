"""Manifests for the tests: valid as they stand, one change for each test."""

from __future__ import annotations

import copy
from typing import Any

API = "trainer.kubeflow.org/v1alpha1"

Json = dict[str, Any]


def a_runtime(**spec: Any) -> Json:
    """A small torch runtime called `small`."""
    pod = {"containers": [{"name": "node", "image": "python:3.12"}]}
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pod}},
        },
    }
    return {
        "apiVersion": API,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "small"},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [job]}},
            **spec,
        },
    }


def a_trainjob(runtime: str = "small", *, name: str = "demo", **spec: Any) -> Json:
    """Two nodes on `runtime`."""
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": "user-123"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": {"numNodes": 2}, **spec},
    }


def a_job(**fields: Any) -> Json:
    """A job file: one inline script on two nodes."""
    return {
        "name": "demo",
        "user": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "nodes": 2,
        "code": {"inline": "print('hi')\n"},
        **fields,
    }


def a_flat_body(**fields: Any) -> Json:
    """The request of M54."""
    return {
        "user_id": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "training_code": "print('hi')",
        "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
        "num_nodes": 2,
        "cpu_request": "2",
        "cpu_limit": "4",
        "memory_request": "8Gi",
        "memory_limit": "16Gi",
        "gpu_count": 1,
        "command": "python /workspace/scripts/train.py",
        "env_vars": [{"name": "EPOCHS", "value": "10"}],
        "volumes": [
            {
                "name": "dataset",
                "pvc": "user123-dataset-pvc",
                "mountPath": "/data",
                "readOnly": True,
            }
        ],
        **fields,
    }


def a_nested_body() -> Json:
    """The request of M21."""
    return {
        "user_id": "user123",
        "namespace": "user-123",
        "framework": "tensorflow",
        "training_code": "print('hi')",
        "config": {
            "num_nodes": 2,
            "gpu_per_node": 1,
            "cpu_per_node": 4,
            "memory_per_node": "16Gi",
        },
    }


def m38_trainjob() -> Json:
    """The TrainJob of the first guide, with its variables where the controller refuses them."""
    return {
        "apiVersion": API,
        "kind": "TrainJob",
        "metadata": {"name": "user123-job-1762326780", "namespace": "user-123"},
        "spec": {
            "runtimeRef": {"name": "pytorch-simple"},
            "trainer": {
                "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
                "numNodes": 2,
                "command": ["bash", "-c", "echo setup\npython /workspace/scripts/train.py"],
                "resourcesPerNode": {
                    "limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"},
                    "requests": {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"},
                },
            },
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "spec": {
                        "volumes": [
                            {
                                "name": "train-script",
                                "configMap": {"name": "user123-train-script", "defaultMode": 493},
                            },
                        ],
                        "containers": [
                            {
                                "name": "node",
                                "env": [
                                    {"name": "EPOCHS", "value": "10"},
                                    {"name": "BATCH_SIZE", "value": "64"},
                                ],
                                "volumeMounts": [
                                    {
                                        "name": "train-script",
                                        "mountPath": "/workspace/scripts",
                                        "readOnly": True,
                                    },
                                ],
                            }
                        ],
                    },
                }
            ],
        },
    }


def changed(document: Json, path: str, value: Any) -> Json:
    """A copy with another value at `spec.trainer.numNodes` or `spec.list.0.name`."""
    document = copy.deepcopy(document)
    holder: Any = document
    *parents, last = path.split("/")
    for step in parents:
        holder = holder[int(step)] if isinstance(holder, list) else holder.setdefault(step, {})
    if isinstance(holder, list):
        holder[int(last)] = value
    else:
        holder[last] = value
    return document
