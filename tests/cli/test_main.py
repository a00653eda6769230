"""The shell around the commands: help, usage, exit codes, failures, and what start-up costs."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from astrago_trainer import __version__
from astrago_trainer.cli import cmd_preview, cmd_version, main
from astrago_trainer.cli.terminal import Terminal, cut, cut_front, padded, width
from astrago_trainer.core.merge import VERSIONS
from astrago_trainer.retelling import FORMS

from .conftest import ASTRAGO, Astrago


def test_help_lists_the_commands_in_80_columns(astrago: Astrago) -> None:
    for argv in ([], ["--help"], ["-h"]):
        result = astrago(*argv)
        assert result.code == 0
        for name, text in main.COMMANDS.items():
            assert f"\n  {name} " in result.out
            assert f"  {text}\n" in result.out
        assert max(map(len, result.out.splitlines())) <= 80
        assert not result.err
    for name in main.COMMANDS:
        text = astrago(name, "--help")
        assert text.code == 0
        assert max(map(len, text.out.splitlines())) <= 80


def test_version_says_what_it_speaks_to(astrago: Astrago) -> None:
    assert astrago("version").out.startswith(f"astrago {__version__}\n")
    assert "Kubeflow Trainer 2.1, 2.2, 2.3" in astrago("version").out
    assert '"trainer": ["2.1", "2.2", "2.3"]' in astrago("version", "-o", "json").out
    assert f'astrago: "{__version__}"' in astrago("version", "-o", "yaml").out
    assert astrago("--version").out == f"astrago {__version__}\n"


def test_the_versions_of_the_option_are_those_of_the_merge() -> None:
    assert cmd_preview.VERSIONS == VERSIONS
    assert cmd_preview.RETELLINGS == FORMS


@pytest.mark.parametrize(
    "argv",
    [
        ["previw"],
        ["preview"],
        ["preview", "-f"],
        ["preview", "-f", "a", "--trainjob", "b"],
        ["preview", "-f", "a", "--jsonl"],
        ["preview", "--runtime", "a"],
        ["preview", "--jsonl", "-o", "yaml"],
        ["preview", "--jsonl", "--runtime", "a"],
        ["preview", "--runtime", "-", "--trainjob", "-"],
        ["preview", "-f", "a", "--trainer-version", "1.9"],
        ["preview", "-f", "a", "-o", "xml"],
        ["runtimes", "--sample"],
        ["runtimes", "a", "--sample", "--script"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_2_and_says_so(argv: list[str], astrago: Astrago) -> None:
    result = astrago(*argv)
    assert result.code == 2
    assert "usage: astrago" in result.err
    assert "error:" in result.err
    assert not result.out


def test_a_mistyped_command_is_answered_with_the_nearest(astrago: Astrago) -> None:
    assert "did you mean preview?" in astrago("previw").err


def test_what_was_typed_is_never_obeyed_by_the_terminal(astrago: Astrago) -> None:
    for argv in (["\x1b[31mx"], ["preview", "\x1b[2J"], ["preview", "-f", "\x1b[31m.yaml"]):
        result = astrago(*argv)
        assert "\x1b" not in result.all
        assert "\\x1b" in result.err


def test_a_bug_is_one_line_with_the_way_to_report_it(
    astrago: Astrago, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> int:
        raise KeyError("\x1bsecret")

    monkeypatch.setattr(cmd_version, "execute", fail)
    result = astrago("version")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "KeyError" in result.err
    assert "ASTRAGO_DEBUG=1" in result.err
    assert "Traceback" not in result.err
    assert "\x1b" not in result.err

    monkeypatch.setenv("ASTRAGO_DEBUG", "1")
    result = astrago("version")
    assert result.code == 1
    assert "Traceback" in result.err


def test_ctrl_c_is_quiet(astrago: Astrago, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cmd_version, "execute", interrupt)
    assert astrago("version") == (130, "", "")


def test_ctrl_c_while_it_waits_for_input_is_quiet() -> None:
    with subprocess.Popen(
        [ASTRAGO, "preview", "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        assert process.stdout.readline().startswith(b'{"errors"')  # it runs, and now it waits
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")


@pytest.mark.parametrize("argv", [["runtimes", "tensorflow-runtime", "-o", "yaml"], ["--help"]])
def test_a_closed_pipe_is_quiet(argv: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [ASTRAGO, *argv],
            stdout=writer,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            timeout=30,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == 141
    assert done.stderr == b""


def test_a_terminal_that_knows_ascii_only_gets_codes_not_a_crash(astrago_program: Astrago) -> None:
    result = astrago_program("preview", "--help", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert result.code == 0
    assert "\\u2026" in result.out


def test_a_full_disk_is_said_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [ASTRAGO, "runtimes"], stdout=full, stderr=subprocess.PIPE, timeout=30, check=False
        )
    assert done.returncode == 1
    assert done.stderr == b"astrago: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    ("closed", "code"), [("<&-", 1), (">&-", 1), ("2>&-", 1), ("0</dev/null", 1)]
)
def test_closed_streams_are_empty_ones(closed: str, code: int) -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" preview -f - {closed}', ASTRAGO],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == code
    assert b"this is a bug" not in done.stdout + done.stderr


LIGHT = {"pydantic", "yaml", "dataclasses", "inspect", "typing", "json", "shutil", "pathlib"}


@pytest.mark.parametrize("argv", [["--help"], ["preview", "--help"], ["runtimes", "--help"]])
def test_help_imports_nothing_heavy(argv: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", ASTRAGO, *argv],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "argparse" in imported, "the list of imports is read as expected"
    assert not LIGHT & imported
    ours = {name for name in imported if name.startswith("astrago_trainer")}
    assert not any(name.startswith(("astrago_trainer.core", "astrago_trainer.m")) for name in ours)


def test_a_preview_of_manifests_imports_no_pydantic(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "kind: TrainJob\napiVersion: trainer.kubeflow.org/v1alpha1\nmetadata: {name: a}\n"
        "spec: {runtimeRef: {name: pytorch-simple}, trainer: {numNodes: 2}}\n"
    )
    done = subprocess.run(
        [sys.executable, "-X", "importtime", ASTRAGO, "preview", "-f", str(job)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "astrago_trainer.core.preview" in done.stderr
    assert "pydantic" not in done.stderr


def cpu_seconds(cache: Path, *argv: str) -> float:
    """With a warm byte-code cache, as after installation; the best of five, since others run too."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache / "bytecode")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    spent = []
    for _ in range(6):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([ASTRAGO, *argv], env=env, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spent[1:])


def test_help_costs_at_most_100_ms_of_cpu(tmp_path: Path) -> None:
    assert cpu_seconds(tmp_path, "--help") <= 0.1


def test_a_preview_costs_at_most_250_ms_of_cpu(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(
        "kind: TrainJob\napiVersion: trainer.kubeflow.org/v1alpha1\nmetadata: {name: a}\n"
        "spec: {runtimeRef: {name: pytorch-simple}, trainer: {numNodes: 2}}\n"
    )
    assert cpu_seconds(tmp_path, "preview", "-f", str(job)) <= 0.25


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert Terminal(FakeTerminal()).paint("x", "red") == "\x1b[31mx\x1b[0m"
    assert Terminal(io.StringIO()).paint("x", "red") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert Terminal(FakeTerminal()).paint("x", "red") == "x"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert Terminal(FakeTerminal()).paint("x", "red") == "x"


@pytest.mark.parametrize(("columns", "found"), [("120", 120), ("3", 40), ("x", 80), ("", 80)])
def test_the_width_is_columns_or_80(
    columns: str, found: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Terminal(io.StringIO()).width == found


def test_wide_characters_take_two_columns() -> None:
    assert width("한글") == 4
    assert width("é") == 1
    assert width("e\u0301") == 1
    assert padded("한", 4) == "한  "
    assert cut("한글입니다", 5) == "한글…"
    assert cut_front("spec.trainer.image", 8) == "…r.image"
    assert cut("abc", 3) == cut_front("abc", 3) == "abc"
