"""Missing programs are installed with apt-get, and what it could not do is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from cluster.errors import ClusterError
from cluster.machine import install_packages

from cluster import machine

INSTALL = "install -y -qq --no-install-recommends conntrack iproute2 libc6-dev"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on PATH. Of what a cluster needs, one program is there; two others and a file are missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    needed = {
        "conntrack": "conntrack",
        "gcc": "gcc",
        "ip": "iproute2",
        str(tmp_path / "libc.a"): "libc6-dev",
    }
    monkeypatch.setattr(machine, "DEBIAN_PACKAGES", needed)
    install(tmp_path, "gcc", "")
    return tmp_path


def install(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def install_apt_get(programs: Path, script: str) -> None:
    """A stand-in that writes down how it is called."""
    put = "for name in conntrack ip; do echo > $name; /bin/chmod 755 $name; done; echo > libc.a"
    install(programs, "apt-get", f'cd {programs}; echo "$*" >> calls\nput() {{ {put}; }}\n{script}')


def calls(programs: Path) -> list[str]:
    return (programs / "calls").read_text().splitlines()


def test_what_is_missing_is_installed_and_no_more(programs: Path, capsys) -> None:
    install_apt_get(programs, "put")

    install_packages()
    install_packages()

    assert calls(programs) == [INSTALL]
    assert capsys.readouterr().out == "installing conntrack iproute2 libc6-dev\n"


def test_lists_that_are_too_old_are_fetched_anew(programs: Path) -> None:
    install_apt_get(
        programs,
        "[ $1 = update ] && echo > new && exit; [ -e new ] || exit 100; put",
    )

    install_packages()

    assert calls(programs) == [INSTALL, "update -qq", INSTALL]


@pytest.mark.parametrize("lock", ["/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock"])
def test_another_apt_get_is_waited_for(programs: Path, monkeypatch, lock: str) -> None:
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: None)
    install_apt_get(
        programs,
        "[ -e free ] && put && exit; echo > free\n"
        f"echo E: Could not get lock {lock}. It is held by process 7 >&2; exit 100",
    )

    install_packages()

    assert calls(programs) == [INSTALL, INSTALL]


def test_another_apt_get_that_does_not_end_is_told(programs: Path, monkeypatch) -> None:
    monkeypatch.setattr(machine, "APT_SECONDS", 0.0)
    monkeypatch.setattr(machine.time, "sleep", lambda seconds: None)
    install_apt_get(programs, "echo E: Could not get lock /x. It is held by process 7 >&2; exit 1")

    with pytest.raises(ClusterError, match=r"Could not get lock /x. It is held by process 7"):
        install_packages()


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("[ $1 = update ] && echo E: no network >&2; exit 100", "E: no network"),
        ("[ $1 = install ] && echo E: no such package >&2; exit 100", "E: no such package"),
        ("exit 0", ""),
    ],
    ids=["update fails", "install fails", "it only says so"],
)
def test_what_could_not_be_installed_is_told(programs: Path, script: str, told: str) -> None:
    install_apt_get(programs, script)

    with pytest.raises(ClusterError) as error:
        install_packages()

    assert str(error.value) == (
        f"conntrack, ip, {programs}/libc.a are missing after apt-get install conntrack iproute2 libc6-dev: {told}"
    )
    assert error.value.remedy == "Install them by hand, and see that they are found on PATH."


def test_another_system_than_debian_is_told_what_is_needed(programs: Path) -> None:
    with pytest.raises(ClusterError) as error:
        install_packages()

    assert str(error.value) == f"these are missing: conntrack, ip, {programs}/libc.a."
    assert error.value.remedy == (
        "Install them with your package manager; Debian's packages are conntrack, iproute2, libc6-dev."
    )
