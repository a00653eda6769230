"""`scripts/merge_preview.py`, under the name and with the options it always had."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import REPOSITORY, Astrago

SCRIPT = REPOSITORY / "scripts" / "merge_preview.py"


def merge_preview(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *argv], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.req("M64", "M73", "M82")
@pytest.mark.parametrize("name", ["pytorch", "tensorflow"])
def test_it_prints_a_heading_and_the_merged_pods(name: str, astrago: Astrago) -> None:
    folder = REPOSITORY / "runtimes" / name
    pair = ("--runtime", folder / "runtime.yaml", "--trainjob", folder / "trainjob.yaml")
    done = merge_preview(*pair)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("JobSet ")
    assert "git-clone" in done.stdout
    assert done.stdout == astrago("preview", *pair).out
    assert "kind: JobSet" in merge_preview(*pair, "-o", "yaml").stdout


@pytest.mark.req("M64", "M82")
def test_any_python_of_the_machine_can_start_it() -> None:
    """Without the package it continues in the environment of the checkout."""
    folder = REPOSITORY / "runtimes" / "pytorch"
    pair = ("--runtime", folder / "runtime.yaml", "--trainjob", folder / "trainjob.yaml")
    plain = [os.path.realpath(sys.executable), "-E", "-s", str(SCRIPT), *map(str, pair)]
    assert subprocess.run([*plain[:3], "-c", "import astrago_trainer"], check=False).returncode
    done = subprocess.run(plain, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("JobSet ")


def test_an_environment_that_is_missing_is_made_first(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    shutil.copy(SCRIPT, tmp_path / "scripts")
    (tmp_path / "Makefile").write_text(
        ".venv/.ready:\n"
        "\t@mkdir -p .venv/bin && touch .venv/.ready && echo making\n"
        "\t@printf '#!/bin/sh\\necho continued \"$$@\"\\n' > .venv/bin/python\n"
        "\t@chmod +x .venv/bin/python\n"
    )
    plain = [os.path.realpath(sys.executable), "-E", "-s"]
    argv = (str(tmp_path / "scripts/merge_preview.py"), "--runtime", "a b", "--trainjob", "c")
    runs = [
        subprocess.run([*plain, *argv], capture_output=True, text=True, timeout=60, check=False)
        for _ in range(2)
    ]
    assert [each.stdout for each in runs] == [f"continued {' '.join(argv)}\n"] * 2
    first, second = (each.stderr for each in runs)
    assert first.splitlines() == [
        f"merge_preview.py: making the environment {tmp_path / '.venv'}, one time "
        "(the first step of make setup)",
        "making",
    ]
    assert second == ""
    (tmp_path / "Makefile").write_text(".venv/.ready:\n\t@exit 3\n")
    shutil.rmtree(tmp_path / ".venv")
    failed = subprocess.run(
        [*plain, *argv], capture_output=True, text=True, timeout=60, check=False
    )
    assert failed.returncode == 1
    assert "then run: make setup" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.req("M82")
def test_both_files_are_required() -> None:
    for argv in ([], ["--runtime", "x"], ["--trainjob", "x"]):
        done = merge_preview(*argv)
        assert done.returncode == 2
        assert "required" in done.stderr


@pytest.mark.req("M82")
def test_a_missing_file_or_path_is_named(tmp_path: Path) -> None:
    done = merge_preview("--runtime", tmp_path / "no.yaml", "--trainjob", tmp_path / "no.yaml")
    assert done.returncode == 1
    assert "no.yaml" in done.stderr
    assert "Traceback" not in done.stderr
