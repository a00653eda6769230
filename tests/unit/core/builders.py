"""Requests, runtimes and platforms for tests: valid as they are, one override per test."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.platform import Platform, SystemScripts
from astrago_trainer.core.spec import JobSpec, parse_job_spec

Json = dict[str, Any]

PYTORCH_IMAGE = "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime"
TENSORFLOW_IMAGE = "tensorflow/tensorflow:2.15.0-gpu"
ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"

# M47 and M48 as S1 has them; the shipped ones do more, which is of no interest here.
PYTORCH_PRELUDE = """\
export RANK=${PET_NODE_RANK:-0}
export LOCAL_RANK=${PET_LOCAL_RANK:-0}
export WORLD_SIZE=${PET_NNODES:-1}
export MASTER_ADDR=${PET_MASTER_ADDR:-localhost}
export MASTER_PORT=${PET_MASTER_PORT:-29500}
"""
TENSORFLOW_PRELUDE = """\
source /shared-env/tf_config.env
echo "TF_CONFIG: $TF_CONFIG"
"""


def a_request(**changes: Any) -> Json:
    """The JSON of the smallest request; a change to None takes the field out."""
    data: Json = {
        "user": "user123",
        "namespace": "user-123",
        "framework": "pytorch",
        "code": {"inline": "print('hi')"},
    }
    data.update(changes)
    return {key: value for key, value in data.items() if value is not None}


def a_spec(**changes: Any) -> JobSpec:
    return parse_job_spec(a_request(**changes))


def a_job_template(name: str = "node", *, ancestor: str = "trainer", **pod: Any) -> Json:
    """A replicated job whose container is called `node`."""
    pod.setdefault("containers", [{"name": "node", "image": PYTORCH_IMAGE}])
    template: Json = {"spec": {"template": {"spec": pod}}}
    if ancestor:
        template["metadata"] = {"labels": {ANCESTOR: ancestor}}
    return {"name": name, "template": template}


def a_runtime(
    name: str = "pytorch-simple",
    *jobs: Json,
    policy: Json | None = None,
    kind: str = "ClusterTrainingRuntime",
    **jobset: Any,
) -> Json:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "pytorch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, **({"torch": {}} if policy is None else policy)},
            "template": {"spec": {**jobset, "replicatedJobs": list(jobs) or [a_job_template()]}},
        },
    }


def a_tensorflow_runtime(name: str = "tensorflow-distributed", **pod: Any) -> Json:
    pod.setdefault("initContainers", [{"name": "tf-config-generator", "image": "busybox"}])
    return a_runtime(name, a_job_template(**pod), policy={})


def a_git_runtime() -> Json:
    pod = {
        "volumes": [{"name": "git-clone-volume", "emptyDir": {}}],
        "initContainers": [{"name": "git-clone", "image": "alpine/git:v2.36.2"}],
    }
    return a_runtime("pytorch-runtime", a_job_template(**pod))


def an_mpi_runtime(*, has_launcher_as_node: bool) -> Json:
    image = {"name": "node", "image": "horovod/horovod:0.28.1"}
    policy = {"mpi": {"numProcPerNode": 1, "runLauncherAsNode": has_launcher_as_node}}
    return a_runtime(
        "horovod-runtime",
        a_job_template("launcher", containers=[dict(image)]),
        a_job_template("node", ancestor="", containers=[dict(image)]),
        policy=policy,
    )


def a_platform(**changes: Any) -> Platform:
    """S1's way: no System ConfigMap, a prelude for each runtime."""
    settings: Json = {
        "default_images": {"pytorch": PYTORCH_IMAGE, "tensorflow": TENSORFLOW_IMAGE},
        "preludes": {
            "pytorch-simple": PYTORCH_PRELUDE,
            "pytorch-runtime": PYTORCH_PRELUDE,
            "torch-distributed": PYTORCH_PRELUDE,
            "tensorflow-distributed": TENSORFLOW_PRELUDE,
        },
    }
    return Platform(**settings | changes)


def a_platform_with_scripts(**changes: Any) -> Platform:
    """S0's way: System ConfigMaps at /shared."""
    scripts = (
        SystemScripts(
            name="pytorch-pet-setup",
            volume="pytorch-pet-setup",
            sourced="setup_pytorch_env.sh",
            data={"setup_pytorch_env.sh": "export RANK=$PET_NODE_RANK\n"},
            framework="pytorch",
        ),
        SystemScripts(
            name="tensorflow-tf-config-generator",
            volume="tf-config-generator",
            sourced="generate_tf_config.sh",
            data={"generate_tf_config.sh": "export TF_CONFIG={}\n"},
            framework="tensorflow",
        ),
    )
    return a_platform(**{"system_scripts": scripts, "preludes": {}, **changes})
