"""The administrator's file where no server is: `run`, `preview`, `doctor`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Astrago
from .manifests import a_job

FILE = """
frameworks: {pytorch: {runtime: pytorch-runtime, image: registry.example.org/torch:2.8}}
limits: {nodes: 2}
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "platform.yaml"
    path.write_text(FILE)
    monkeypatch.setenv("ASTRAGO_PLATFORM", str(path))
    return path


def test_a_preview_has_its_runtime_and_image(astrago: Astrago, tmp_path, file) -> None:
    job = {name: value for name, value in a_job().items() if name not in ("runtime", "image")}
    (tmp_path / "job.json").write_text(json.dumps({**job, "nodes": 2}))
    result = astrago("preview", "-f", tmp_path / "job.json", "-o", "json")
    assert result.code == 0, result.all
    assert "registry.example.org/torch:2.8" in result.out
    assert "git-clone" in result.out  # of that runtime


def test_a_run_is_held_to_its_limits(astrago: Astrago, tmp_path, file) -> None:
    (tmp_path / "train.py").write_text("print('hello')\n")
    result = astrago("run", tmp_path / "train.py", "--nodes", "3", "--data", tmp_path / "data")
    assert result.code != 0
    assert "must be at most 2 on this platform; found 3." in result.err


@pytest.mark.parametrize("command", ["run", "preview", "doctor"])
def test_a_bad_file_is_said_by_every_command(astrago: Astrago, tmp_path, file, command) -> None:
    file.write_text("limits: {node: 2}\n")
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "job.json").write_text(json.dumps(a_job()))
    data = ("--data", tmp_path / "data")
    arguments = {
        "run": (tmp_path / "train.py", *data),
        "preview": ("-f", tmp_path / "job.json"),
        "doctor": data,
    }
    result = astrago(command, *arguments[command])
    assert result.code == 1
    assert "Did you mean nodes?" in " ".join(result.all.split())
