"""The file of ASTRAGO_PLATFORM, as a person may have written it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from astrago_trainer import catalogue
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.platform_file import platform_here, read_platform_file

ROOT = Path(__file__).parents[2]


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "platform.yaml"
    monkeypatch.setenv("ASTRAGO_PLATFORM", str(path))
    return path


def test_without_a_file_it_is_the_default(monkeypatch):
    monkeypatch.delenv("ASTRAGO_PLATFORM", raising=False)
    assert platform_here("2.2") == catalogue.default_platform("2.2")
    monkeypatch.setenv("ASTRAGO_PLATFORM", "")
    assert platform_here() == catalogue.default_platform()


@pytest.mark.parametrize("write", [yaml.safe_dump, json.dumps])
def test_yaml_and_json_are_the_same(file, write):
    file.write_text(write({"limits": {"nodes": 3}, "defaults": {"ttl_seconds": 60}}))
    found = platform_here("2.3")
    assert (found.trainer_version, found.max_nodes, found.default_ttl_seconds) == ("2.3", 3, 60)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "platform.yaml"),
        ("limits: {nodes: 3}\n---\nlimits: {nodes: 4}\n", "found 2 documents"),
        ("- a\n- b\n", "expected a mapping"),
        ("limits: {nodes: 3\n", "platform.yaml"),
        ("limits: {nodes: 3}\nlimits: {nodes: 4}\n", "limits"),
        ("presets: !!python/object:os.system {}\n", "platform.yaml"),
        ("limits: {node: 3}\n", "limits.node: there is no such field. Did you mean nodes?"),
        (
            "frameworks: {pytorch: {runtime: pytorch-simpel}}\n",
            "frameworks.pytorch.runtime: must name a runtime that is installed; "
            "found 'pytorch-simpel'. Did you mean pytorch-simple?",
        ),
    ],
)
def test_what_is_wrong_is_said_with_the_file(file, text, said):
    file.write_text(text)
    with pytest.raises(InvalidRequest) as caught:
        platform_here(runtimes=catalogue.names())
    for line in str(caught.value).splitlines():
        assert line.startswith(f"ASTRAGO_PLATFORM: {file}")
    assert said in str(caught.value)


def test_a_file_that_is_not_there_is_named(file):
    with pytest.raises(InvalidRequest, match=r"ASTRAGO_PLATFORM: .*platform\.yaml: cannot be read"):
        platform_here()


@pytest.mark.req("X23")
def test_the_documented_example_is_complete_and_accepted(tmp_path):
    text = (ROOT / "docs/server.md").read_text(encoding="utf-8")
    example = re.search(r"<!-- platform file -->\n```yaml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    path = tmp_path / "platform.yaml"
    path.write_text(example[1])
    settings = read_platform_file(path, runtimes=catalogue.names())
    assert settings.model_fields_set == set(type(settings).model_fields)
    for part in (settings.frameworks, settings.limits, settings.defaults, settings.of("pytorch")):
        assert part.model_fields_set == set(type(part).model_fields)
