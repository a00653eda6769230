"""The files of the backend integration: the names its document has, and what its backend does with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from scripts.manifests import INTEGRATION, ROOT, files

from astrago_trainer.catalogue import default_platform, load_runtime, script
from astrago_trainer.core.preview import preview_pair

FOLDER = ROOT / INTEGRATION
TEMPLATES = ("pytorch", "tensorflow")


def load(name: str) -> dict[str, Any]:
    (document,) = yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
    return document


def job_of(framework: str, variant: str = "") -> dict[str, Any]:
    return load(f"{framework}/{framework}-distributed-with-configmap{variant}.yaml")


def code_volumes(job: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        volume
        for override in job["spec"]["podTemplateOverrides"]
        for volume in override["spec"]["volumes"]
        if volume["name"] == "train-script"
    ]


@pytest.mark.parametrize("path", files(), ids=str)
def test_a_file_is_what_its_source_makes_of_it(path: Path) -> None:
    # To write them anew: make manifests
    assert (ROOT / path).read_text(encoding="utf-8") == files()[path]


@pytest.mark.req("M8", "M29", "M30", "M31")
def test_the_names_are_those_of_the_document() -> None:
    found = {str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file()}
    assert found == {
        "README.md",
        "pytorch/pytorch-pet-setup.yaml",
        "pytorch/pytorch-runtime-simple.yaml",
        "pytorch/pytorch-train-script-configmap.yaml",
        "pytorch/pytorch-distributed-with-configmap.yaml",
        "pytorch/pytorch-distributed-with-configmap-gpu.yaml",
        "tensorflow/tensorflow-tf-config-generator.yaml",
        "tensorflow/tensorflow-runtime.yaml",
        "tensorflow/tensorflow-train-script-configmap.yaml",
        "tensorflow/tensorflow-distributed-with-configmap.yaml",
        "tensorflow/tensorflow-distributed-with-configmap-gpu.yaml",
    }


@pytest.mark.req("M30")
def test_none_of_them_has_a_namespace() -> None:
    for path in FOLDER.rglob("*.yaml"):
        assert "namespace" not in load(str(path.relative_to(FOLDER)))["metadata"], path


@pytest.mark.req("M10", "M11", "M12", "M14")
@pytest.mark.parametrize(
    ("framework", "runtime", "runtime_file", "system_file"),
    [
        ("pytorch", "pytorch-simple", "pytorch-runtime-simple", "pytorch-pet-setup"),
        (
            "tensorflow",
            "tensorflow-distributed",
            "tensorflow-runtime",
            "tensorflow-tf-config-generator",
        ),
    ],
)
def test_they_hold_the_runtime_the_scripts_and_the_sample(
    framework: Any, runtime: str, runtime_file: str, system_file: str
) -> None:
    scripts = default_platform().scripts_for(runtime, framework)
    assert scripts is not None
    assert load(f"{framework}/{runtime_file}.yaml") == load_runtime(runtime)
    system = load(f"{framework}/{system_file}.yaml")
    assert (system["metadata"]["name"], system["data"]) == (scripts.name, dict(scripts.data))
    code = load(f"{framework}/{framework}-train-script-configmap.yaml")
    assert code["data"] == {"train.py": script(runtime)}
    for variant in ("", "-gpu"):
        (volume,) = code_volumes(job_of(framework, variant))
        assert volume["configMap"]["name"] == code["metadata"]["name"]


@pytest.mark.req("M15", "M16", "M18")
@pytest.mark.parametrize("framework", TEMPLATES)
def test_the_backend_of_the_document_can_fill_in_the_template(framework: str) -> None:
    """Step 3 of the document, as its backend does it."""
    job = job_of(framework)
    job["metadata"]["name"] = "user123-job-20251105130000"
    job["metadata"]["namespace"] = "user-123"
    job["spec"]["trainer"]["numNodes"] = 2
    limits = job["spec"]["trainer"]["resourcesPerNode"]["limits"]
    limits["nvidia.com/gpu"], limits["cpu"], limits["memory"] = "1", "4", "16Gi"
    (volume,) = code_volumes(job)
    volume["configMap"]["name"] = "user123-train-script"

    preview = preview_pair(load_runtime(job["spec"]["runtimeRef"]["name"]), job, "2.1")
    assert not [problem for problem in preview.problems if problem.severity == "error"]


@pytest.mark.req("M34", "M35", "M60")
@pytest.mark.parametrize("framework", TEMPLATES)
def test_one_variant_runs_without_gpus_and_one_asks_for_them(framework: str) -> None:
    name = f"{framework}-distributed-configmap"
    plain, gpu = job_of(framework), job_of(framework, "-gpu")
    assert (plain["metadata"]["name"], gpu["metadata"]["name"]) == (name, f"{name}-gpu")
    resources = plain["spec"]["trainer"]["resourcesPerNode"]
    assert all("nvidia.com/gpu" not in part for part in resources.values())
    resources = gpu["spec"]["trainer"]["resourcesPerNode"]
    assert {part["nvidia.com/gpu"] for part in resources.values()} == {"1"}
