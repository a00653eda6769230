"""The catalogue against the CRDs of the Trainer releases, as `fieldValidation=Strict` would read it.

The schemas are those inside the Trainer's Go modules, which Go downloads.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalogue.inline import RUNTIMES

VERSIONS = ("2.1.0", "2.2.1", "2.3.0")
NAMES = ("horovod", "pytorch", "pytorch-simple", "tensorflow", "tensorflow-distributed")

pytestmark = pytest.mark.oracle


def the_trainjob(name: str) -> dict:
    """Of the sample; the ConfigMap with its script stands beside it."""
    documents = yaml.safe_load_all((RUNTIMES / name / "trainjob.yaml").read_text())
    (job,) = (each for each in documents if each["kind"] == "TrainJob")
    return job


@pytest.fixture(scope="module")
def schemas() -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (version, kind): _schema(version, plural)
        for version in VERSIONS
        for kind, plural in (
            ("ClusterTrainingRuntime", "clustertrainingruntimes"),
            ("TrainJob", "trainjobs"),
        )
    }


@cache
def _module(version: str) -> Path:
    """The sources of a release, as Go keeps them; fetched where they are missing."""
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no `go` to fetch the sources of Trainer with")
    command = [go, "mod", "download", "-json", f"github.com/kubeflow/trainer/v2@v{version}"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/")
    found = json.loads(done.stdout or "{}")
    assert "Dir" in found, found.get("Error") or done.stderr
    return Path(found["Dir"])


def _schema(version: str, plural: str) -> dict[str, Any]:
    path = _module(version) / "manifests/base/crds" / f"trainer.kubeflow.org_{plural}.yaml"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the files have megabytes
    crd = yaml.load(path.read_text(), Loader=loader)
    return crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.req("M119", "M120", "M125", "M18", "M75", "M76")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_runtime_is_valid_in_every_release(name, version, schemas):
    runtime = yaml.safe_load((RUNTIMES / name / "runtime.yaml").read_text())
    schema = schemas[version, "ClusterTrainingRuntime"]
    assert list(_faults(runtime, schema, "")) == []


@pytest.mark.req("M18", "M38", "M79", "M119")
@pytest.mark.parametrize("name", NAMES)
def test_a_sample_job_is_valid_in_the_reference_release(name, schemas):
    job = the_trainjob(name)
    assert list(_faults(job, schemas["2.1.0", "TrainJob"], "")) == []


@pytest.mark.req("M119")
def test_the_check_sees_a_field_that_a_release_does_not_have(schemas):
    job = the_trainjob("pytorch")
    faults = list(_faults(job, schemas["2.3.0", "TrainJob"], ""))
    assert faults == [".spec.podTemplateOverrides: unknown field"]


def _faults(value: Any, schema: dict[str, Any], path: str) -> Iterator[str]:
    """Name every unknown or missing field and every value of a wrong type or outside its rules."""
    if schema.get("x-kubernetes-int-or-string"):
        if not isinstance(value, int | str):
            yield f"{path}: neither number nor text"
        return
    kind = schema.get("type")
    types = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    if kind in types and not isinstance(value, types[kind]):
        yield f"{path}: not of type {kind}"
    elif kind == "object":
        yield from _object_faults(value, schema, path)
    elif kind == "array":
        for index, item in enumerate(value):
            yield from _faults(item, schema["items"], f"{path}[{index}]")
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is not one of {schema['enum']}"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{path}: {value!r} does not match {schema['pattern']}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{path}: {value} is less than {schema['minimum']}"


def _object_faults(value: dict[str, Any], schema: dict[str, Any], path: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{path}.{key}: missing" for key in schema.get("required", ()) if key not in value)
    for key, item in value.items():
        if key in properties:
            yield from _faults(item, properties[key], f"{path}.{key}")
        elif isinstance(schema.get("additionalProperties"), dict):
            yield from _faults(item, schema["additionalProperties"], f"{path}.{key}")
        elif properties and not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.{key}: unknown field"
