"""Names, limits and clashes that show with the runtime at hand; sources; the hash."""

from __future__ import annotations

import pytest

from astrago_trainer.core.render import name_limit, render, spec_hash
from astrago_trainer.core.spec import parse_job_spec
from unit.core.builders import (
    PYTORCH_PRELUDE,
    a_job_template,
    a_platform,
    a_runtime,
    a_spec,
    an_mpi_runtime,
)
from unit.core.render.common import Json, a_render, found, trainer_of


class TestNames:
    @pytest.mark.req("M122")
    @pytest.mark.parametrize(
        ("runtime", "nodes", "limit"),
        [
            pytest.param(a_runtime(), 10, 48, id="10 nodes"),
            pytest.param(a_runtime(), 11, 47, id="11 nodes"),
            pytest.param(an_mpi_runtime(has_launcher_as_node=True), 2, 44, id="launcher"),
            pytest.param(
                a_runtime("x", a_job_template("model-initializer", ancestor="m"), a_job_template()),
                2,
                35,
                id="initializer",
            ),
        ],
    )
    def test_a_name_must_fit_the_runtimes_pods(self, runtime: Json, nodes: int, limit: int) -> None:
        assert name_limit(runtime, nodes) == limit
        framework = "horovod" if "mpi" in runtime["spec"]["mlPolicy"] else "pytorch"
        spec = a_spec(framework=framework, nodes=nodes)
        assert render(spec, runtime, a_platform(), name="x" * limit).problems == ()
        too_long = render(spec, runtime, a_platform(), name="x" * (limit + 1))
        assert found(too_long) == [("name", "FieldValueTooLong")]

    def test_a_job_without_a_name_gets_a_placeholder_that_fits(self) -> None:
        rendered = a_render(user="u" * 29, nodes=100)
        name = rendered.trainjob["metadata"]["name"]
        assert name == f"{'u' * 19}-421c7e86-job-{'0' * 14}"
        assert rendered.problems == ()


class TestLimits:
    def test_the_whole_script_must_fit_one_argument(self) -> None:
        room = 131_071 - len(PYTORCH_PRELUDE) - 1
        assert a_render(command="x" * room).problems == ()
        assert found(a_render(command="x" * (room + 1))) == [("command", "FieldValueTooLong")]

    @pytest.mark.parametrize(("version", "count"), [("2.1", 0), ("2.2", 1), ("2.3", 0)])
    def test_trainer_2_2_takes_shorter_commands(self, version: str, count: int) -> None:
        rendered = a_render(command="x" * 66_000, platform=a_platform(trainer_version=version))
        assert found(rendered) == [("command", "FieldValueTooLong")] * count

    @pytest.mark.parametrize(("version", "count"), [("2.1", 0), ("2.2", 1), ("2.3", 1)])
    def test_later_trainers_take_128_variables(self, version: str, count: int) -> None:
        env = [{"name": f"A{index}", "value": ""} for index in range(129)]
        rendered = a_render(env=env, platform=a_platform(trainer_version=version))
        assert found(rendered) == [("env", "FieldValueTooLong")] * count

    @pytest.mark.parametrize(("version", "count"), [("2.1", 0), ("2.2", 1), ("2.3", 1)])
    def test_later_trainers_take_128_arguments(self, version: str, count: int) -> None:
        rendered = a_render(args=["x"] * 128, platform=a_platform(trainer_version=version))
        assert found(rendered) == [("args", "FieldValueTooLong")] * count

    def test_an_object_must_fit_the_clusters_store(self) -> None:
        env = [{"name": f"A{index}", "value": "x" * 130_000} for index in range(10)]
        assert found(a_render(env=env)) == [("", "FieldValueTooLong")]


class TestOddRuntimes:
    @pytest.mark.req("M105", "M128")
    @pytest.mark.parametrize(
        "runtime",
        [
            pytest.param({}, id="empty"),
            pytest.param(a_runtime("x", a_job_template(ancestor="")), id="no trainer step"),
            pytest.param(
                a_runtime("x", a_job_template(containers=[{"name": "pytorch"}])), id="other name"
            ),
            pytest.param({"spec": {"template": {"spec": {"replicatedJobs": 3}}}}, id="broken"),
        ],
    )
    def test_a_runtime_that_would_ignore_the_job_is_an_error(self, runtime: Json) -> None:
        rendered = render(a_spec(max_restarts=1), runtime, a_platform())
        assert ("runtime", "FieldValueInvalid") in found(rendered)

    def test_pytorch_without_a_torch_policy_is_a_warning(self) -> None:
        rendered = a_render(runtime=a_runtime(policy={}))
        assert [(p.path, p.severity) for p in rendered.problems] == [("runtime", "warning")]
        assert "numProcPerNode" not in trainer_of(rendered)

    @pytest.mark.req("M127")
    def test_tensorflow_on_a_torch_runtime_does_not_set_what_trainer_refuses(self) -> None:
        rendered = a_render(framework="tensorflow", runtime=a_runtime())
        assert "env" not in trainer_of(rendered)


class TestSources:
    def test_every_line_a_user_asked_for_names_its_field(self) -> None:
        rendered = a_render(
            name="mnist",
            image="a/b:1",
            nodes=2,
            resources={"cpu": {"request": "2", "limit": "4"}, "memory": "8Gi", "gpus": 1},
            env=[{"name": "A", "value": "1"}],
            volumes=[{"name": "data", "mount_path": "/data", "claim": "c"}],
            command="python x.py",
            node_selector={"zone": "a"},
            labels={"team": "x"},
            ttl_seconds=60,
            suspend=True,
        )
        override = "spec.podTemplateOverrides[0]"
        mounts = f"{override}.spec.containers[0].volumeMounts"
        resources = "spec.trainer.resourcesPerNode"
        assert rendered.sources == {
            "metadata.name": "name",
            "metadata.namespace": "namespace",
            "metadata.labels.trainer.astrago.io/user": "user",
            "metadata.labels.team": "labels.team",
            "metadata.annotations.trainer.astrago.io/ttl-seconds-after-finished": "ttl_seconds",
            "spec.runtimeRef.name": "runtime",
            "spec.suspend": "suspend",
            "spec.trainer.image": "image",
            "spec.trainer.numNodes": "nodes",
            "spec.trainer.command[2]": "command",
            "spec.trainer.env[0].name": "env[0].name",
            "spec.trainer.env[0].value": "env[0].value",
            f"{resources}.limits.cpu": "resources.cpu.limit",
            f"{resources}.requests.cpu": "resources.cpu.request",
            f"{resources}.limits.memory": "resources.memory.limit",
            f"{resources}.requests.memory": "resources.memory.limit",
            f"{resources}.limits.nvidia.com/gpu": "resources.gpus",
            f"{resources}.requests.nvidia.com/gpu": "resources.gpus",
            f"{override}.metadata.labels.team": "labels.team",
            f"{override}.spec.nodeSelector.zone": "node_selector.zone",
            f"{override}.spec.volumes[0].name": "code",
            f"{override}.spec.volumes[0].configMap.name": "code",
            f"{override}.spec.volumes[0].configMap.defaultMode": "code",
            f"{override}.spec.volumes[1].name": "volumes[0].name",
            f"{override}.spec.volumes[1].persistentVolumeClaim.claimName": "volumes[0].claim",
            f"{mounts}[0].name": "code",
            f"{mounts}[0].mountPath": "code",
            f"{mounts}[0].readOnly": "code",
            f"{mounts}[1].name": "volumes[0].name",
            f"{mounts}[1].mountPath": "volumes[0].mount_path",
            f"{mounts}[1].readOnly": "volumes[0].read_only",
        }

    def test_patches_have_their_own_paths(self) -> None:
        rendered = a_render(node_selector={"zone": "a"}, platform=a_platform(trainer_version="2.2"))
        path = (
            "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
            ".template.spec.template.spec.nodeSelector.zone"
        )
        assert rendered.sources[path] == "node_selector.zone"


def test_the_hash_covers_what_was_asked_for_only() -> None:
    one = parse_job_spec({**a_spec().model_dump(mode="json")})
    assert spec_hash(one) == spec_hash(a_spec())
    assert spec_hash(a_spec(nodes=2)) != spec_hash(a_spec())
    assert len(spec_hash(one)) == 64
