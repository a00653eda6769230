"""Runtimes that belong to one job: restarts, and the workers of MPI."""

from __future__ import annotations

import copy

import pytest

from astrago_trainer.core.render import owner_reference
from unit.core.builders import a_job_template, a_platform, a_runtime, an_mpi_runtime
from unit.core.render.common import a_render, found, trainer_of


class TestOwnRuntime:
    @pytest.mark.req("M114", "M133", "X13")
    def test_restarts_of_one_job_make_a_runtime_of_its_own(self) -> None:
        runtime = a_runtime(
            "pytorch-simple",
            a_job_template("dataset-initializer", ancestor="dataset-initializer"),
            a_job_template(),
            failurePolicy={"restartStrategy": "BlockingRecreate", "maxRestarts": 3},
            ttlSecondsAfterFinished=60,
        )
        rendered = a_render(name="mnist", max_restarts=10, runtime=runtime)
        code, own, trainjob = rendered.objects
        expected = copy.deepcopy(runtime["spec"])
        del expected["template"]["spec"]["ttlSecondsAfterFinished"]
        expected["template"]["spec"]["failurePolicy"]["maxRestarts"] = 10
        node = expected["template"]["spec"]["replicatedJobs"][1]["template"]["spec"]
        node["backoffLimit"] = 0
        node["template"]["spec"]["restartPolicy"] = "Never"
        assert own == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {
                "name": "mnist-runtime",
                "namespace": "user-123",
                "labels": {
                    "trainer.kubeflow.org/framework": "pytorch",
                    "app.kubernetes.io/managed-by": "astrago-trainer",
                    "trainer.astrago.io/user": "user123",
                },
            },
            "spec": expected,
        }
        assert rendered.runtime == own
        assert trainjob["spec"]["runtimeRef"] == {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "TrainingRuntime",
            "name": "mnist-runtime",
        }
        assert rendered.runtime_sources == {
            "spec.template.spec.failurePolicy.maxRestarts": "max_restarts"
        }
        assert code["kind"] == "ConfigMap"

    def test_a_runtime_that_restarts_so_often_already_is_used(self) -> None:
        job = a_job_template(restartPolicy="Never")
        job["template"]["spec"]["backoffLimit"] = 0
        runtime = a_runtime("pytorch-simple", job, failurePolicy={"maxRestarts": 3})
        assert a_render(max_restarts=3, runtime=runtime).runtime == runtime
        assert a_render(max_restarts=0, runtime=runtime).runtime["kind"] == "TrainingRuntime"

    def test_a_platform_may_have_a_default(self) -> None:
        rendered = a_render(platform=a_platform(default_max_restarts=5))
        spec = rendered.runtime["spec"]["template"]["spec"]
        assert spec["failurePolicy"] == {"maxRestarts": 5}
        assert rendered.runtime_sources == {}

    def test_a_runtime_of_the_namespace_says_its_kind(self) -> None:
        rendered = a_render(runtime=a_runtime("mine", kind="TrainingRuntime"))
        assert rendered.trainjob["spec"]["runtimeRef"] == {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "TrainingRuntime",
            "name": "mine",
        }

    def test_torchtune_reads_its_model_from_the_name(self) -> None:
        rendered = a_render(max_restarts=1, runtime=a_runtime("torchtune-llama3.2-1b"))
        assert found(rendered) == [("max_restarts", "FieldValueForbidden")]

    def test_objects_that_a_job_owns_do_not_block_its_deletion(self) -> None:
        assert owner_reference("mnist", "0b9e") == {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "name": "mnist",
            "uid": "0b9e",
            "controller": False,
            "blockOwnerDeletion": False,
        }


class TestMpi:
    """M83's third panel: a launcher and workers."""

    @pytest.mark.req("M83")
    def test_workers_and_launcher_have_their_own_resources(self) -> None:
        rendered = a_render(
            name="hvd",
            framework="horovod",
            image="a/b:1",
            nodes=4,
            resources={"cpu": "8", "gpus": 2},
            launcher={"cpu": "1", "memory": "2Gi"},
            env=[{"name": "EPOCHS", "value": "3"}],
            runtime=an_mpi_runtime(has_launcher_as_node=False),
        )
        launcher, worker = rendered.runtime["spec"]["template"]["spec"]["replicatedJobs"]
        assert launcher["template"]["spec"]["template"]["spec"]["containers"] == [
            {"name": "node", "image": "horovod/horovod:0.28.1"}
        ]
        assert worker["template"]["spec"]["template"]["spec"]["containers"] == [
            {
                "name": "node",
                "image": "a/b:1",
                "resources": {
                    "limits": {"cpu": "8", "nvidia.com/gpu": "2"},
                    "requests": {"cpu": "8", "nvidia.com/gpu": "2"},
                },
            }
        ]
        assert trainer_of(rendered) == {
            "image": "a/b:1",
            "numNodes": 4,
            "numProcPerNode": 2,
            "env": [{"name": "EPOCHS", "value": "3"}],
            "command": [
                "bash",
                "-c",
                "exec mpirun --bind-to none --map-by slot --mca pml ob1 --mca btl ^openib -x PATH "
                "-x LD_LIBRARY_PATH -x PYTHONUNBUFFERED -x EPOCHS python "
                "/workspace/scripts/train.py",
            ],
            "resourcesPerNode": {
                "limits": {"cpu": "1", "memory": "2Gi"},
                "requests": {"cpu": "1", "memory": "2Gi"},
            },
        }
        overrides = rendered.trainjob["spec"]["podTemplateOverrides"]
        assert [each["targetJobs"] for each in overrides] == [
            [{"name": "launcher"}],
            [{"name": "node"}],
        ]
        assert overrides[0]["spec"] == overrides[1]["spec"]
        place = "spec.template.spec.replicatedJobs[1].template.spec.template.spec.containers[0]"
        assert rendered.runtime_sources == {
            f"{place}.image": "image",
            f"{place}.resources.limits.cpu": "resources.cpu.limit",
            f"{place}.resources.requests.cpu": "resources.cpu.limit",
            f"{place}.resources.limits.nvidia.com/gpu": "resources.gpus",
            f"{place}.resources.requests.nvidia.com/gpu": "resources.gpus",
        }
        assert rendered.problems == ()

    def test_a_launcher_that_is_a_node_shares_the_resources(self) -> None:
        rendered = a_render(
            framework="horovod",
            nodes=2,
            resources={"cpu": "8"},
            launcher={"cpu": "1"},
            runtime=an_mpi_runtime(has_launcher_as_node=True),
        )
        assert rendered.runtime["kind"] == "ClusterTrainingRuntime"
        assert trainer_of(rendered)["resourcesPerNode"]["limits"] == {"cpu": "8"}
        assert trainer_of(rendered)["numProcPerNode"] == 1
        assert [(p.path, p.severity) for p in rendered.problems] == [("launcher", "warning")]

    def test_one_node_that_becomes_two_pods_is_a_warning(self) -> None:
        rendered = a_render(
            framework="horovod", nodes=1, runtime=an_mpi_runtime(has_launcher_as_node=True)
        )
        assert [(p.path, p.severity) for p in rendered.problems] == [("nodes", "warning")]

    def test_horovod_needs_mpi(self) -> None:
        assert found(a_render(framework="horovod")) == [("runtime", "FieldValueInvalid")]

    def test_both_jobs_are_patched_in_the_new_dialect(self) -> None:
        rendered = a_render(
            framework="horovod",
            runtime=an_mpi_runtime(has_launcher_as_node=True),
            platform=a_platform(trainer_version="2.3"),
        )
        (patch,) = rendered.trainjob["spec"]["runtimePatches"]
        jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        assert [job["name"] for job in jobs] == ["launcher", "node"]
