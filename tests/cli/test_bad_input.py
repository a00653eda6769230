"""Everything that was ever sent to break a parser, a shell or a reader: one clear message each.

Each case goes through the command as a file. It must end with 1 or 2, name the place, say what was
found and why it cannot be, never show a traceback or a raw control character, and write nothing.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from astrago_trainer.manifests import dump_yaml

from .conftest import Astrago
from .manifests import a_flat_body, a_job, a_runtime, a_trainjob, changed

LAUGHS = "\n".join(
    ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)

UNREADABLE: dict[str, tuple[bytes, list[str]]] = {
    "python tag": (
        b"kind: !!python/object/apply:os.system ['touch canary']\n",
        ["bad:1", "kind", "!!python/object/apply:os.system", "tags are refused", "Remove the tag"],
    ),
    "unknown tag": (b"user: !secret x\n", ["bad:1", "user", "!secret", "tags are refused"]),
    "billion laughs": (LAUGHS.encode(), ["bad:6", "at most 200,000 values", "fewer aliases"]),
    "endless alias": (b"a: &a [*a]\n", ["bad:1", "a[0]", "*a", "contain itself", "Write"]),
    "duplicate keys": (b"user: a\nnodes: 1\nuser: b\n", ["bad:3", "line 1 and on line 3", "Keep"]),
    "10 MB": (b"a: b\n" * 2_000_000, ["2,097,152", "10,000,000", "git"]),
    "NUL": (b"user: a\0b\n", ["bad:1", "NUL", "Remove it"]),
    "escaped NUL": (b'user: "a\\0b"\n', ["bad:1", "user", "NUL", "Remove it"]),
    "lone surrogate": (b'{"user": "\\ud800"}', ["bad:1", "user", "\\ud800", "Write the character"]),
    "invalid UTF-8": (b"user: \xff\xfe\n", ["bad:1", "ff fe", "UTF-8"]),
    "JSON 100,000 deep": (b"[" * 100_000, ["bad:1", "at most 64 deep"]),
    "JSON objects 100,000 deep": (b'{"a":' * 100_000, ["bad:1", "at most 64 deep"]),
    "YAML 100,000 deep": (b"a: " + b"[" * 100_000, ["bad:1", "at most 64 deep"]),
    "5,000 digits": (b"nodes: " + b"9" * 5000 + b"\n", ["bad:1", "nodes", "64 bits"]),
    "NaN": (b"nodes: .nan\n", ["bad:1", "nodes", "NaN", "quote"]),
    "number as key": (b"1: a\n", ["bad:1", "the number 1", "quotes"]),
    "tabs": (b"a:\n\tb: 1\n", ["bad:2", "spaces"]),
    "not YAML": (b"a: b: c\n", ["bad:1", "a: b: c", "Quote"]),
    "list": (b"- a\n", ["bad", "a list", "Begin with fields"]),
    "empty": (b"", ["bad", "no document"]),
    "several jobs": (
        "---\n".join([dump_yaml(a_job())] * 3).encode(),
        ["bad", "found 3 documents", "own file"],
    ),
}


@pytest.fixture
def quiet_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty place to stand in, and the proof at the end that it still is empty."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def refused(astrago: Astrago, path: Path, here: Path, *options: str) -> str:
    result = astrago("preview", "-f", path, *options)
    assert result.code in (1, 2)
    assert "Traceback" not in result.all
    assert "this is a bug" not in result.all
    assert "\x1b" not in result.all
    assert list(here.iterdir()) == [], "nothing is written"
    return result.all


@pytest.mark.req("M73")
@pytest.mark.parametrize(("text", "parts"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_file_that_cannot_be_read(
    text: bytes, parts: list[str], astrago: Astrago, tmp_path: Path, quiet_folder: Path
) -> None:
    path = tmp_path / "bad"
    path.write_bytes(text)
    message = refused(astrago, path, quiet_folder)
    for part in parts:
        assert part in message
    assert message.count("error    ") == 1


JOBS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "cpu 1e9Gi": ({"resources": {"cpu": "1e9Gi"}}, ["resources.cpu", "1e9Gi", "quantity"]),
    "memory -1": ({"resources": {"memory": "-1"}}, ["resources.memory", "-1", "negative"]),
    "upper-case name": ({"name": "Demo"}, ["name", "Demo", "lower-case"]),
    "64 characters": ({"name": "a" * 64}, ["name", "found 64", "48 characters"]),
    "upper-case user": ({"user": "User"}, ["user", "User", "lower-case"]),
    "no nodes": ({"nodes": 0}, ["nodes", "at least 1", "found 0"]),
    "minus one node": ({"nodes": -1}, ["nodes", "at least 1", "found -1"]),
    "2^31 nodes": ({"nodes": 2**31}, ["nodes", "at most", "2147483648"]),
    "name with =": ({"env": [{"name": "A=B", "value": "x"}]}, ["env[0].name", "'='", "value"]),
    "script of 1 MiB and a byte": (
        {"code": {"inline": "#" * (1024 * 1024 + 1)}},
        ["code.inline", "1048577", "1048576", "git"],
    ),
    "escape sequence": ({"name": "a\x1b[31m"}, ["name", "\\x1b[31m"]),
    "unknown field": ({"nodez": 3}, ["nodez", "no such field"]),
    "boolean for text": ({"env": [{"name": "A", "value": True}]}, ["env[0].value", "quotes"]),
}


@pytest.mark.req("M56", "M121", "M122")
@pytest.mark.parametrize(("fields", "parts"), JOBS.values(), ids=JOBS)
def test_a_job_file_that_cannot_be_meant(
    fields: dict[str, Any],
    parts: list[str],
    astrago: Astrago,
    tmp_path: Path,
    quiet_folder: Path,
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(dump_yaml(a_job(**fields)))
    message = refused(astrago, path, quiet_folder)
    for part in parts:
        assert part in message


@pytest.mark.parametrize("cpu", ["0.1m", "1n", "0"])
def test_an_odd_but_valid_amount_is_previewed_or_refused_in_words(
    cpu: str, astrago: Astrago, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(dump_yaml(a_job(resources={"cpu": {"limit": cpu, "request": cpu}})))
    result = astrago("preview", "-f", path)
    assert result.code in (0, 1)
    assert "this is a bug" not in result.all
    assert result.out.startswith("JobSet") or "resources.cpu" in result.err


def test_all_problems_of_a_job_file_come_at_once(
    astrago: Astrago, tmp_path: Path, quiet_folder: Path
) -> None:
    job = a_job(name="Demo", nodes=0, resources={"cpu": "1e9Gi"}, env=[{"name": "A=B"}])
    path = tmp_path / "job.yaml"
    path.write_text(dump_yaml(job))
    message = refused(astrago, path, quiet_folder)
    assert message.count("error    ") >= 4
    for place in ("job.yaml: name", "job.yaml: nodes", "resources.cpu", "env[0].name"):
        assert place in message


@pytest.mark.req("M52", "M56")
def test_a_request_body_is_refused_under_its_own_names(
    astrago: Astrago, tmp_path: Path, quiet_folder: Path
) -> None:
    path = tmp_path / "body.json"
    path.write_text(json.dumps(a_flat_body(num_nodes=0, cpu_limit="1e9Gi", user_id="User")))
    message = refused(astrago, path, quiet_folder)
    for name in ("num_nodes", "cpu_limit", "user_id"):
        assert name in message


TRAINJOBS: dict[str, tuple[str, Any, list[str]]] = {
    "memory 1e9Gi": (
        "spec/trainer/resourcesPerNode",
        {"limits": {"memory": "1e9Gi"}},
        ["spec.trainer.resourcesPerNode.limits", "1e9Gi", "quantity"],
    ),
    "cpu -1": (
        "spec/trainer/resourcesPerNode",
        {"limits": {"cpu": "-1"}},
        ["resources.limits", "-1", "negative"],
    ),
    "upper-case name": ("metadata/name", "Demo", ["metadata.name", "Demo", "lower-case"]),
    "64 characters": ("metadata/name", "a" * 64, ["metadata.name", "found 64", "Shorten"]),
    "49 characters": ("metadata/name", "a" * 49, ["metadata.name", "49", "at most 48"]),
    "no nodes": ("spec/trainer/numNodes", 0, ["spec.trainer.numNodes", "found 0", "1 node"]),
    "minus one": ("spec/trainer/numNodes", -1, ["spec.trainer.numNodes", "found -1", "1 node"]),
    "2^31 nodes": ("spec/trainer/numNodes", 2**31, ["spec.trainer.numNodes", "2147483648"]),
    "text for a number": ("spec/trainer/numNodes", "two", ["spec.trainer.numNodes", "two"]),
    "name with =": (
        "spec/trainer/env",
        [{"name": "A=B", "value": "x"}],
        ["spec.trainer.env[0].name", "A=B"],
    ),
    "unknown field": ("spec/trainer/numNodez", 2, ["spec.trainer.numNodez"]),
    "escape sequence": ("metadata/name", "a\x1b[31m", ["metadata.name", "\\x1b[31m"]),
    "spec is a list": ("spec", [], ["spec"]),
    "metadata is text": ("metadata", "x", ["metadata"]),
    "trainer is text": ("spec/trainer", "x", ["spec.trainer"]),
    "override is text": ("spec/podTemplateOverrides", ["x"], ["spec.podTemplateOverrides"]),
}


@pytest.mark.req("M73", "M121", "M122")
@pytest.mark.parametrize(
    ("change", "value", "parts"),
    TRAINJOBS.values(),
    ids=[name.replace(" ", "-") for name in TRAINJOBS],
)
def test_a_trainjob_that_cannot_be_meant(
    change: str,
    value: Any,
    parts: list[str],
    astrago: Astrago,
    tmp_path: Path,
    quiet_folder: Path,
) -> None:
    path = tmp_path / "job.yaml"
    documents = (a_runtime(), changed(a_trainjob(), change, value))
    path.write_text("---\n".join(map(dump_yaml, documents)))
    message = refused(astrago, path, quiet_folder)
    for part in parts:
        assert part in message
    for output in ("yaml", "json", "wide"):
        refused(astrago, path, quiet_folder, "-o", output)


RUNTIMES: dict[str, tuple[str, Any]] = {
    "no template": ("spec/template", None),
    "template is text": ("spec/template", "x"),
    "jobs are text": ("spec/template/spec/replicatedJobs", "x"),
    "job is text": ("spec/template/spec/replicatedJobs/0", "x"),
    "job without a pod": ("spec/template/spec/replicatedJobs/0/template", {}),
    "containers are text": (
        "spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers",
        "x",
    ),
    "policy is a list": ("spec/mlPolicy", []),
    "metadata is null": ("metadata", None),
}


@pytest.mark.req("M82")
@pytest.mark.parametrize(("change", "value"), RUNTIMES.values(), ids=RUNTIMES)
def test_a_broken_runtime_never_breaks_the_preview(
    change: str, value: Any, astrago: Astrago, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    documents = (changed(a_runtime(), change, value), a_trainjob())
    path.write_text("---\n".join(map(dump_yaml, documents)))
    for output in ("table", "yaml", "json"):
        result = astrago("preview", "-f", path, "-o", output)
        assert result.code in (0, 1)
        assert "this is a bug" not in result.all


def test_a_message_is_the_same_from_the_installed_program(
    astrago_program: Astrago, tmp_path: Path
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"[" * 100_000)
    result = astrago_program("preview", "-f", path)
    assert result.code == 1
    assert result.out == ""
    assert "at most 64 deep" in result.err
    piped = astrago_program("preview", "-f", "-", stdin=b"x" * 10_000_000)
    assert piped.code == 1
    assert "<stdin>" in piped.err
    assert "2,097,152" in piped.err


OTHER_VERSIONS: dict[str, tuple[str, Any]] = {
    "number as a variable's name": ("containers", [{"name": "node", "env": [{"name": 1}]}]),
    "list as a volume's name": ("volumes", [{"name": []}]),
    "object as a volume's name": ("volumes", [{"name": {}}, {"name": {}}]),
}


@pytest.mark.req("M119")
@pytest.mark.parametrize(("field", "value"), OTHER_VERSIONS.values(), ids=OTHER_VERSIONS)
def test_a_field_that_a_version_does_not_know_is_refused_whatever_it_holds(
    field: str, value: Any, astrago: Astrago, tmp_path: Path, quiet_folder: Path
) -> None:
    override = {"targetJobs": [{"name": "node"}], "spec": {field: value}}
    path = tmp_path / "job.yaml"
    documents = (a_runtime(), a_trainjob(podTemplateOverrides=[override]))
    path.write_text("---\n".join(map(dump_yaml, documents)))
    message = refused(astrago, path, quiet_folder, "--trainer-version", "2.2")
    assert "spec.podTemplateOverrides" in message


def test_an_empty_entry_of_a_command_never_breaks_the_preview(
    astrago: Astrago, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    documents = (a_runtime(), a_trainjob(trainer={"command": [None]}))
    path.write_text("---\n".join(map(dump_yaml, documents)))
    for version in ("2.1", "2.2", "2.3"):
        result = astrago("preview", "-f", path, "--trainer-version", version)
        assert result.code in (0, 1)
        assert "this is a bug" not in result.all
