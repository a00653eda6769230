"""The TrainJobs of the guides, in full: what a posted form becomes."""

from __future__ import annotations

import pytest

from astrago_trainer.core.render import render, spec_hash
from astrago_trainer.core.seeds import seed_body_to_job_spec
from astrago_trainer.core.spec import JobSpec
from unit.core.builders import (
    PYTORCH_IMAGE,
    PYTORCH_PRELUDE,
    TENSORFLOW_IMAGE,
    a_platform,
    a_platform_with_scripts,
    a_runtime,
    a_spec,
    a_tensorflow_runtime,
)
from unit.core.render.common import COMMAND, Json, a_render, pod_of, trainer_of


def metadata(name: str, spec: JobSpec) -> Json:
    return {
        "name": name,
        "namespace": "user-123",
        "labels": {
            "app.kubernetes.io/managed-by": "astrago-trainer",
            "trainer.astrago.io/user": "user123",
        },
        "annotations": {
            "trainer.astrago.io/ttl-seconds-after-finished": "86400",
            "trainer.astrago.io/spec-hash": spec_hash(spec),
        },
    }


class TestSeeds:
    """What the guides show, word for word, but for what their own software refuses."""

    @pytest.mark.req("M7", "M9", "M10", "M14", "M15", "M16", "M17", "M18", "M19", "M34", "M40")
    def test_the_first_generation_job(self) -> None:
        """M18 in full; M46 wants train-script first, and X7 the process count said aloud."""
        spec = a_spec(
            image=PYTORCH_IMAGE,
            nodes=2,
            resources={
                "cpu": {"request": "2", "limit": "4"},
                "memory": {"request": "8Gi", "limit": "16Gi"},
                "gpus": 1,
            },
        )
        rendered = render(
            spec, a_runtime(), a_platform_with_scripts(), name="user123-job-20251105130000"
        )
        system, code, trainjob = rendered.objects
        assert system == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "pytorch-pet-setup",
                "namespace": "user-123",
                "labels": {"app.kubernetes.io/managed-by": "astrago-trainer"},
            },
            "data": {"setup_pytorch_env.sh": "export RANK=$PET_NODE_RANK\n"},
        }
        assert code == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "user123-train-script",
                "namespace": "user-123",
                "labels": {
                    "app.kubernetes.io/managed-by": "astrago-trainer",
                    "trainer.astrago.io/user": "user123",
                },
            },
            "data": {"train.py": "print('hi')"},
        }
        assert trainjob is rendered.trainjob
        assert trainjob == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": metadata("user123-job-20251105130000", spec),
            "spec": {
                "runtimeRef": {"name": "pytorch-simple"},
                "trainer": {
                    "image": PYTORCH_IMAGE,
                    "numNodes": 2,
                    "numProcPerNode": 1,
                    "command": [
                        "bash",
                        "-c",
                        f"source /shared/setup_pytorch_env.sh\n\n{COMMAND}",
                    ],
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
                                    "configMap": {
                                        "name": "user123-train-script",
                                        "defaultMode": 0o755,
                                    },
                                },
                                {
                                    "name": "pytorch-pet-setup",
                                    "configMap": {
                                        "name": "pytorch-pet-setup",
                                        "defaultMode": 0o755,
                                    },
                                },
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
                                        {
                                            "name": "pytorch-pet-setup",
                                            "mountPath": "/shared",
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
        assert rendered.problems == ()

    @pytest.mark.req("M12", "M18", "M19", "M20", "X5")
    def test_the_first_generation_tensorflow_job(self) -> None:
        runtime = a_tensorflow_runtime(initContainers=[])
        rendered = a_render(
            framework="tensorflow", nodes=2, runtime=runtime, platform=a_platform_with_scripts()
        )
        assert trainer_of(rendered) == {
            "image": TENSORFLOW_IMAGE,
            "numNodes": 2,
            "env": [
                {"name": "NUM_WORKERS", "value": "2"},
                {"name": "PET_NNODES", "value": "2"},
            ],
            "command": [
                "bash",
                "-c",
                "source /shared/generate_tf_config.sh\n\npython3 /workspace/scripts/train.py",
            ],
        }
        assert pod_of(rendered)["spec"]["volumes"][1] == {
            "name": "tf-config-generator",
            "configMap": {"name": "tensorflow-tf-config-generator", "defaultMode": 0o755},
        }
        assert rendered.objects[0]["metadata"]["name"] == "tensorflow-tf-config-generator"

    @pytest.mark.req(
        "M21", "M37", "M38", "M41", "M45", "M46", "M47", "M49", "M52", "M53", "M62", "X6"
    )
    def test_the_second_generation_job(self) -> None:
        """M38 in full, with the variables where Trainer takes them (X6)."""
        spec = seed_body_to_job_spec(
            {
                "user_id": "user123",
                "namespace": "user-123",
                "framework": "pytorch",
                "training_code": "import torch\n",
                "image": PYTORCH_IMAGE,
                "num_nodes": 2,
                "cpu_request": "2",
                "cpu_limit": "4",
                "memory_request": "8Gi",
                "memory_limit": "16Gi",
                "gpu_count": 1,
                "command": COMMAND,
                "env_vars": [
                    {"name": "EPOCHS", "value": "10"},
                    {"name": "BATCH_SIZE", "value": "64"},
                ],
                "volumes": [
                    {
                        "name": "dataset",
                        "pvc": "user123-dataset-pvc",
                        "mountPath": "/data",
                        "readOnly": True,
                    },
                    {"name": "models", "pvc": "user123-models-pvc", "mountPath": "/models"},
                ],
            }
        )
        rendered = render(spec, a_runtime(), a_platform(), name="user123-job-1762326780")
        assert [each["kind"] for each in rendered.objects] == ["ConfigMap", "TrainJob"]
        assert rendered.trainjob == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": metadata("user123-job-1762326780", spec),
            "spec": {
                "runtimeRef": {"name": "pytorch-simple"},
                "trainer": {
                    "image": PYTORCH_IMAGE,
                    "numNodes": 2,
                    "numProcPerNode": 1,
                    "env": [
                        {"name": "EPOCHS", "value": "10"},
                        {"name": "BATCH_SIZE", "value": "64"},
                    ],
                    "command": ["bash", "-c", f"{PYTORCH_PRELUDE}\n{COMMAND}"],
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
                                    "configMap": {
                                        "name": "user123-train-script",
                                        "defaultMode": 493,
                                    },
                                },
                                {
                                    "name": "dataset",
                                    "persistentVolumeClaim": {"claimName": "user123-dataset-pvc"},
                                },
                                {
                                    "name": "models",
                                    "persistentVolumeClaim": {"claimName": "user123-models-pvc"},
                                },
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
                                        {
                                            "name": "dataset",
                                            "mountPath": "/data",
                                            "readOnly": True,
                                        },
                                        {
                                            "name": "models",
                                            "mountPath": "/models",
                                            "readOnly": False,
                                        },
                                    ],
                                }
                            ],
                        },
                    }
                ],
            },
        }
        assert rendered.problems == ()

    @pytest.mark.req("M39", "M48", "M77", "X5", "X12")
    def test_the_second_generation_tensorflow_job(self) -> None:
        """M39 in full: the init container is told the number of workers, under both names."""
        spec = a_spec(
            framework="tensorflow",
            image=TENSORFLOW_IMAGE,
            nodes=3,
            command="python3 /workspace/scripts/train.py",
            env=[{"name": "TF_PORT", "value": "2333"}],
        )
        rendered = render(spec, a_tensorflow_runtime(), a_platform(), name="tf")
        count = [{"name": "NUM_WORKERS", "value": "3"}, {"name": "PET_NNODES", "value": "3"}]
        port = {"name": "TF_PORT", "value": "2333"}
        assert rendered.trainjob["spec"] == {
            "runtimeRef": {"name": "tensorflow-distributed"},
            "trainer": {
                "image": TENSORFLOW_IMAGE,
                "numNodes": 3,
                "env": [port, *count],
                "command": [
                    "bash",
                    "-c",
                    'source /shared-env/tf_config.env\necho "TF_CONFIG: $TF_CONFIG"\n\n'
                    "python3 /workspace/scripts/train.py",
                ],
            },
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "spec": {
                        "volumes": [
                            {
                                "name": "train-script",
                                "configMap": {"name": "user123-train-script", "defaultMode": 493},
                            }
                        ],
                        "initContainers": [{"name": "tf-config-generator", "env": [*count, port]}],
                        "containers": [
                            {
                                "name": "node",
                                "volumeMounts": [
                                    {
                                        "name": "train-script",
                                        "mountPath": "/workspace/scripts",
                                        "readOnly": True,
                                    }
                                ],
                            }
                        ],
                    },
                }
            ],
        }

    @pytest.mark.req("M103", "M104", "M106", "M107", "M108", "M109", "X7", "X19")
    def test_the_fsdp_job_of_the_workshop(self) -> None:
        """M103 in full: torchrun is left alone, /dev/shm and selectors are where it has them."""
        script = "cd samples/fsdp\ntorchrun --nproc_per_node=8 --rdzv_endpoint=$MASTER_ADDR t5.py"
        image = "deep-learning-containers/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
        selector = {
            "node.kubernetes.io/instance-type": "g6e.48xlarge",
            "topology.kubernetes.io/zone": "ap-northeast-2a",
        }
        spec = a_spec(
            name="t5-large",
            runtime="torch-distributed",
            code=None,
            image=image,
            nodes=2,
            processes_per_node="auto",
            resources={"gpus": 8},
            command=script,
            shared_memory="64Gi",
            node_selector=selector,
        )
        rendered = render(spec, a_runtime("torch-distributed"), a_platform())
        assert rendered.objects == (rendered.trainjob,)
        assert rendered.trainjob == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": metadata("t5-large", spec),
            "spec": {
                "runtimeRef": {"name": "torch-distributed"},
                "podTemplateOverrides": [
                    {
                        "targetJobs": [{"name": "node"}],
                        "spec": {
                            "nodeSelector": selector,
                            "containers": [
                                {
                                    "name": "node",
                                    "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],
                                }
                            ],
                            "volumes": [
                                {
                                    "name": "dshm",
                                    "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"},
                                }
                            ],
                        },
                    }
                ],
                "trainer": {
                    "numNodes": 2,
                    "numProcPerNode": "auto",
                    "image": image,
                    "command": ["bash", "-c", f"{PYTORCH_PRELUDE}\n{script}"],
                    "resourcesPerNode": {
                        "limits": {"nvidia.com/gpu": "8"},
                        "requests": {"nvidia.com/gpu": "8"},
                    },
                },
            },
        }
        assert rendered.problems == ()
