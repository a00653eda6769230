"""`astrago preview`: what it takes, what it finds by itself, and the forms of its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from astrago_trainer import catalogue
from astrago_trainer.core.preview import preview_pair
from astrago_trainer.manifests import dump_yaml

from .conftest import Astrago
from .manifests import (
    a_flat_body,
    a_job,
    a_nested_body,
    a_runtime,
    a_trainjob,
    changed,
    m38_trainjob,
)


def write(path: Path, *documents: Any) -> Path:
    path.write_text("---\n".join(dump_yaml(each) for each in documents))
    return path


def preview_of(result: Any) -> dict[str, Any]:
    assert result.code == 0, result.err
    preview: dict[str, Any] = json.loads(result.out)
    return preview


@pytest.mark.req("M73", "M82")
def test_two_files_become_the_preview_of_the_core(astrago: Astrago, tmp_path: Path) -> None:
    runtime = write(tmp_path / "runtime.yaml", a_runtime())
    trainjob = write(tmp_path / "trainjob.yaml", a_trainjob())
    result = astrago("preview", "--runtime", runtime, "--trainjob", trainjob, "-o", "json")
    expected = preview_pair(a_runtime(), a_trainjob())
    assert preview_of(result) == {
        "version": "2.1",
        "problems": [],
        "objects": list(expected.objects),
        "provenance": expected.provenance,
    }


def test_the_runtime_may_be_a_name_of_the_catalogue(astrago: Astrago, tmp_path: Path) -> None:
    trainjob = write(tmp_path / "trainjob.yaml", a_trainjob("pytorch-simple"))
    by_name = astrago("preview", "--runtime", "pytorch-simple", "--trainjob", trainjob)
    by_reference = astrago("preview", "-f", trainjob)
    by_option = astrago("preview", "--trainjob", trainjob)
    assert by_name.code == 0
    assert by_name == by_reference == by_option
    assert by_name.out.startswith("JobSet demo · Trainer 2.1 · 2 pods\n")


def test_one_file_may_hold_both(astrago: Astrago, tmp_path: Path) -> None:
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    other = changed(a_runtime(), "metadata/name", "other")
    both = write(tmp_path / "both.yaml", config_map, other, a_runtime(), a_trainjob())
    assert preview_of(astrago("preview", "-f", both, "-o", "json"))["objects"]


def test_a_list_stands_for_its_items(astrago: Astrago, tmp_path: Path) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": [a_runtime(), a_trainjob()]}
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps(items))
    assert preview_of(astrago("preview", "-f", listed, "-o", "json"))["objects"]


def test_standard_input_is_a_file_called_dash(astrago_program: Astrago) -> None:
    both = "---\n".join(map(dump_yaml, (a_runtime(), a_trainjob())))
    result = astrago_program("preview", "-f", "-", stdin=both.encode())
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("JobSet demo")


@pytest.mark.req("M38")
def test_a_job_file_is_rendered_and_its_fields_are_the_origins(
    astrago: Astrago, tmp_path: Path
) -> None:
    job = a_job(resources={"cpu": 2, "memory": "4Gi", "gpus": 1}, env=[])
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", job), "-o", "json")
    preview = preview_of(result)
    pod = preview["objects"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert {"form: nodes", "form: resources.gpus", "runtime", "mlPolicy.torch"} <= set(
        preview["provenance"].values()
    )


@pytest.mark.req("M21", "M52", "M54")
@pytest.mark.parametrize("body", [a_flat_body(), a_nested_body()], ids=["flat", "nested"])
def test_a_request_body_of_the_first_api_is_known_by_its_fields(
    body: dict[str, Any], astrago: Astrago, tmp_path: Path
) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(body))
    preview = preview_of(astrago("preview", "-f", path, "-o", "json"))
    jobs = preview["objects"][0]["spec"]["replicatedJobs"]
    assert jobs[0]["template"]["spec"]["parallelism"] == 2


def test_a_job_with_code_from_git_finds_the_runtime_that_clones(
    astrago: Astrago, tmp_path: Path
) -> None:
    job = a_job(code={"git": {"url": "https://example.org/code.git"}})
    preview = preview_of(astrago("preview", "-f", write(tmp_path / "j.yaml", job), "-o", "json"))
    pod = preview["objects"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert [each["name"] for each in pod["spec"]["initContainers"]] == ["setup", "git-clone"]


def test_a_job_file_may_be_shown_on_another_runtime(astrago: Astrago, tmp_path: Path) -> None:
    job = write(tmp_path / "job.yaml", a_job())
    runtime = write(tmp_path / "runtime.yaml", a_runtime())
    preview = preview_of(astrago("preview", "-f", job, "--runtime", runtime, "-o", "json"))
    pod = preview["objects"][0]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["image"] == "python:3.12"


@pytest.mark.req("M38", "M126")
def test_variables_in_an_override_are_refused_in_the_words_of_the_controller(
    astrago: Astrago, tmp_path: Path
) -> None:
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", m38_trainjob()))
    assert result.code == 1
    assert "spec.podTemplateOverrides" in result.out
    words = "must not have envs for the dataset-initializer, model-initializer, node containers"
    assert words in result.out
    (remedy,) = [line for line in result.out.splitlines() if "→" in line]
    assert "spec.trainer.env" in remedy
    assert "EPOCHS, BATCH_SIZE" in remedy


@pytest.mark.req("M119")
def test_each_trainer_version_has_its_own_override_field(astrago: Astrago, tmp_path: Path) -> None:
    trainjob = write(
        tmp_path / "job.yaml",
        a_trainjob("pytorch-simple", podTemplateOverrides=[{"targetJobs": [{"name": "node"}]}]),
    )
    assert astrago("preview", "-f", trainjob).code == 0
    for version in ("2.2", "2.3"):
        result = astrago("preview", "-f", trainjob, "--trainer-version", version)
        assert result.code == 1
        assert "spec.podTemplateOverrides" in result.out
        assert f"Trainer {version}" in result.out


@pytest.mark.req("M125")
def test_a_runtime_of_another_name_is_refused_as_the_webhook_does(
    astrago: Astrago, tmp_path: Path
) -> None:
    trainjob = write(tmp_path / "job.yaml", a_trainjob("other"))
    result = astrago("preview", "--runtime", "pytorch-simple", "--trainjob", trainjob)
    assert result.code == 1
    assert "must be created before the TrainJob is created" in result.out


@pytest.mark.req("M125")
def test_a_runtime_that_nobody_has_is_answered_with_the_known_ones(
    astrago: Astrago, tmp_path: Path
) -> None:
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", a_trainjob("pytorch-simpel")))
    assert result.code == 1
    assert "spec.runtimeRef.name" in result.err
    assert "Did you mean pytorch-simple?" in result.err
    assert "--runtime FILE" in result.err
    for name in ("pytorch-simpel", "torchtune-llama3.2-1b"):
        result = astrago("preview", "--runtime", name, "--trainjob", tmp_path / "job.yaml")
        assert result.code == 1
        assert f"there is no runtime '{name}' in the catalogue" in result.err


def test_a_runtime_of_the_operator_is_previewed_on_ours_as_apply_takes_it(
    astrago: Astrago, tmp_path: Path
) -> None:
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", a_trainjob("torch-distributed")))
    assert result.code == 0, result.err
    assert "torch-distributed is not one of the platform's runtimes" in result.out
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", a_trainjob("torch-distribted")))
    assert result.code == 1
    assert "tensorflow-distributed?" not in result.err


def test_a_trainjob_without_a_reference_asks_for_one(astrago: Astrago, tmp_path: Path) -> None:
    trainjob = changed(a_trainjob(), "spec/runtimeRef", {})
    result = astrago("preview", "-f", write(tmp_path / "job.yaml", trainjob))
    assert result.code == 1
    assert "spec.runtimeRef.name" in result.err
    assert "pytorch-simple" in result.err


@pytest.mark.req("M92")
def test_other_kinds_are_named(astrago: Astrago, tmp_path: Path) -> None:
    legacy = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "x"}}
    result = astrago("preview", "-f", write(tmp_path / "a.yaml", legacy))
    assert result.code == 1
    assert "found PyTorchJob of the Training Operator v1" in result.err
    result = astrago("preview", "-f", write(tmp_path / "b.yaml", a_runtime()))
    assert "expected a TrainJob (kind TrainJob), found ClusterTrainingRuntime small" in result.err
    result = astrago("preview", "-f", write(tmp_path / "c.yaml", a_job(), a_job()))
    assert "expected one job, found 2 documents" in result.err
    result = astrago("preview", "-f", write(tmp_path / "d.yaml", a_trainjob(), a_trainjob()))
    assert "found 2: TrainJob demo, TrainJob demo" in result.err
    result = astrago("preview", "--trainjob", write(tmp_path / "e.yaml", a_job()))
    assert "expected a TrainJob" in result.err


@pytest.mark.req("M82")
def test_a_runtime_without_the_path_of_its_pods_is_told_which(
    astrago: Astrago, tmp_path: Path
) -> None:
    runtime = changed(a_runtime(), "spec/template/spec/replicatedJobs/0/template/spec", 7)
    files = write(tmp_path / "both.yaml", runtime, a_trainjob())
    result = astrago("preview", "-f", files)
    assert result.code == 1
    assert "template.spec.replicatedJobs[0].template.spec" in result.all


@pytest.mark.req("M75", "M76", "M79")
@pytest.mark.parametrize("name", catalogue.names())
def test_every_sample_of_the_catalogue_would_be_accepted(name: str, astrago: Astrago) -> None:
    folder = catalogue.get_runtime(name).folder
    root = Path(catalogue.__file__).parent / "runtimes" / folder
    pair = ("--runtime", root / "runtime.yaml", "--trainjob", root / "trainjob.yaml")
    result = astrago("preview", *pair)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("JobSet ")
    assert max(map(len, result.out.splitlines())) <= 80


def test_yaml_is_valid_and_carries_the_origin_of_every_leaf(
    astrago: Astrago, tmp_path: Path
) -> None:
    trainjob = write(
        tmp_path / "job.yaml", a_trainjob("horovod-runtime", name="multi", trainer={"numNodes": 3})
    )
    result = astrago("preview", "-f", trainjob, "-o", "yaml")
    preview = preview_of(astrago("preview", "-f", trainjob, "-o", "json"))
    assert list(yaml.safe_load_all(result.out)) == preview["objects"]
    comments = [line.rpartition("  # ")[2] for line in result.out.splitlines() if "  # " in line]
    leaves = [origin for origin in preview["provenance"].values() if origin]
    assert sorted(comments) == sorted(leaves)
    assert "numNodes" not in result.out.partition("replicatedJobs")[0]


def test_comments_line_up(astrago: Astrago, tmp_path: Path) -> None:
    result = astrago("preview", "-f", write(tmp_path / "j.yaml", a_job()), "-o", "yaml")
    columns = [line.index("  # ") for line in result.out.splitlines() if "  # " in line]
    most = max(set(columns), key=columns.count)
    assert columns.count(most) > 0.9 * len(columns)
    assert most <= 66


def test_problems_beside_yaml_go_to_standard_error(astrago: Astrago, tmp_path: Path) -> None:
    trainjob = write(tmp_path / "job.yaml", changed(a_trainjob(), "metadata/name", "UPPER"))
    both = write(tmp_path / "both.yaml", a_runtime(), *yaml.safe_load_all(trainjob.read_text()))
    result = astrago("preview", "-f", both, "-o", "yaml")
    assert result.code == 1
    assert "metadata.name" in result.err
    assert "UPPER" in result.err
    assert yaml.safe_load(result.out)["kind"] == "JobSet"


def test_json_holds_the_problems_with_all_their_parts(astrago: Astrago, tmp_path: Path) -> None:
    result = astrago("preview", "-f", write(tmp_path / "j.yaml", m38_trainjob()), "-o", "json")
    assert result.code == 1
    assert not result.err
    (problem,) = json.loads(result.out)["problems"]
    assert set(problem) == {"path", "code", "message", "remedy", "severity"}
    assert problem["severity"] == "error"


@pytest.mark.req("M73")
def test_the_installed_program_does_the_same(astrago_program: Astrago, tmp_path: Path) -> None:
    good = astrago_program("preview", "-f", write(tmp_path / "a.yaml", a_job()))
    assert (good.code, good.err) == (0, "")
    bad = astrago_program("preview", "-f", write(tmp_path / "b.yaml", m38_trainjob()))
    assert bad.code == 1
    unreadable = astrago_program("preview", "-f", tmp_path / "missing.yaml")
    assert unreadable.code == 1
    assert "No such file" in unreadable.err
    assert astrago_program("preview").code == 2


@pytest.mark.parametrize("form", ["cli", "curl", "python", "trainjob"])
def test_a_job_file_is_told_again_for_another_door(
    astrago: Astrago, tmp_path: Path, form: str
) -> None:
    path = write(tmp_path / "job.yaml", a_job())
    result = astrago("preview", "-f", str(path), "--as", form)
    assert result.code == 0, result.err
    begin = {
        "cli": "astrago apply --server http://127.0.0.1:8000 ",
        "curl": "curl -sS ",
        "python": "from astrago_trainer.client import TrainerClient\n",
        "trainjob": "# kubectl apply -f FILE\n",
    }
    assert result.out.startswith(begin[form])
    if form == "trainjob":
        again = write(tmp_path / "again.yaml", *yaml.safe_load_all(result.out))
        shown = preview_of(astrago("preview", "-f", str(again), "-o", "json"))
        assert (
            shown["objects"]
            == preview_of(astrago("preview", "-f", str(path), "-o", "json"))["objects"]
        )
    wrong = astrago("preview", "--trainjob", str(path), "--as", form)
    assert (wrong.code, "--as takes -f FILE" in wrong.err) == (2, True)


def test_a_job_file_needs_neither_user_nor_namespace(
    astrago: Astrago, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `apply -f` takes it: both are those of the person who asks."""
    monkeypatch.setenv("ASTRAGO_NAMESPACE", "team-a")
    body = {"framework": "pytorch", "command": "echo hello", "nodes": 2}
    file = write(tmp_path / "job.yaml", body)
    (job_set,) = preview_of(astrago("preview", "-f", file, "-o", "json"))["objects"]
    assert job_set["metadata"]["namespace"] == "team-a"
    named = write(tmp_path / "named.yaml", {**body, "user": "kim", "namespace": "team-b"})
    (job_set,) = preview_of(astrago("preview", "-f", named, "-o", "json"))["objects"]
    assert job_set["metadata"]["namespace"] == "team-b"


def test_a_body_of_the_first_api_says_what_was_ignored(astrago: Astrago, tmp_path: Path) -> None:
    file = write(tmp_path / "body.yaml", {**a_nested_body(), "priority": "high"})
    found = preview_of(astrago("preview", "-f", file, "-o", "json"))
    assert [(each["path"], each["code"]) for each in found["problems"]] == [
        ("priority", "field-ignored")
    ]
