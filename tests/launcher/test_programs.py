"""What can be launched: scripts, modules, programs; and what is said where that fails."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest

from catalogue.shells import plain_env, run
from launcher.common import command, launch, message, program


def test_a_script_has_its_arguments_and_its_folder_as_it_would_alone(tmp_path):
    script = program(tmp_path, "import sys; print(sys.argv, sys.path[0], sys.executable, __name__)")
    words = [str(script), "--nproc", "7", "--", "a b", ""]
    alone = run([sys.executable, *words], plain_env())
    assert launch("--", *words).stdout == alone.stdout
    assert launch(*words).stdout == alone.stdout


def test_the_interpreters_own_options_are_not_the_scripts(tmp_path):
    """The launcher starts without `site` where time counts; the script must not."""
    script = program(tmp_path, "import sys; print(sys.flags.no_site, sys.flags.ignore_environment)")
    words = command("--", script)
    done = run([words[0], "-S", "-E", *words[1:]], plain_env())
    assert (done.returncode, done.stdout) == (0, "0 0\n")


@pytest.mark.parametrize("words", [["-m", "timeit", "-h"], ["--", "-m", "timeit", "-h"]])
def test_a_module_runs_with_its_arguments(words):
    assert launch(*words).stdout.startswith("Tool for measuring execution time")


def test_any_program_runs(tmp_path):
    tool = program(tmp_path, '#!/bin/sh\necho "$0 $RANK of $WORLD_SIZE: $*"\n', "tool")
    tool.chmod(0o755)
    found = launch("--nproc", 1, "--", tool, "a", "b c").stdout
    assert found == f"{tool} 0 of 1: a b c\n"
    by_name = run(command("--", "tool", "x"), plain_env() | {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert by_name.stdout.endswith("tool 0 of 1: x\n")


def test_signals_that_python_ignores_are_not_ignored_by_the_program():
    ignored = int(launch("--", "grep", "SigIgn", "/proc/self/status").stdout.split()[1], 16)
    assert not ignored & (1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1)


def test_a_missing_script_is_said_with_the_place_it_was_looked_for(tmp_path):
    place = tmp_path / "message"
    done = run(
        command("--", "code/trian.py", "--epochs", "3"),
        plain_env(ASTRAGO_TERMINATION_LOG=str(place)),
        cwd=tmp_path,
    )
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == (
        f"launch: there is no script code/trian.py: looked for {tmp_path}/code/trian.py. "
        f"Give its path from {tmp_path}, or from /.\n"
    )
    assert message(place)[0]["exit_code"] == 127


@pytest.mark.parametrize(
    ("name", "text", "mode", "code", "said"),
    [
        ("tool", "#!/bin/sh\n", 0o644, 126, "may not be executed"),
        ("tool", "echo no first line\n", 0o755, 126, "Exec format error"),
        ("tool", "#!/no/such/shell\n", 0o755, 126, "No such file or directory"),
        ("other", "", 0o755, 127, "there is no program ./tool"),
    ],
)
def test_a_program_that_cannot_run_is_said(name, text, mode, code, said, tmp_path):
    (tmp_path / name).write_text(text)
    (tmp_path / name).chmod(mode)
    done = run(command("--nproc", "2", "--", "./tool"), plain_env(), cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1)
    assert said in done.stderr


def test_a_program_that_is_nowhere_is_said():
    done = launch("--", "no-such-program-anywhere")
    assert (done.returncode, done.stderr.count("\n")) == (127, 1)
    assert "in the folders of PATH" in done.stderr


def test_a_script_that_may_not_be_read_is_said(tmp_path):
    script = program(tmp_path, "")
    script.chmod(0)
    words = command("--", script)
    if os.getuid() == 0:  # which may read everything as long as it has these
        words = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *words]
    done = run(words, plain_env())
    assert (done.returncode, done.stderr) == (
        126,
        f"launch: {script} may not be read. Change its mode.\n",
    )


def test_a_machine_without_room_for_processes_is_said(tmp_path):
    """With too few file descriptors for the pipes, none of the processes stays."""
    script = program(tmp_path, "import signal; print('started', flush=True); signal.pause()")
    words = " ".join(command("--nproc", 64, "--", script))
    done = run(["bash", "-c", f"ulimit -n 40; exec {words}"], plain_env())
    assert done.returncode == 1
    assert re.search(r"launch: process \d+ of 64 cannot be started: Too many open", done.stderr)
