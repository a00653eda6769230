"""`scripts/merge_preview.py`, under the name and with the options it always had."""

from __future__ import annotations

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
