"""A program is built once, whole or not at all; what was damaged or cut short is built again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.build import binary
from cluster.cache import cache_folder, locked
from cluster.errors import ClusterError
from cluster.pins import Program

from .machine import ROOT, Machine, go

PROGRAM = Program("etcd", "etcd", "go.etcd.io/etcd/server/v3")
BUILD = "import sys; from cluster.build import binary; from cluster.pins import Program; binary(Program(*sys.argv[1:]))"
GOOD = """\
while [ "$1" != -o ]; do shift; done
touch "$GOTMPDIR/object"
echo built >> "$ASTRAGO_CACHE/count"
echo "a program" > "$2"
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a folder that comes first on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("ASTRAGO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def install_go(programs: Path, script: str) -> None:
    """A stand-in, since a real build takes minutes. Moved in place, for another one may be running."""
    unfinished = programs / "go.new"
    unfinished.write_text(f"#!/bin/sh\n{script}\n")
    unfinished.chmod(0o755)
    unfinished.rename(programs / "go")


def builds() -> int:
    return len((cache_folder() / "count").read_text().splitlines())


def files(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.rglob("*"))


def test_a_program_is_built_once_and_nothing_else_is_kept(programs: Path) -> None:
    install_go(programs, GOOD)

    target = binary(PROGRAM)

    assert binary(PROGRAM) == target
    assert builds() == 1
    assert files(target) == ["etcd", "etcd.record"]


def test_other_pins_are_another_program(programs: Path) -> None:
    install_go(programs, GOOD)

    targets = {
        binary(Program("etcd", module, package, flags))
        for module, package, flags in (
            ("etcd", "a", ""),
            ("coredns", "a", ""),
            ("etcd", "b", ""),
            ("etcd", "a", "-X a"),
        )
    }

    assert len(targets) == builds() == 4


def keeping_its_time(target: Path, change: Callable[..., None], *arguments: int) -> None:
    before = target.stat()
    change(target, *arguments)
    os.utime(target, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    "damage",
    [
        lambda target: os.truncate(target, 0),
        lambda target: os.truncate(target, 5),
        lambda target: keeping_its_time(target, os.truncate, 5),
        lambda target: target.write_text("a pr0gram\n"),
        lambda target: target.unlink(),
        lambda target: target.with_name("etcd.record").unlink(),
        lambda target: target.with_name("etcd.record").write_text(""),
        lambda target: target.with_name("etcd.record").write_text("[1, 2]"),
    ],
    ids=[
        "empty",
        "cut off",
        "cut off by a repair",
        "changed",
        "gone",
        "no record",
        "empty record",
        "other record",
    ],
)
def test_a_damaged_program_is_built_again(programs: Path, damage, capsys) -> None:
    install_go(programs, GOOD)
    target = binary(PROGRAM)
    damage(target)
    was_there = target.exists()
    capsys.readouterr()

    assert binary(PROGRAM).read_text() == "a program\n"

    assert builds() == 2
    reason = ", since what is kept of it is not whole" if was_there else ""
    assert capsys.readouterr().out == f"building etcd (go.etcd.io/etcd/server/v3){reason}\n"


def test_a_copy_of_the_cache_is_as_good(programs: Path, monkeypatch) -> None:
    install_go(programs, GOOD)
    target = binary(PROGRAM)
    os.utime(target, (1, 1))
    shutil.copytree(cache_folder(), cache_folder().with_name("copy"))
    monkeypatch.setenv("ASTRAGO_CACHE", str(cache_folder().with_name("copy")))

    assert binary(PROGRAM).exists()
    assert builds() == 1


def test_a_build_that_fails_leaves_nothing_that_could_be_taken_for_a_program(
    programs: Path,
) -> None:
    install_go(programs, f"{GOOD}\necho no space left on device >&2; exit 1")

    with pytest.raises(ClusterError, match=r"(?s)cluster/go/etcd:.*no space left on device"):
        binary(PROGRAM)

    (folder,) = (cache_folder() / "cluster" / "bin").iterdir()
    assert list(folder.iterdir()) == []
    install_go(programs, GOOD)
    assert binary(PROGRAM).read_text() == "a program\n"


def test_the_rests_of_a_build_that_was_killed_go_with_the_next_one(programs: Path) -> None:
    """Also when the Go of the former is still at work, and also those of other pins, which nobody asks for again."""
    at_work = programs.parent / "at-work"
    os.mkfifo(at_work)
    install_go(programs, f"{GOOD}\necho $$ > {at_work}; exec sleep 60")
    killed = Program("jobset", "etcd", "sigs.k8s.io/jobset")
    with start_build(killed) as process:
        orphan = int(at_work.read_text())
        process.kill()
    assert len(list(cache_folder().rglob("unfinished-*/jobset"))) == 1

    install_go(programs, GOOD)
    binary(PROGRAM)

    assert list(cache_folder().rglob("unfinished-*")) == []
    assert binary(killed).read_text() == "a program\n"
    os.kill(orphan, signal.SIGKILL)


def start_build(program: Program) -> subprocess.Popen[str]:
    arguments = (program.name, program.module, program.package)
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def test_of_two_who_build_at_once_one_builds(programs: Path) -> None:
    fifo = programs.parent / "fifo"
    os.mkfifo(fifo)
    install_go(programs, f"{GOOD}\nread line < {fifo}")
    gate = os.open(fifo, os.O_RDWR)
    with start_build(PROGRAM) as one, start_build(PROGRAM) as other:
        lines = sorted(process.stdout.readline() for process in (one, other))
        os.write(gate, b"go on\ngo on\n")
    os.close(gate)

    assert lines == ["building etcd (go.etcd.io/etcd/server/v3)\n", "waiting for another build…\n"]
    assert (one.returncode, other.returncode, builds()) == (0, 0, 1)


def test_a_lock_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with (
        pytest.raises(ClusterError, match="file/cache cannot be written: Not a directory") as told,
        locked(tmp_path / "file" / "cache" / "build.lock"),
    ):
        pass

    assert told.value.remedy == "Make it writable, or name another folder: ASTRAGO_CACHE=/path."


@pytest.mark.parametrize("group", ["0", "$PPID"], ids=["by a terminal", "by its own pid"])
def test_an_interrupted_build_is_told_in_one_line(machine: Machine, group: str) -> None:
    machine.install("go", go(f"touch $GOTMPDIR/object; kill -INT {group}; exec sleep 60"))

    found = machine.run("exec cluster up")

    assert found.error == "cluster: interrupted; what was built is kept\n"
    assert found.status == 130
    assert found.output.startswith("building kube-apiserver ")
    assert [name for name in found.files if "unfinished" in name] == []
    assert [line for line in found.processes if "sleep" in line] == []
