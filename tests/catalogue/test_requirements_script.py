"""The init container that installs a job's packages, run for real against an index of the test's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.environments.wheels import make_wheel, served

SCRIPT = Path(__file__).parents[2] / "runtimes" / "system" / "install_requirements.sh"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """An image's Python, with pip."""
    import sys

    folder = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    return folder / "bin"


def run_script(
    tmp_path: Path, python: Path, requirements: str, index: str
) -> subprocess.CompletedProcess[str]:
    folder = tmp_path / "astrago"
    folder.mkdir()
    env = {
        "PATH": f"{python}:{os.environ['PATH']}",
        "ASTRAGO_PACKAGES": str(folder),
        "ASTRAGO_REQUIREMENTS": requirements,
        "PIP_INDEX_URL": index,
        "HOME": str(tmp_path),
    }
    shell = shutil.which("dash") or "/bin/sh"
    return subprocess.run(
        [shell, "-c", SCRIPT.read_text()], env=env, capture_output=True, text=True, timeout=300
    )


def test_packages_come_beside_those_of_the_image(tmp_path: Path, python: Path) -> None:
    make_wheel(tmp_path / "wheels", "greeting")
    with served(tmp_path / "wheels") as index:
        done = run_script(tmp_path, python, "greeting==1.0", index)
    assert done.returncode == 0, done.stdout + done.stderr
    program = tmp_path / "astrago" / "packages" / "bin" / "python"
    code = "import greeting, pip; print(greeting.VERSION)"  # pip is the image's
    assert subprocess.run([program, "-c", code], capture_output=True, text=True).stdout == "1.0\n"


def test_nothing_in_a_requirement_is_shell_text(tmp_path: Path, python: Path) -> None:
    make_wheel(tmp_path / "wheels", "greeting")
    with served(tmp_path / "wheels") as index:
        done = run_script(
            tmp_path, python, f"$(touch {tmp_path}/owned); `touch {tmp_path}/owned`", index
        )
    assert done.returncode != 0
    assert not (tmp_path / "owned").exists()


def test_an_image_without_pip_is_named(tmp_path: Path) -> None:
    import sys

    folder = tmp_path / "image"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    done = run_script(tmp_path, folder / "bin", "greeting", "http://127.0.0.1:9/")
    assert done.returncode == 1
    assert "has no pip; build an image with the packages instead" in done.stdout
