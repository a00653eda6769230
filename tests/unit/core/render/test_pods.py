"""What a job changes in the pods: both dialects, code, volumes, placement."""

from __future__ import annotations

from typing import Any

import pytest

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.render import code_digest, render
from unit.core.builders import (
    a_git_runtime,
    a_job_template,
    a_platform,
    a_platform_with_scripts,
    a_runtime,
    a_spec,
    a_tensorflow_runtime,
    an_mpi_runtime,
)
from unit.core.render.common import Json, a_render, found, pod_of, trainer_of


class TestDialects:
    @pytest.mark.req("M119", "M128")
    @pytest.mark.parametrize("version", ["2.2", "2.3"])
    def test_later_trainers_get_the_same_changes_as_patches(self, version: str) -> None:
        changes: Json = {"node_selector": {"zone": "a"}, "labels": {"team": "x"}}
        old = a_render(**changes)
        new = a_render(platform=a_platform(trainer_version=version), **changes)
        (override,) = old.trainjob["spec"].pop("podTemplateOverrides")
        (patch,) = new.trainjob["spec"].pop("runtimePatches")
        assert override.pop("targetJobs") == [{"name": "node"}]
        assert patch == {
            "manager": "trainer.astrago.io/render",
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {
                        "replicatedJobs": [
                            {"name": "node", "template": {"spec": {"template": override}}}
                        ]
                    }
                }
            },
        }
        assert old.trainjob == new.trainjob

    @pytest.mark.parametrize("version", ["2.1", "2.2", "2.3"])
    def test_a_job_that_changes_no_pod_has_neither_field(self, version: str) -> None:
        rendered = a_render(code=None, command="true", platform=a_platform(trainer_version=version))
        assert set(rendered.trainjob["spec"]) == {"runtimeRef", "trainer"}

    @pytest.mark.req("M120")
    @pytest.mark.parametrize(
        ("version", "value", "expected"),
        [
            pytest.param("2.1", "auto", "auto", id="2.1 takes the word"),
            pytest.param("2.1", "gpu", "gpu", id="2.1 takes gpu"),
            pytest.param("2.2", "auto", None, id="2.2 means auto when it is left out"),
            pytest.param("2.3", 4, 4, id="numbers everywhere"),
        ],
    )
    def test_processes_are_written_as_the_version_wants(
        self, version: str, value: Any, expected: Any
    ) -> None:
        rendered = a_render(
            command="torchrun x.py",
            processes_per_node=value,
            platform=a_platform(trainer_version=version),
        )
        assert trainer_of(rendered).get("numProcPerNode") == expected

    def test_a_deadline_is_written_where_there_is_one(self) -> None:
        wanted = {"active_deadline_seconds": 3600}
        new = a_render(platform=a_platform(trainer_version="2.2"), **wanted)
        assert new.trainjob["spec"]["activeDeadlineSeconds"] == 3600
        old = a_render(**wanted)
        assert "activeDeadlineSeconds" not in old.trainjob["spec"]
        assert found(old) == [("active_deadline_seconds", "FieldValueForbidden")]


class TestCode:
    @pytest.mark.req("X4", "M14", "M42")
    def test_the_caller_decides_the_name_of_the_code(self) -> None:
        spec = a_spec()
        digest = code_digest(spec.code)  # type: ignore[arg-type]
        for arguments, expected in (
            ({}, "user123-train-script"),
            ({"is_code_name_taken": True}, f"user123-train-script-{digest[:10]}"),
            ({"code_name": "kept"}, "kept"),
        ):
            rendered = render(spec, a_runtime(), a_platform(), **arguments)  # type: ignore[arg-type]
            assert rendered.objects[0]["metadata"]["name"] == expected
            volume = pod_of(rendered)["spec"]["volumes"][0]
            assert volume["configMap"]["name"] == expected

    def test_equal_code_has_an_equal_digest(self) -> None:
        one, same = (
            a_spec(code={"files": {"a": "1", "train.py": ""}}),
            a_spec(code={"files": {"train.py": "", "a": "1"}}),
        )
        other = a_spec(code={"files": {"a": "2", "train.py": ""}})
        assert code_digest(one.code) == code_digest(same.code)  # type: ignore[arg-type]
        assert code_digest(one.code) != code_digest(other.code)  # type: ignore[arg-type]

    def test_files_in_folders_keep_their_paths(self) -> None:
        files = {"train.py": "a", "pkg/model.py": "b", "pkg_model.py": "c", "a b.txt": "d"}
        rendered = a_render(code={"files": files})
        data = rendered.objects[0]["data"]
        source = pod_of(rendered)["spec"]["volumes"][0]["configMap"]
        assert {each["path"]: data[each["key"]] for each in source["items"]} == files
        assert set(data) == {
            "train.py",
            "pkg_model.py",
            "pkg_model.py-cbd432662a",
            "a_b.txt-cd6c4a051a",
        }

    def test_plain_files_need_no_list(self) -> None:
        rendered = a_render(code={"files": {"train.py": "a", "model.py": "b"}})
        assert rendered.objects[0]["data"] == {"model.py": "b", "train.py": "a"}
        assert "items" not in pod_of(rendered)["spec"]["volumes"][0]["configMap"]

    @pytest.mark.req("M68", "M70", "M78", "M79", "X20")
    def test_code_from_git_is_cloned_by_the_runtime(self) -> None:
        git = {"url": "https://example.org/a.git", "branch": "main"}
        rendered = a_render(code={"git": git}, runtime=a_git_runtime())
        assert rendered.objects == (rendered.trainjob,)
        assert pod_of(rendered)["spec"] == {
            "initContainers": [
                {
                    "name": "git-clone",
                    "env": [
                        {"name": "GIT_SYNC_REPO", "value": "https://example.org/a.git"},
                        {"name": "GIT_SYNC_BRANCH", "value": "main"},
                    ],
                }
            ],
            "containers": [
                {
                    "name": "node",
                    "volumeMounts": [{"name": "git-clone-volume", "mountPath": "/workspace/code"}],
                }
            ],
        }
        trainer = trainer_of(rendered)
        assert trainer["env"] == [{"name": "ASTRAGO_WORKING_DIR", "value": "/workspace/code"}]
        assert trainer["command"][2].endswith("\n\npython /workspace/code/train.py")
        assert rendered.problems == ()

    def test_a_runtime_that_mounts_the_clone_already_is_left_alone(self) -> None:
        runtime = a_git_runtime()
        (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
        container = job["template"]["spec"]["template"]["spec"]["containers"][0]
        container["volumeMounts"] = [{"name": "git-clone-volume", "mountPath": "/workspace/code"}]
        rendered = a_render(code={"git": {"url": "https://h/a"}}, runtime=runtime)
        assert "containers" not in pod_of(rendered)["spec"]

    @pytest.mark.req("M70", "X20")
    def test_a_runtime_without_git_names_one_that_has_it(self) -> None:
        rendered = a_render(code={"git": {"url": "https://h/a"}})
        assert rendered.problems == (
            Problem(
                "code.git",
                "FieldValueForbidden",
                "pytorch-simple has no init container git-clone that would fetch the code.",
                "Take the runtime pytorch-runtime.",
            ),
        )


class TestPods:
    @pytest.mark.req("M50", "M46")
    def test_every_kind_of_volume(self) -> None:
        volumes = [
            {"name": "a", "mount_path": "/a", "claim": "c", "sub_path": "x/y"},
            {"name": "b", "mount_path": "/b", "empty_dir": {"medium": "Memory", "size": "1Gi"}},
            {"name": "c", "mount_path": "/c", "empty_dir": {}},
            {"name": "d", "mount_path": "/d", "config_map": "cm"},
            {"name": "e", "mount_path": "/e", "secret": "s", "read_only": True},
            {"name": "f", "mount_path": "/f", "host_path": "/mnt/f"},
        ]
        rendered = a_render(
            code=None,
            command="x",
            volumes=volumes,
            platform=a_platform(allowed_host_paths=("/mnt",)),
        )
        spec = pod_of(rendered)["spec"]
        assert spec["volumes"] == [
            {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "b", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "c", "emptyDir": {}},
            {"name": "d", "configMap": {"name": "cm", "defaultMode": 493}},
            {"name": "e", "secret": {"secretName": "s"}},
            {"name": "f", "hostPath": {"path": "/mnt/f", "type": "Directory"}},
        ]
        assert spec["containers"] == [
            {
                "name": "node",
                "volumeMounts": [
                    {"name": "a", "mountPath": "/a", "readOnly": False, "subPath": "x/y"},
                    {"name": "b", "mountPath": "/b", "readOnly": False},
                    {"name": "c", "mountPath": "/c", "readOnly": False},
                    {"name": "d", "mountPath": "/d", "readOnly": False},
                    {"name": "e", "mountPath": "/e", "readOnly": True},
                    {"name": "f", "mountPath": "/f", "readOnly": False},
                ],
            }
        ]

    @pytest.mark.req("X19", "M107")
    def test_tolerations_are_added_to_the_runtimes(self) -> None:
        own = {"key": "spot", "operator": "Exists"}
        runtime = a_runtime("pytorch-simple", a_job_template(tolerations=[own]))
        rendered = a_render(
            runtime=runtime,
            tolerations=[
                {"key": "nvidia.com/gpu", "effect": "NoSchedule"},
                {
                    "key": "a",
                    "operator": "Equal",
                    "value": "b",
                    "effect": "NoExecute",
                    "seconds": 60,
                },
            ],
        )
        assert pod_of(rendered)["spec"]["tolerations"] == [
            own,
            {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            {
                "key": "a",
                "operator": "Equal",
                "value": "b",
                "effect": "NoExecute",
                "tolerationSeconds": 60,
            },
        ]

    def test_a_jobs_own_word_on_a_taint_comes_before_the_runtimes(self) -> None:
        """Of two tolerations of one taint the shorter time would count."""
        lost = {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
        }
        runtime = a_runtime(
            "pytorch-simple", a_job_template(tolerations=[{**lost, "tolerationSeconds": 30}])
        )
        rendered = a_render(runtime=runtime, tolerations=[{**lost, "seconds": 600}])
        assert pod_of(rendered)["spec"]["tolerations"] == [{**lost, "tolerationSeconds": 600}]

    def test_labels_reach_the_job_and_its_pods(self) -> None:
        labels, notes = {"team": "x"}, {"example.org/note": "y z"}
        rendered = a_render(labels=labels, annotations=notes)
        assert pod_of(rendered)["metadata"] == {"labels": labels, "annotations": notes}
        assert rendered.trainjob["metadata"]["labels"]["team"] == "x"
        assert rendered.trainjob["metadata"]["annotations"]["example.org/note"] == "y z"

    @pytest.mark.req("M126")
    def test_variables_never_go_to_the_training_container_by_override(self) -> None:
        rendered = a_render(
            framework="tensorflow",
            runtime=a_tensorflow_runtime(),
            env=[{"name": "A", "value": "1"}],
        )
        assert [set(each) for each in pod_of(rendered)["spec"]["containers"]] == [
            {"name", "volumeMounts"}
        ]

    @pytest.mark.req("M129")
    def test_a_value_is_never_laid_over_a_reference(self) -> None:
        reference = {"fieldRef": {"fieldPath": "metadata.name"}}
        container = {
            "name": "tf-config-generator",
            "env": [{"name": "PET_NNODES", "valueFrom": reference}],
        }
        rendered = a_render(
            framework="tensorflow", runtime=a_tensorflow_runtime(initContainers=[container])
        )
        assert pod_of(rendered)["spec"]["initContainers"] == [
            {"name": "tf-config-generator", "env": [{"name": "NUM_WORKERS", "value": "1"}]}
        ]

    def test_places_of_the_runtime_are_taken(self) -> None:
        container = {"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/shared-env"}]}
        pod: Json = {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [container]}
        rendered = a_render(
            runtime=a_runtime("pytorch-simple", a_job_template(**pod)),
            volumes=[{"name": "v", "mount_path": "/shared-env/", "claim": "c"}],
        )
        assert found(rendered) == [
            ("volumes[0].name", "FieldValueDuplicate"),
            ("volumes[0].mount_path", "FieldValueDuplicate"),
        ]

    def test_places_of_the_system_scripts_are_taken(self) -> None:
        volumes = [{"name": "pytorch-pet-setup", "mount_path": "/shared", "claim": "c"}]
        assert a_render(volumes=volumes).problems == ()
        assert found(a_render(volumes=volumes, platform=a_platform_with_scripts())) == [
            ("volumes[0].name", "FieldValueDuplicate"),
            ("volumes[0].mount_path", "FieldValueDuplicate"),
        ]

    def test_places_of_trainer_are_taken(self) -> None:
        rendered = a_render(
            framework="horovod",
            nodes=2,
            runtime=an_mpi_runtime(has_launcher_as_node=True),
            volumes=[{"name": "mpi-ssh-auth", "mount_path": "/etc/mpi", "claim": "c"}],
        )
        assert found(rendered) == [
            ("volumes[0].name", "FieldValueDuplicate"),
            ("volumes[0].mount_path", "FieldValueDuplicate"),
        ]

    def test_a_system_volume_that_the_runtime_has_is_not_added(self) -> None:
        volume = {"name": "pytorch-pet-setup", "configMap": {"name": "pytorch-pet-setup"}}
        runtime = a_runtime("pytorch-simple", a_job_template(volumes=[volume]))
        rendered = a_render(runtime=runtime, platform=a_platform_with_scripts())
        names = [each["name"] for each in pod_of(rendered)["spec"]["volumes"]]
        assert names == ["train-script"]
