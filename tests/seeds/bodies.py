"""The two requests of the documents, and what a backend makes of them in the way that the documents describe."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.seeds.steps import read

Json = dict[str, Any]


def curl_words() -> list[str]:
    """The second document's curl command, as a shell splits it."""
    (step,) = (each for each in read("S1").steps if each.type.startswith("curl "))
    return shlex.split(step.type)


def nested() -> Json:
    (step,) = (each for each in read("S0").steps if each.what.startswith("POST "))
    found: Json = deepcopy(step.data)
    return found


def flat() -> Json:
    words = curl_words()
    found: Json = json.loads(words[words.index("-d") + 1])
    return found


def second_generation(body: Json, code: str) -> Json:
    """The TrainJob that the second document makes of its body, for PyTorch, without name, command and variables.

    These three are not as the document has them: X2, the set-up script of the first document, X6.
    """
    gpus = {"nvidia.com/gpu": str(body["gpu_count"])} if body["gpu_count"] else {}
    claims = body.get("volumes", [])
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"namespace": body["namespace"]},
        "spec": {
            "runtimeRef": {"name": "pytorch-simple"},
            "trainer": {
                "image": body["image"],
                "numNodes": body["num_nodes"],
                "resourcesPerNode": {
                    "limits": {"cpu": body["cpu_limit"], "memory": body["memory_limit"], **gpus},
                    "requests": {
                        "cpu": body["cpu_request"],
                        "memory": body["memory_request"],
                        **gpus,
                    },
                },
            },
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "spec": {
                        "volumes": [
                            {
                                "name": "train-script",
                                "configMap": {"name": code, "defaultMode": 0o755},
                            },
                            *(
                                {
                                    "name": each["name"],
                                    "persistentVolumeClaim": {"claimName": each["pvc"]},
                                }
                                for each in claims
                            ),
                        ],
                        "containers": [
                            {
                                "name": "node",
                                "volumeMounts": [
                                    {
                                        "name": "train-script",
                                        "mountPath": "/workspace/scripts",
                                        "readOnly": True,
                                    },
                                    *(
                                        {
                                            "name": each["name"],
                                            "mountPath": each["mountPath"],
                                            "readOnly": each.get("readOnly", False),
                                        }
                                        for each in claims
                                    ),
                                ],
                            }
                        ],
                    },
                }
            ],
        },
    }


def missing(wanted: Any, found: Any, path: str = "") -> Iterator[str]:
    """Places of `wanted` that `found` lacks or has other values in. Lists of named things are compared by name."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key, value in wanted.items():
            yield from missing(value, found.get(key), f"{path}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and wanted and "name" in wanted[0]:
        named = {each["name"]: each for each in found}
        for each in wanted:
            yield from missing(each, named.get(each["name"]), f"{path}[{each['name']}]")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, each in enumerate(wanted):
            yield from missing(each, found[index], f"{path}[{index}]")
    elif wanted != found:
        yield f"{path}: {wanted!r} expected, {found!r} found"
