"""The view for people: golden files, and the promises it makes for every input."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import pytest

from astrago_trainer import catalogue
from astrago_trainer.cli.preview_table import preview_table
from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.preview import Preview, preview_pair

from .conftest import Astrago
from .manifests import a_runtime, a_trainjob, changed
from .test_main import FakeTerminal

GOLDEN = Path(__file__).parent / "golden"
RUNTIMES = Path(catalogue.__file__).parent / "runtimes"


def lines_of(preview: Preview, *, is_wide: bool = False) -> list[str]:
    return preview_table(preview, Terminal(io.StringIO()), is_wide=is_wide)


@pytest.mark.req("M73", "M79")
@pytest.mark.parametrize(
    ("name", "output", "columns"),
    [
        ("pytorch", "table", "80"),
        ("pytorch", "wide", "80"),
        ("pytorch-simple", "table", "120"),
        ("horovod", "table", "80"),
    ],
)
def test_the_samples_look_as_they_should(
    name: str, output: str, columns: str, astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Look at the difference, then write the files anew with ASTRAGO_GOLDEN=write."""
    monkeypatch.setenv("COLUMNS", columns)
    folder = RUNTIMES / name
    pair = ("--runtime", folder / "runtime.yaml", "--trainjob", folder / "trainjob.yaml")
    result = astrago("preview", *pair, "-o", output)
    assert result.code == 0
    path = GOLDEN / f"{name}-{output}-{columns}.txt"
    if os.environ.get("ASTRAGO_GOLDEN") == "write":
        path.write_text(result.out)
    assert result.out == path.read_text()


def test_every_value_of_the_pod_is_there_in_the_wide_view() -> None:
    runtime = catalogue.load_runtime("horovod-runtime")
    preview = preview_pair(runtime, catalogue.sample_trainjob("horovod-runtime"))
    text = "\n".join(lines_of(preview, is_wide=True))
    for part in ("ssh-keygen -A", "/mpi-ssh-auth/id_rsa", "StrictHostKeyChecking", "BlockingRec"):
        assert part in text
    assert "…" not in text.replace("form: …", "").replace("spec.…", "").replace("mlPolicy.…", "")


def test_every_line_with_a_value_has_a_bar_and_every_bar_a_name_above_it() -> None:
    preview = preview_pair(
        catalogue.load_runtime("tensorflow-runtime"),
        catalogue.sample_trainjob("tensorflow-runtime"),
    )
    name = ""
    for line in lines_of(preview)[2:]:
        if line.startswith("│"):
            break
        text, bar, origin = line.rpartition(" │")
        if not bar:
            opens = (
                not line or line.endswith(":") or re.match(r"  ?(Job|Pod)?$|\S|  found as", line)
            )
            assert opens, f"a value without an origin: {line!r}"
            name = ""
        else:
            name = origin.strip() or name
            assert name, f"a bar without a name: {line!r}"
            assert text is not None


def test_a_long_value_is_cut_and_a_long_script_shortened() -> None:
    command = ["bash", "-c", "\n".join(f"echo {number}" for number in range(40))]
    trainer = {"numNodes": 1, "command": command, "image": "registry/" + "x" * 200}
    preview = preview_pair(a_runtime(), a_trainjob(trainer=trainer))
    lines = lines_of(preview)
    assert max(map(len, lines)) <= 80
    assert any("… 30 more lines" in line for line in lines)
    assert any("xxx…" in line for line in lines)


def test_korean_text_keeps_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = {"numNodes": 1, "env": [{"name": "TITLE", "value": "분산 학습"}]}
    lines = lines_of(preview_pair(a_runtime(), a_trainjob(trainer=trainer)))
    (line,) = [line for line in lines if "분산" in line]
    plain = next(line for line in lines if "PET_MASTER_PORT" in line)
    assert line.index("│") + 4 == plain.index("│"), "four wide letters take eight columns"


def test_secrets_are_hidden() -> None:
    job_set = {"kind": "JobSet", "metadata": {"name": "a"}, "spec": {"replicatedJobs": []}}
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "c2VjcmV0"}}
    text = "\n".join(lines_of(Preview("2.1", (job_set, secret), (), {"/1/data/key": "runtime"})))
    assert "Secret s" in text
    assert "hidden" in text
    assert "c2VjcmV0" not in text


@pytest.mark.req("M73")
def test_no_control_character_of_a_user_reaches_the_terminal() -> None:
    evil = "a\x1b[31m\r\nb\u202e\x07"
    trainjob = a_trainjob(
        name=evil,
        trainer={
            "numNodes": 2,
            "image": evil,
            "command": [evil, "x\n\x1b[2J"],
            "env": [{"name": evil, "value": evil}],
        },
        labels={evil: evil},
    )
    runtime = changed(a_runtime(), "spec/template/spec/replicatedJobs/0/name", "node")
    preview = preview_pair(runtime, trainjob)
    problem = Problem(evil, "code", evil, evil)
    preview = Preview("2.1", preview.objects, (*preview.problems, problem), preview.provenance)
    for is_wide in (True, False):
        for line in preview_table(preview, Terminal(io.StringIO()), is_wide=is_wide):
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202e]", line), line


def test_colours_tell_origins_apart_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    preview = preview_pair(a_runtime(), a_trainjob())
    lines = preview_table(preview, Terminal(FakeTerminal()))
    assert any(line.startswith("\x1b[35m") and "mlPolicy.torch" in line for line in lines)
    assert any(line.startswith("\x1b[32m") and "spec.trainer.numNodes" in line for line in lines)
    assert any(line.startswith("\x1b[2m") and "default" in line for line in lines)


def test_a_refusal_has_a_title_and_no_empty_legend() -> None:
    problem = Problem("spec.x", "FieldValueInvalid", "must be y.", "Write y.")
    assert lines_of(Preview("2.3", (), (problem,), {}))[0] == (
        "Refused · Trainer 2.3 · nothing would be created"
    )
