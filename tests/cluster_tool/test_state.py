"""Keys, control groups and the lock: complete or made anew, only our own, and one at a time."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cluster.cgroups import make_cgroup, remove_cgroup
from cluster.errors import ClusterError
from cluster.layout import Layout
from cluster.pki import make_pki

from .machine import PASSED, Machine, go

OPENSSL = """\
echo "$*" | grep -q "${FAILS:-nothing fails}" && echo no room >&2 && exit 1
while [ $# -gt 0 ]; do
  case $1 in -out|-keyout) head -c 8 /dev/urandom > "$2" ;; esac
  shift
done
"""


@pytest.fixture
def layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    """Keys come from a stand-in, since real ones take seconds; `FAILS` says in what it fails."""
    openssl = tmp_path / "bin" / "openssl"
    openssl.parent.mkdir()
    openssl.write_text(f"#!/bin/sh\n{OPENSSL}")
    openssl.chmod(0o755)
    monkeypatch.setenv("PATH", f"{openssl.parent}:/usr/bin:/bin")
    return Layout(tmp_path / "state")


def contents(layout: Layout) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(layout.pki.iterdir())}


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_keys_fit_and_are_for_nobody_else(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "state")

    make_pki(layout)

    certificates = [layout.pki / f"{name}.crt" for name in ("admin", "apiserver", "node")]
    command = ["openssl", "verify", "-CAfile", layout.pki / "ca.crt", *certificates]
    subprocess.run(command, check=True, capture_output=True)
    modes = [path.stat().st_mode & 0o777 for path in (layout.pki, layout.kubeconfig)]
    assert modes == [0o700, 0o600]


def test_keys_are_made_once(layout: Layout) -> None:
    make_pki(layout)
    before = contents(layout)

    make_pki(layout)

    assert contents(layout) == before


@pytest.mark.parametrize(
    "damage",
    [
        lambda pki: (pki / "admin.crt").unlink(),
        lambda pki: (pki / "ca.key").write_text(""),
        lambda pki: (pki / "made-for.json").unlink(),
        lambda pki: (pki / "made-for.json").write_text('{"admin": ["/CN=other", "DNS:other"]}'),
        lambda pki: pki.rename(pki.with_suffix(".unfinished")),
    ],
    ids=["one is missing", "one is empty", "half made", "for other names", "not yet in place"],
)
def test_keys_that_are_not_a_whole_set_are_made_anew(
    layout: Layout, damage: Callable[[Path], object]
) -> None:
    make_pki(layout)
    before = contents(layout)
    damage(layout.pki)

    make_pki(layout)

    after = contents(layout)
    assert after.keys() == before.keys()
    assert not set(after.values()) & {
        before[name] for name in before if name.endswith((".key", ".crt"))
    }
    assert sorted(path.name for path in layout.root.iterdir()) == [
        "admin.kubeconfig",
        "node.kubeconfig",
        "pki",
    ]


@pytest.mark.parametrize("step", ["req -x509", "genrsa", "x509 -req.*node"])
def test_keys_that_cannot_be_made_are_told_and_leave_no_set(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setenv("FAILS", step)

    with pytest.raises(ClusterError, match=f"openssl {step.split()[0]} failed: no room"):
        make_pki(layout)

    assert not layout.pki.exists()


def folders(base: Path) -> list[str]:
    return sorted(str(path.relative_to(base)) for path in base.rglob("*") if path.is_dir())


def test_only_our_own_control_groups_are_removed(tmp_path: Path) -> None:
    """As version 1 has them, one hierarchy per controller, with a link for joined ones."""
    for name in ("memory/kubepods/burstable/pod1", "cpu,cpuacct/kubepods"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cpu").symlink_to("cpu,cpuacct")
    foreign = folders(tmp_path)

    make_cgroup("astrago-1", tmp_path)
    make_cgroup("astrago-1", tmp_path)

    assert set(folders(tmp_path)) - set(foreign) == {"memory/astrago-1", "cpu,cpuacct/astrago-1"}
    (tmp_path / "memory/astrago-1/kubepods/besteffort/pod2").mkdir(parents=True)
    remove_cgroup("astrago-1", tmp_path)
    remove_cgroup("astrago-1", tmp_path)
    assert folders(tmp_path) == foreign


def test_in_version_2_the_group_gets_the_controllers(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").write_text("cpu memory pids\n")
    (tmp_path / "kubepods.slice").mkdir()

    make_cgroup("astrago-1", tmp_path)

    assert folders(tmp_path) == ["astrago-1", "kubepods.slice"]
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+pids"  # the last of those written
    remove_cgroup("astrago-1", tmp_path)
    assert folders(tmp_path) == ["kubepods.slice"]


def test_clusters_of_two_folders_have_two_groups_and_one_lock() -> None:
    one, other = Layout(Path("/one")), Layout(Path("/other"))

    assert one.cgroup != other.cgroup
    assert one.lock == other.lock


def test_a_second_start_waits_for_the_first_and_says_so(machine: Machine) -> None:
    """The first one is building: its stand-in for Go goes on when the second one has said that it waits."""
    machine.install_real("grep")
    wait = "echo > $ROOM/building; until grep -q waiting $ROOM/second; do sleep 0.02; done"
    machine.install("go", go(f"{wait}; echo {PASSED} >&2; exit 1"))

    found = machine.run(
        "cluster up > $ROOM/first & until [ -e $ROOM/building ]; do sleep 0.02; done\n"
        "ASTRAGO_CLUSTER=$ROOM/other cluster up > $ROOM/second; wait; cat $ROOM/first $ROOM/second"
    )

    building = "building kube-apiserver (k8s.io/kubernetes/cmd/kube-apiserver)"
    assert found.output.splitlines() == [building, "waiting for another `make cluster`…", building]
    assert found.error.splitlines().count(PASSED) == 2
