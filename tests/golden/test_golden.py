"""Whole previews of known manifests, word for word: the seeds' own examples, our samples, upstream's runtimes.

`ASTRAGO_GOLDEN=write pytest tests/golden` writes the expected files anew; read the difference before committing it.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from astrago_trainer.catalogue import load_runtime, runtimes, sample_trainjob
from astrago_trainer.cli.preview_text import annotated_yaml
from astrago_trainer.core.preview import preview_pair
from astrago_trainer.manifests import load_documents
from oracle.build import VERSIONS, oracle_binary, skip_reason

HERE = Path(__file__).parent
SEEDS = sorted((HERE / "seeds").glob("*.yaml"))


def golden(name: str, runtime: dict, trainjob: dict, version: str) -> None:
    preview = preview_pair(runtime, trainjob, version)
    lines = [f"# Trainer {version}"]
    for problem in preview.problems:
        lines += [f"# {problem.severity} {problem.code} {problem.path}", f"#   {problem.message}"]
        lines += [f"#   → {problem.remedy}"] if problem.remedy else []
    text = "\n".join([*lines, *annotated_yaml(preview)]) + "\n"
    expected = HERE / "expected" / f"{name}-{version}.yaml"
    if os.environ.get("ASTRAGO_GOLDEN") == "write":
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(text, encoding="utf-8")
    assert text == expected.read_text(encoding="utf-8")


@pytest.mark.req("M18", "M20", "M38", "M39", "M103", "M104", "M106", "M107", "M40", "M126")
@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_the_seeds_own_examples_are_previewed_as_2_1_runs_them(path):
    documents = {document["kind"]: document for document in load_documents(str(path))}
    trainjob = documents["TrainJob"]
    runtime = documents.get("ClusterTrainingRuntime") or load_runtime(
        trainjob["spec"]["runtimeRef"]["name"]
    )

    golden(path.stem, runtime, trainjob, "2.1")


@pytest.mark.req("M64", "M73", "M79")
@pytest.mark.parametrize("name", [entry.name for entry in runtimes()])
def test_our_samples_are_previewed_without_an_error(name):
    runtime, trainjob = load_runtime(name), sample_trainjob(name)

    assert preview_pair(runtime, trainjob, "2.1").problems == ()
    golden(f"sample-{name}", runtime, trainjob, "2.1")


@pytest.mark.oracle
@pytest.mark.req("M101")
@pytest.mark.parametrize("version", VERSIONS)
def test_upstreams_runtimes_are_previewed_as_they_ship(version):
    if oracle_binary(version) is None:
        pytest.skip(skip_reason(version))
    release = f"github.com/kubeflow/trainer/v2@v{VERSIONS[version]}"
    found = subprocess.run(
        ["go", "mod", "download", "-json", release], capture_output=True, text=True, check=True
    )
    base = Path(json.loads(found.stdout)["Dir"]) / "manifests" / "base" / "runtimes"
    names = set()
    for path in sorted(base.rglob("*.yaml")):
        for runtime in load_documents(str(path)):
            if (
                runtime.get("kind") != "ClusterTrainingRuntime"
                or "flux" in runtime["spec"]["mlPolicy"]
            ):
                continue
            names.add(runtime["metadata"]["name"])
            trainjob = {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "metadata": {"name": "job", "namespace": "team"},
                "spec": {
                    "runtimeRef": {"name": runtime["metadata"]["name"]},
                    "trainer": {"numNodes": 1, "env": [{"name": "A", "value": "1"}]},
                },
            }
            golden(f"upstream-{runtime['metadata']['name']}", runtime, trainjob, version)
    assert {"torch-distributed", "deepspeed-distributed", "torchtune-llama3.2-1b"} <= names
