"""Installs: once, complete or not at all, and one clear message for each way in which they fail."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.environments.wheels import make_wheel

from astrago_trainer.environments import installing
from astrago_trainer.environments.folders import Environment, environment_of, installed
from astrago_trainer.environments.installing import InstallFailed, Progress, install, remove


def an_environment(*requirements: str) -> Environment:
    return environment_of("python", requirements)


def begin(environment: Environment, **env: str) -> subprocess.Popen[str]:
    """An install as the supervisor of a job starts it."""
    words = (environment.known.name, *environment.requirements)
    return subprocess.Popen(
        [sys.executable, "-m", "astrago_trainer.environments", *words],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def version(environment: Environment) -> str:
    command = [
        str(environment.programs / "python"),
        "-c",
        "import greeting; print(greeting.VERSION)",
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_is_installed_once(wheels):
    environment = an_environment("greeting")
    lines: list[str] = []
    seen: list[Progress] = []
    install(environment, seen.append, lines.append)
    assert environment.is_ready
    assert version(environment) == "1.0"
    assert seen
    assert not list(environment.folder.parent.glob("*.progress"))
    shutil.rmtree(wheels)  # nothing is fetched again
    install(environment, seen.append, lines.append)
    assert [mark["requirements"] for _, mark in installed()] == [["greeting"]]
    ((folder, mark),) = installed()
    files = {
        path.stat().st_ino: path.lstat().st_size for path in folder.rglob("*") if path.is_file()
    }
    assert mark["is_measured"]
    assert 0 < mark["bytes"] <= sum(files.values())


def test_two_at_once_install_one(wheels):
    environment = an_environment("greeting")
    both = [begin(environment), begin(environment)]
    texts = [process.communicate(timeout=120)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], texts
    assert sum("installing" in text for text in texts) == 1
    assert version(environment) == "1.0"


def test_what_a_killed_install_left_is_never_used(wheels):
    environment = an_environment("greeting")
    process = begin(environment)
    assert process.stdout is not None
    assert "installing" in process.stdout.readline()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not environment.is_ready
    install(environment, lambda _: None)
    assert version(environment) == "1.0"


def test_a_broken_python_in_the_folder_of_an_earlier_try_is_replaced(wheels):
    environment = an_environment("greeting")
    (environment.folder / "bin").mkdir(parents=True)
    (environment.folder / "bin" / "python").write_text("not a program")
    install(environment, lambda _: None)
    assert version(environment) == "1.0"


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        ("no-such-package-of-ours", "no-such-package-of-ours"),
        ("greeting==9.9", "greeting==9.9"),
        ("greeting ===== 1", "greeting ===== 1"),
    ],
)
def test_requirements_that_cannot_be_met_are_named(wheels, requirement, said):
    environment = an_environment(requirement)
    with pytest.raises(InstallFailed) as failed:
        install(environment, lambda _: None)
    assert failed.value.code == "bad-requirements"
    assert said in str(failed.value)
    assert "cause:" not in str(failed.value)
    assert "Correct the requirements" in str(failed.value)
    assert not environment.folder.exists()


def test_a_requirement_that_cannot_be_read_is_named_by_its_text(wheels):
    environment = an_environment("greeting", "foo bar")
    lines: list[str] = []
    with pytest.raises(InstallFailed) as failed:
        install(environment, lambda _: None, lines.append)
    assert "requirement 2, 'foo bar', is no package" in str(failed.value)
    assert "^" not in str(failed.value)
    assert "astrago-install-" not in f"{failed.value}{lines}"


def test_the_progress_of_a_killed_install_is_not_shown_for_the_next(wheels, monkeypatch):
    environment = an_environment("greeting")
    shared = environment.folder.with_suffix(".progress")
    shared.parent.mkdir(parents=True)
    shared.write_text('{"written": 99, "percent": 99}')
    found: list[bool] = []
    run = installing._Installer.run
    monkeypatch.setattr(
        installing._Installer, "run", lambda self: (found.append(shared.exists()), run(self))
    )
    install(environment, lambda _: None)
    assert found == [False]


def test_without_a_network_the_command_that_helps_is_named(wheels, monkeypatch):
    with socket.socket() as closed:  # a port that refuses
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"http://127.0.0.1:{port}/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    with pytest.raises(InstallFailed) as failed:
        install(environment_of("torch"), lambda _: None)
    assert failed.value.code == "offline"
    assert "astrago environments install torch" in str(failed.value)
    assert "astrago environments add" in str(failed.value)


def test_a_disk_that_fills_up_is_named_and_left_as_it_was(wheels, tmp_path):
    """A small disk, mounted in a namespace of the test's own."""
    make_wheel(wheels, "large", size=40 << 20)
    small = tmp_path / "small"
    small.mkdir()
    mount = 'mount -t tmpfs -o size=24m none "$1" && shift && "$@"; code=$?'
    script = f'{mount}; find "$0" -name "*.json" | wc -l; exit $code'
    install_it = [sys.executable, "-m", "astrago_trainer.environments", "python", "large"]
    inside = ["sh", "-c", script, str(small), str(small), *install_it]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *inside],
        env={**os.environ, "ASTRAGO_CACHE": str(small)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1, done.stderr
    assert f"the disk of {small / 'environments'} is full" in done.stdout
    assert "ASTRAGO_CACHE" in done.stdout
    assert done.stdout.splitlines()[-1] == "0"


def test_a_folder_that_cannot_be_written_is_named(wheels, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASTRAGO_CACHE", str(tmp_path / "file"))
    with pytest.raises(InstallFailed, match=str(tmp_path / "file")):
        install(an_environment("greeting"), lambda _: None)


def test_a_removed_environment_is_installed_again(wheels):
    environment = an_environment("greeting")
    install(environment, lambda _: None)
    remove(environment.folder)
    assert not Path(environment.folder).exists()
    assert installed() == []
    install(environment, lambda _: None)
    assert environment.is_ready


def test_progress_is_one_line_for_people():
    assert Progress("torch 2.15", 100, 41).text("pytorch/pytorch:2.2") == (
        "installing torch 2.15 for pytorch/pytorch:2.2 (one time), 41 %"
    )
    assert "started by another job" in Progress("torch 2.15", is_other=True).text()
