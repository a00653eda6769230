"""The package runs in users' images: standard library only, old Pythons too, and copied alone."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import astrago_trainer.checkpoint as package
from tests.pythons import python_of

FOLDER = Path(package.__file__).parent
MODULES = sorted(FOLDER.glob("*.py"))

PROGRAM = """
import checkpoint, sys
checkpoints = checkpoint.Checkpoints(sys.argv[1], keep=2)
assert checkpoints.latest() is None
for step in range(4):
    checkpoints.save(step, {"weights": [1.5, (step, b"x")]}, metadata={"epoch": step}, wait=step % 2 == 0)
checkpoints.wait()
found = checkpoints.latest()
assert (found.step, found.metadata) == (3, {"epoch": 3})
assert found.load() == {"weights": [1.5, (3, b"x")]}
ranks = [checkpoint.Checkpoints(sys.argv[1], rank=rank, world_size=2) for rank in (0, 1)]
for rank in ranks:
    rank.latest()
for rank in ranks:
    rank.save(4, b"part")
assert [rank.latest().load() for rank in ranks] == [b"part", b"part"]
try:
    ranks[0].save(5, lambda: None)
except Exception:
    pass
else:
    raise AssertionError("a function was saved")
"""


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_only_the_standard_library_and_its_own_modules_are_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            assert {alias.name.split(".")[0] for alias in node.names} <= sys.stdlib_module_names
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1 or node.module.split(".")[0] in sys.stdlib_module_names


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_a_copy_of_the_folder_works_alone_in_an_old_python(version, tmp_path):
    python = python_of(version)
    shutil.copytree(FOLDER, tmp_path / "checkpoint", ignore=shutil.ignore_patterns("__pycache__"))

    done = subprocess.run(
        [python, "-W", "error", "-c", PROGRAM, str(tmp_path / "checkpoints")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_public_names_are_sorted_and_there():
    assert package.__all__ == sorted(package.__all__)
    assert all(hasattr(package, name) for name in package.__all__)
