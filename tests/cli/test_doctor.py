"""`astrago doctor` on a screen of 80 columns, for programs, and where there is no cluster."""

from __future__ import annotations

import json
import sys

import pytest

from astrago_trainer.cli.doctor_page import doctor_page
from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.doctor.findings import ok, warning, wrong

from .conftest import Astrago

FINDINGS = [
    ok("Python", "3.11.7 with astrago 0.1.0"),
    warning("control groups", "none can be made: CPU and memory of jobs are counted, but not held", "fix me"),
    wrong("port", "127.0.0.1:8000 cannot be used: Address already in use", "astrago up --port 0"),
    warning("Trainer", "none", f"kubectl apply -k '{'x ' * 30}' --server-side"),
]  # fmt: skip


def test_a_page_fits_80_columns_and_keeps_commands_whole() -> None:
    lines = doctor_page("local", FINDINGS, Terminal(sys.stdout))
    assert lines == [
        "This machine, for the local engine",
        "",
        "ok       Python          3.11.7 with astrago 0.1.0",
        "warning  control groups  none can be made: CPU and memory of jobs are counted,",
        "                         but not held",
        "                         → fix me",
        "wrong    port            127.0.0.1:8000 cannot be used: Address already in use",
        "                         → astrago up --port 0",
        "warning  Trainer         none",
        "         → kubectl apply -k \\",
        f"             '{'x ' * 30}' \\",
        "             --server-side",
        "",
        "1 wrong, 2 warnings, 1 ok.",
    ]


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        (FINDINGS[:1], "All is well."),
        (FINDINGS[:2], "Nothing is wrong, 1 warning, 1 ok."),
        (FINDINGS[:3], "1 wrong, 1 warning, 1 ok."),
    ],
)
def test_the_last_line_sums_up(findings: list, said: str) -> None:
    assert doctor_page("kubernetes", findings, Terminal(sys.stdout))[-1] == said


def test_this_machine_is_looked_at(astrago: Astrago, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ASTRAGO_PORT", "0")
    monkeypatch.delenv("ASTRAGO_ENGINE", raising=False)
    result = astrago("doctor", "--data", tmp_path)
    assert result.code == 0, result.out
    # A path stays whole, to be copied.
    assert all(len(line) <= 80 or " " not in line.strip() for line in result.out.splitlines())
    assert not result.err
    for form in (["--json"], ["-o", "json"]):
        shown = astrago("doctor", "--data", tmp_path, *form)
        found = json.loads(shown.out)
        assert found["engine"] == "local"
        assert {each["state"] for each in found["findings"]} <= {"ok", "warning"}
        assert {"subject", "state", "text", "mend"} == found["findings"][0].keys()


def test_something_wrong_is_the_exit_code(astrago: Astrago, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("ASTRAGO_PORT", "many")
    result = astrago("doctor", "--data", tmp_path)
    assert result.code == 1
    assert "wrong    settings" in result.out


def test_a_cluster_that_is_not_there_is_one_line_and_no_traceback(
    astrago: Astrago, tmp_path
) -> None:
    config = tmp_path / "config"
    config.write_text(
        "{current-context: c, contexts: [{name: c, context: {cluster: k}}],"
        " clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}]}"
    )
    for kubeconfig, said in ((config, "did not answer"), (tmp_path / "none", "no cluster is")):
        result = astrago("doctor", "--engine", "kubernetes", "--kubeconfig", kubeconfig)
        assert result.code == 1
        assert "wrong    cluster" in result.out
        assert said in " ".join(result.out.split())
        assert not result.err
