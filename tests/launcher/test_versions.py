"""It runs in users' images: Python 3.8 to 3.13, nothing but the standard library, and quickly."""

from __future__ import annotations

import ast
import os
import sys

import pytest
from tests.pythons import python_of

from catalogue.shells import plain_env, read_until, run, running
from launcher.common import LAUNCH, WAITING, command, message, program

VERSIONS = [f"3.{minor}" for minor in range(8, 14)]


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    return python_of(request.param)


def test_the_source_is_of_python_3_8():
    tree = ast.parse(LAUNCH.read_text(), feature_version=(3, 8))
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= set(sys.stdlib_module_names)


def test_on_every_python_processes_run_and_the_cause_is_told(python, tmp_path):
    script = program(
        tmp_path,
        """
        import os, signal, sys
        print(os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "on", sys.version_info[:2])
        sys.stdout.flush()
        if os.environ["RANK"] == "1":
            open(sys.argv[1]).read()
            raise ValueError("the cause")
        open(sys.argv[1], "w").close()
        signal.pause()
        """,
    )
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    place = tmp_path / "message"
    words = command("--nproc", 2, "--", script, gate, python=python)
    done = run(words, plain_env(ASTRAGO_TERMINATION_LOG=str(place)))
    assert done.returncode == 1
    version = run([python, "-c", "import sys; print(sys.version_info[:2])"], plain_env()).stdout
    assert sorted(done.stdout.splitlines()) == [f"{rank} of 2 on {version[:-1]}" for rank in (0, 1)]
    cause, words = message(place)
    assert (cause["rank"], cause["exit_code"]) == (1, 1)
    assert words.endswith("ValueError: the cause\n")
    assert "Warning" not in done.stderr


def test_on_every_python_a_signal_comes_through(python, tmp_path):
    script = program(tmp_path, WAITING)
    words = command("--nproc", 2, "--", script, 7, python=python)
    env = plain_env(PYTHONWARNINGS="error", PYTHONDEVMODE="1")
    with running(words, env) as process:
        read_until(process, "ready")
        read_until(process, "ready")
        process.terminate()
        output = process.stdout.read()
        assert process.wait() == 7
    assert output.count("stopping\n") == 2
    assert "Warning" not in output


def test_nothing_slow_is_imported_on_the_way_to_the_first_process(tmp_path):
    """What these cost is in docs/launcher.md; an import is what a test can count on any machine."""
    script = program(tmp_path, "print('started')")
    words = command("--nproc", 2, "--", script)
    done = run([words[0], "-I", "-S", "-X", "importtime", *words[1:]], plain_env())
    lines = done.stderr.partition("started")[0].splitlines()
    imported = {line.rpartition("|")[2].strip() for line in lines}
    assert "select" in imported
    slow = {"argparse", "ctypes", "enum", "json", "logging", "pathlib", "re", "selectors"}
    slow |= {"signal", "socket", "subprocess", "tempfile", "threading", "typing", "torch"}
    assert imported & slow == set()


def test_as_a_module_it_does_nothing_by_itself(tmp_path):
    """The local engine may compile it once, and run what it compiled."""
    compiled = tmp_path / "launch.pyc"
    text = (
        f"import py_compile; py_compile.compile({str(LAUNCH)!r}, {str(compiled)!r}, doraise=True)"
    )
    assert run([sys.executable, "-c", text], plain_env()).returncode == 0
    script = program(tmp_path, "import os; print(os.environ['WORLD_SIZE'])")
    done = run([sys.executable, str(compiled), "--nproc", "2", "--", str(script)], plain_env())
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n2\n", "")
