"""Manifests of others: applied where a job can say the same, converted with a list of what it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from astrago_trainer import catalogue

from .conftest import REPOSITORY, Astrago

pytestmark = pytest.mark.usefixtures("data")

SCRIPT = "import os\nprint('rank', os.environ['RANK'], 'of', os.environ['WORLD_SIZE'])\n"


def a_config_map(text: str, name: str = "train-script") -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"train.py": text},
    }


def test_a_trainjob_with_its_code_is_applied_and_runs(tmp_path: Path, astrago: Astrago) -> None:
    trainjob = catalogue.sample_trainjob("pytorch-simple")
    trainjob["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"cpu": "50m", "memory": "64Mi"}}
    file = tmp_path / "trainjob.yaml"
    file.write_text(yaml.safe_dump_all([a_config_map(SCRIPT), trainjob]))

    result = astrago("apply", "-f", file, "--follow")

    assert result.code == 0, result.err
    assert "rank 0 of 2" in result.out
    assert "rank 1 of 2" in result.out


def test_a_trainjob_that_a_job_cannot_express_is_refused_by_its_fields(
    tmp_path: Path, astrago: Astrago
) -> None:
    trainjob = catalogue.sample_trainjob("pytorch-simple")
    trainjob["spec"]["initializer"] = {"model": {"storageUri": "hf://a/b"}}
    trainjob["spec"]["podTemplateOverrides"][0]["spec"]["serviceAccountName"] = "me"
    file = tmp_path / "trainjob.yaml"
    file.write_text(yaml.safe_dump(trainjob))

    result = astrago("apply", "-f", file)

    assert result.code == 1
    assert "error    spec.initializer\n" in result.err
    assert "error    spec.podTemplateOverrides[0].spec.serviceAccountName\n" in result.err
    assert not result.out
    file.write_text(yaml.safe_dump_all([a_config_map(SCRIPT, "other"), trainjob]))
    assert "error    ConfigMap other\n" in astrago("apply", "-f", file).err


OURS = sorted(
    [*REPOSITORY.glob("runtimes/*/trainjob*.yaml"), *REPOSITORY.glob("samples/fsdp/*.yaml")]
)


@pytest.mark.parametrize("file", OURS, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_our_own_samples_are_jobs(file: Path, tmp_path: Path, astrago: Astrago) -> None:
    converted = astrago("convert", "-f", file)
    assert converted.code == 0, converted.err
    assert "error" not in converted.err
    (tmp_path / "job.yaml").write_text(converted.out)
    shown = astrago("preview", "-f", tmp_path / "job.yaml")
    assert shown.code == 0, shown.out


def a_sample(**changes: Any) -> dict[str, Any]:
    """A TrainJob in the form of our samples: short commands, overrides for code from git and from a ConfigMap."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "sample", "namespace": "team"},
        "spec": {
            "runtimeRef": {"name": "pytorch-runtime"},
            "trainer": {
                "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
                "numNodes": 2,
                "numProcPerNode": 1,
                "command": [
                    "bash",
                    "-c",
                    "source /shared/setup_pytorch_env.sh\n\npython /workspace/scripts/train.py",
                ],
                "resourcesPerNode": {"limits": {"cpu": "50m", "memory": "64Mi"}},
            },
            "podTemplateOverrides": [
                {
                    "targetJobs": [{"name": "node"}],
                    "spec": {
                        "nodeSelector": {"zone": "a"},
                        "tolerations": [{"key": "gpu", "operator": "Exists"}],
                        "volumes": [
                            {
                                "name": "train-script",
                                "configMap": {"name": "train-script", "defaultMode": 493},
                            },
                            {
                                "name": "dshm",
                                "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"},
                            },
                        ],
                        "initContainers": [
                            {
                                "name": "git-clone",
                                "env": [
                                    {"name": "GIT_SYNC_REPO", "value": ""},
                                    {"name": "GIT_SYNC_BRANCH", "value": ""},
                                ],
                            }
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
                                    {"name": "git-clone-volume", "mountPath": "/test"},
                                    {"name": "dshm", "mountPath": "/dev/shm"},
                                ],
                            }
                        ],
                    },
                }
            ],
            **changes,
        },
    }


def test_a_sample_with_its_script_in_the_same_file_runs_here(
    tmp_path: Path, astrago: Astrago
) -> None:
    file = tmp_path / "trainjob.yaml"
    file.write_text(yaml.safe_dump_all([a_sample(), a_config_map(SCRIPT)]))
    result = astrago("apply", "-f", file, "--follow")
    assert result.code == 0, result.err
    assert "rank 1 of 2" in result.out
    assert "no repository is named, so nothing would be at /test" in result.err
    job = yaml.safe_load(astrago("convert", "-f", file).out)
    assert job["command"] == "python /workspace/scripts/train.py"
    assert job["code"]["files"] == {"train.py": SCRIPT}
    assert (job["node_selector"], job["processes_per_node"]) == ({"zone": "a"}, 1)
    assert [each["mount_path"] for each in job["volumes"]] == ["/dev/shm"]


def test_the_script_beside_a_manifest_stands_in_for_its_config_map(
    tmp_path: Path, astrago: Astrago
) -> None:
    """As the samples with a ConfigMap of their own are shipped."""
    file = tmp_path / "trainjob.yaml"
    file.write_text(yaml.safe_dump(a_sample(runtimeRef={"name": "torch-distributed"})))
    (tmp_path / "train.py").write_text(SCRIPT)
    result = astrago("apply", "-f", file, "--follow")
    assert result.code == 0, result.err
    assert "rank 1 of 2" in result.out
    assert f"the code is {tmp_path / 'train.py'}" in result.err
    assert "torch-distributed is not one of the platform's runtimes" in result.err


def test_a_config_map_in_a_file_beside_the_job_is_asked_for(
    tmp_path: Path, astrago: Astrago
) -> None:
    trainjob = catalogue.sample_trainjob("pytorch-simple")
    trainjob["spec"]["trainer"]["resourcesPerNode"] = {"limits": {"cpu": "50m", "memory": "64Mi"}}
    job, code = tmp_path / "trainjob.yaml", tmp_path / "code.yaml"
    job.write_text(yaml.safe_dump(trainjob))

    alone = astrago("apply", "-f", job)
    assert (alone.code, "error    ConfigMap train-script\n" in alone.err) == (1, True)

    code.write_text(yaml.safe_dump(a_config_map(SCRIPT)))
    command = f"astrago apply -f {job} -f {code}"
    assert command in astrago("apply", "-f", job).err
    assert command in astrago("convert", "-f", job).err
    assert command in astrago("preview", "-f", job).out
    both = astrago("apply", "-f", job, "-f", code, "--follow")
    assert both.code == 0, both.err
    assert "rank 1 of 2" in both.out


def test_code_from_git_lies_at_one_place_and_other_config_maps_are_not_lost_in_silence(
    tmp_path: Path, astrago: Astrago
) -> None:
    def convert(command: str, **config_map: Any) -> tuple[int, Any, str]:
        sample = a_sample()
        sample["spec"]["trainer"]["command"][2] = command
        pod = sample["spec"]["podTemplateOverrides"][0]["spec"]
        pod["initContainers"][0]["env"][0]["value"] = "https://example.com/team/code.git"
        pod["initContainers"][0]["env"][1]["value"] = "main"
        pod["volumes"].pop(0)
        pod["containers"][0]["volumeMounts"].pop(0)
        file = tmp_path / "trainjob.yaml"
        beside = [a_config_map(SCRIPT)] if config_map else []
        file.write_text(yaml.safe_dump_all([sample, *beside]))
        done = astrago("convert", "-f", file)
        return done.code, yaml.safe_load(done.out), done.err

    code, job, err = convert("source /shared/setup_pytorch_env.sh\ncd /test\npython train.py")
    assert (code, err) == (0, "")
    assert job["command"] == "python train.py"
    assert job["code"] == {"git": {"url": "https://example.com/team/code.git", "branch": "main"}}
    code, _, err = convert("python /test/train.py")
    assert (code, "something names /test" in err) == (1, True)
    code, _, err = convert("python train.py", is_beside=True)
    assert (code, "error    ConfigMap train-script\n" in err) == (1, True)


def test_a_job_of_v1_becomes_a_job_file_and_what_is_lost_is_said(
    tmp_path: Path, astrago: Astrago
) -> None:
    container = {
        "name": "pytorch",
        "image": "example.org/train",
        "command": ["bash", "-c", "echo rank $RANK"],
        "resources": {"limits": {"cpu": "50m", "memory": "64Mi"}},
    }
    role = {
        "replicas": 1,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [container]}},
    }
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "old"},
        "spec": {"pytorchReplicaSpecs": {"Master": role, "Worker": role}},
    }
    file = tmp_path / "pytorchjob.yaml"
    file.write_text(yaml.safe_dump(job))

    result = astrago("convert", "-f", file)
    assert result.code == 0
    assert yaml.safe_load(result.out)["nodes"] == 2
    assert "warning  spec.pytorchReplicaSpecs.Master.restartPolicy\n" in result.err

    applied = astrago("apply", "-f", file, "--follow")
    assert applied.code == 0, applied.err
    assert "rank 1" in applied.out

    job["spec"]["elasticPolicy"] = {"maxReplicas": 4}  # type: ignore[index]
    file.write_text(yaml.safe_dump(job))
    assert astrago("convert", "-f", file).code == 1
    assert "spec.elasticPolicy" in astrago("apply", "-f", file).err


def test_a_folder_or_modules_beside_a_script_go_with_it(tmp_path: Path, astrago: Astrago) -> None:
    folder = tmp_path / "project"
    (folder / "parts").mkdir(parents=True)
    (folder / "main.py").write_text(
        "import helper, parts.deep\nprint(helper.WORD, parts.deep.WORD)\n"
    )
    (folder / "helper.py").write_text("WORD = 'helped'\n")
    (folder / "parts/deep.py").write_text("WORD = 'deeply'\n")
    (folder / ".secret").write_text("stays here")
    small = ("--cpus", "200m", "--memory", "64Mi")

    whole = astrago("run", folder, "--entry", "main.py", *small)
    assert whole.code == 0, whole.err
    assert "helped deeply" in whole.out

    (folder / "solo.py").write_text("import helper\nprint(helper.WORD)\n")
    beside = astrago("run", folder / "solo.py", "--files", "*.py", *small)
    assert "helped" in beside.out, beside.err

    missing = astrago("run", folder, *small)
    assert missing.code == 1
    assert "has no file train.py" in missing.err
    (folder / "big.txt").write_text("x" * (2 << 20))
    large = astrago("run", folder, "--entry", "main.py", *small)
    assert large.code == 1
    assert "2.0 MiB" in large.err
    assert "stays here" not in large.err + whole.out


def test_tenants_and_their_members(astrago: Astrago) -> None:
    assert "No tenants" in astrago("tenants").out
    assert astrago("tenants", "create", "team-a", "--title", "Team A").code == 0
    assert "Team A" in astrago("tenants").out
    assert "no user 'ann'" in astrago("tenants", "add", "team-a", "ann").err
    assert (
        "ann is viewer"
        in astrago("tenants", "add", "team-a", "ann", "--new", "--role", "viewer").out
    )
    members = yaml.safe_load(astrago("tenants", "members", "team-a", "-o", "yaml").out)
    assert members["items"] == [{"namespace": "team-a", "user": "ann", "role": "viewer"}]
    assert astrago("tenants", "remove", "team-a", "ann").code == 0
    assert "No members" in astrago("tenants", "members", "team-a").out
    assert astrago("tenants", "members", "nobody").code in (1, 102)
    assert "If there is a user ann" in astrago("tenants", "invite", "team-a", "ann").out
    open_ones = yaml.safe_load(astrago("tenants", "invitations", "team-a", "-o", "yaml").out)
    assert [(each["user"], each["role"]) for each in open_ones["items"]] == [("ann", "member")]
    assert "OPEN UNTIL" in astrago("tenants", "invitations", "team-a").out
    assert "withdrawn" in astrago("tenants", "withdraw", "team-a", "ann").out
    assert "No invitations" in astrago("tenants", "invitations", "team-a").out
    for action in ("accept", "decline", "leave"):
        assert "team-a" in astrago("tenants", action, "team-a").err
    assert astrago("tenants", "create", "Not A Name").code == 1
