"""`astrago environments`, and what `astrago run` finds out about a script."""

from __future__ import annotations

import io
import json

import pytest
from tests.environments.wheels import make_wheel, served

from astrago_trainer.cli.terminal import Terminal, problem_lines
from astrago_trainer.cli.words import wrapped
from astrago_trainer.client.requests import script_request
from astrago_trainer.core.errors import Problem

from .jobs import OWN_CODES, on_terminal


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("ASTRAGO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.delenv("ASTRAGO_ENVIRONMENTS", raising=False)


def test_the_list_says_what_is_there_and_what_comes_later(astrago):
    result = astrago("environments")
    assert result.code == 0
    assert "torch 2.15" in result.out
    assert "at first use" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_an_own_folder_is_added_listed_and_removed(astrago, tmp_path):
    folder = tmp_path / "mine"
    (folder / "bin").mkdir(parents=True)
    assert astrago("environments", "add", f"my/*={folder}").code == 0
    rows = json.loads(astrago("environments", "-o", "json").out)["items"]
    assert (rows[0]["name"], rows[0]["folder"]) == ("my/*", str(folder / "bin"))
    assert astrago("environments", "remove", "my/*").code == 0
    assert "my/*" not in astrago("environments").out


def test_requirements_are_installed_and_removed_by_name(astrago, tmp_path, monkeypatch):
    make_wheel(tmp_path / "wheels", "greeting")
    (tmp_path / "requirements.txt").write_text("greeting # a word\n")
    with served(tmp_path / "wheels") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        words = ("environments", "install", "python", "-r", str(tmp_path / "requirements.txt"))
        assert "is ready" in astrago(*words).out
        assert "is ready" in astrago(*words).out
    rows = json.loads(astrago("environments", "-o", "json").out)["items"]
    name = next(row["name"] for row in rows if "requirement" in row["title"])
    listed = astrago("environments").out
    assert max(map(len, listed.splitlines())) <= 80
    (row,) = (line for line in listed.splitlines() if line.startswith(name))
    assert " MB" in row
    assert "about 5 GB" in listed, "torch is not installed: its size is an estimate"
    assert astrago("environments", "remove", name).code == 0
    assert name not in astrago("environments").out


def test_what_helps_after_requirements_that_cannot_be_installed(astrago, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print('hello')\n")
    (tmp_path / "requirements.txt").write_text("# ours\n\nno-such-package-of-ours\n")
    make_wheel(tmp_path / "wheels", "greeting")
    monkeypatch.setenv("ASTRAGO_DATA", str(tmp_path / "data"))
    words = ("run", tmp_path / "train.py", "-r", tmp_path / "requirements.txt", "--name", "broken")
    with served(tmp_path / "wheels") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index)
        result = astrago(*words)
    assert result.code == 100
    assert "astrago restart" not in result.err
    assert "astrago environments" in result.err
    assert "astrago restart" not in astrago("explain", "broken").out
    assert "no-such-package-of-ours" in astrago("logs", "broken").out

    (tmp_path / "requirements.txt").write_text("# ours\n\n==1.0\n")
    assert f"{tmp_path / 'requirements.txt'}, line 3\n" in astrago(*words).err


def test_a_job_that_never_started_offers_neither_logs_nor_a_restart(astrago, tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text("print('hello')\n")
    monkeypatch.setenv("ASTRAGO_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASTRAGO_LOCAL_OVERSIZE", "refuse")
    result = astrago("run", tmp_path / "train.py", "--cpus", "4000", "--name", "large")
    assert result.code == 100
    assert "astrago logs" not in result.err
    assert "astrago restart" not in result.err
    monkeypatch.delenv("ASTRAGO_LOCAL_OVERSIZE")
    assert astrago("explain", "large").out.count("asked for 4000 CPU") == 1
    assert "astrago logs" not in astrago("status", "large").out
    for words in (
        ("logs", "large"),
        ("explain", "large"),
        ("status", "large"),
        ("logs", "no-job" * 20),
    ):
        lines = OWN_CODES.sub("", on_terminal(*words).out).splitlines()
        assert max(map(len, lines)) <= 80, lines


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("install", "pytorch"), "there is no environment 'pytorch'"),
        (("remove", "nothing"), "there is no environment 'nothing'"),
        (("add", "no-folder"), "must be PATTERN=FOLDER"),
        (("add", "x=/no/such/folder"), "there is no folder /no/such/folder"),
        (("install",), "install needs a name"),
    ],
)
def test_a_mistake_is_named(astrago, words, said):
    result = astrago("environments", *words)
    assert result.code in (1, 2)
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("text", "framework"),
    [
        ("print(1)", "pytorch"),
        ("import torch\n", "pytorch"),
        ("import os\nimport tensorflow as tf\n", "tensorflow"),
        ("from keras import layers\nimport torch\n", "pytorch"),
        ("import horovod.torch as hvd\nimport torch\n", "horovod"),
        ("# import tensorflow\n", "pytorch"),
    ],
)
def test_the_framework_is_the_one_that_the_script_imports(tmp_path, text, framework):
    script = tmp_path / "train.py"
    script.write_text(text)
    assert script_request(script, (), {})["framework"] == framework
    assert script_request(script, (), {"framework": "horovod"})["framework"] == "horovod"


def test_a_note_on_progress_fits_80_columns():
    text = "── Pulling: installing torch 2.15 for pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime (one time), 41 %"
    lines = wrapped(text, 80)
    assert max(map(len, lines)) <= 80
    assert " ".join(map(str.strip, lines)) == text


def test_a_command_in_an_error_is_not_broken_at_a_hyphen():
    terminal = Terminal(io.StringIO())
    terminal.is_interactive = True
    terminal.width = 80
    file = "a-folder-with-a-long-name/tensorflow-train-script-configmap.yaml"
    lines = problem_lines(
        [Problem("x", "code", "wrong.", f"Give both: astrago apply -f {file}")], terminal
    )
    assert any(file in line for line in lines)
