"""Whatever a start was interrupted by, and wherever: nothing of it stays, or the next `down` or `up` takes it away.

The start is the real one, up to the moment when the programs would be started: there it asks for their binaries, and
the stand-in for Go keeps it waiting or fails.
"""

from __future__ import annotations

import pytest

from .machine import Machine, Outcome, go

START = """
import os, pathlib
from cluster.holder import Holder
from cluster.layout import Layout
pathlib.Path(os.environ["ROOM"], "starter").write_text(str(os.getpid()))
Holder(Layout.default()).start()
"""
PREPARE = """
for folder in /run /var/lib /var/log /sys/fs/cgroup; do mount -t tmpfs tmpfs $folder; done
mkdir -p /sys/fs/cgroup/memory/kubepods/foreign /sys/fs/cgroup/pids/kubepods/foreign /run/containerd
folders() { find /run /var/lib /var/log /sys/fs/cgroup -mindepth 1 | sort; }
folders > $ROOM/before
differences() { folders | diff $ROOM/before -; }
wait_for() { until [ -s $ROOM/$1 ]; do sleep 0.02; done; }
starter() { cat $ROOM/starter; }
outer() { cat /proc/$(starter)/task/*/children; }
process_1() { sed 's/.*"pid": \\([0-9]*\\).*/\\1/' $ASTRAGO_CLUSTER/run/init.json; }
"""
"""Folders that a cluster writes to are this machine's own, and a foreign containerd and kubelet have left traces."""


@pytest.fixture
def machine(machine: Machine) -> Machine:
    machine.install_real("cat", "mount", "nsenter", "sysctl", "unshare")
    machine.install("go", go("echo > $ROOM/building; exec sleep 60"))
    (machine.folder / "start.py").write_text(START)
    return machine


def run(machine: Machine, script: str) -> Outcome:
    return machine.run(
        f"{PREPARE}\nstart() {{ machine_python {machine.folder}/start.py; }}\n{script}"
    )


def assert_nothing_left(found: Outcome) -> None:
    assert found.output == ""  # of `differences`
    assert [line for line in found.links if "astrago" in line] == []
    assert [line for line in found.processes if "cluster" in line or "sleep" in line] == []


def files_of_run(machine: Machine, found: Outcome) -> list[str]:
    start = f"{machine.state}/"
    return sorted(name.removeprefix(start) for name in found.files if name.startswith(start))


def test_a_start_that_fails_leaves_its_logs_alone(machine: Machine) -> None:
    machine.install("go", go("echo no space left on device >&2; exit 1"))

    found = run(machine, "start; differences")

    assert_nothing_left(found)
    assert "ClusterError: the cluster did not start: " in found.error
    assert found.error.splitlines()[-1] == "no space left on device"
    assert "run/init.log" in files_of_run(machine, found)


def test_without_the_right_to_make_namespaces(machine: Machine) -> None:
    machine.install("unshare", "echo unshare: Operation not permitted >&2; exit 1")

    found = run(machine, "start; differences")

    assert_nothing_left(found)
    assert found.error.splitlines()[-1] == (
        "cluster.errors.ClusterError: namespaces cannot be made here: unshare: Operation not permitted"
    )


def test_what_process_1_has_to_say_is_told_when_it_ends_at_once(machine: Machine) -> None:
    machine.install("mount", "echo mount: permission denied >&2; exit 32")

    found = run(machine, "start; differences")

    assert_nothing_left(found)
    assert "ClusterError: the cluster did not start: mount: permission denied\n" in found.error


def test_an_interrupted_start_leaves_its_logs_alone(machine: Machine) -> None:
    found = run(machine, "(wait_for building; kill -INT $(starter)) & start; differences")

    assert_nothing_left(found)
    assert found.error.splitlines()[-1] == "KeyboardInterrupt"
    assert "run/init.log" in files_of_run(machine, found)


@pytest.mark.parametrize("victim", ["starter", "outer", "process_1"])
def test_down_takes_away_what_is_left_of_a_killed_start(machine: Machine, victim: str) -> None:
    found = run(
        machine,
        f"start 2> /dev/null & wait_for building; kill -9 $({victim}); wait; cluster down; cluster down; differences",
    )

    assert_nothing_left(found)
    assert (found.error, files_of_run(machine, found)) == ("", [])


def test_down_on_a_machine_that_never_had_a_cluster(machine: Machine) -> None:
    (machine.programs / "ip").unlink()

    found = run(machine, "umount /sys/fs/cgroup; mount -t tmpfs tmpfs /sys/fs; cluster down")

    assert (found.status, found.output, found.error) == (0, "", "")
    assert files_of_run(machine, found) == []


def test_a_start_that_was_killed_runs_until_it_is_ended(machine: Machine) -> None:
    """Shows that there was something to end."""
    found = run(
        machine,
        "start & wait_for building; kill -9 $(starter); wait 2> /dev/null\n"
        "cluster status; differences | grep -c astrago-",
    )

    assert found.output.startswith("running, process ")
    assert found.output.splitlines()[-1] == "2"  # one group in each hierarchy
    assert [line for line in found.links if line.startswith("astrago-host@")]


def test_a_start_that_is_killed_before_it_is_recorded_ends_by_itself(machine: Machine) -> None:
    """`ip` is what makes the link, right after the record; until then process 1 waits for its starter."""
    machine.install(
        "ip",
        'case "$*" in link\\ add*) echo > $ROOM/linking; exec sleep 60;; esac; exec /sbin/ip "$@"',
    )

    found = run(
        machine,
        "start & wait_for linking; rm $ASTRAGO_CLUSTER/run/init.json; one=$(outer); kill -9 $(starter); "
        "until ! kill -0 $one; do sleep 0.02; done 2> /dev/null; cat $ASTRAGO_CLUSTER/run/init.log",
    )

    assert found.output == "who started this was killed.\n"
    assert [line for line in found.processes if "cluster.init" in line] == []


def test_kernel_settings_that_the_kubelet_insists_on_do_not_reach_this_machine(
    machine: Machine,
) -> None:
    found = run(
        machine,
        "before=$(cat /proc/sys/kernel/panic); start & wait_for building\n"
        "nsenter --target $(process_1) --mount --pid -- sh -c 'echo 77 > /proc/sys/kernel/panic'\n"
        "nsenter --target $(process_1) --mount --pid -- cat /proc/sys/kernel/panic\n"
        "after=$(cat /proc/sys/kernel/panic); echo $before > /proc/sys/kernel/panic; [ $after = $before ]",
    )

    assert (found.status, found.output) == (0, "77\n")


def test_a_disk_that_others_take_away_is_not_held(machine: Machine) -> None:
    found = run(
        machine,
        "mount --make-rshared /; mount -t tmpfs foreign-disk /mnt\n"
        "start & wait_for building; grep -c foreign-disk /proc/$(process_1)/mountinfo\n"
        "umount /mnt; grep -c foreign-disk /proc/$(process_1)/mountinfo",
    )

    assert found.output == "1\n0\n"


@pytest.mark.parametrize(
    "change",
    ['s/"pid": [0-9]*/"pid": \'$!\'/', 's/"boot": "./"boot": "x/'],
    ids=["another process", "another boot of the machine"],
)
def test_a_process_that_only_looks_like_the_recorded_one_is_not_ended(
    machine: Machine, change: str
) -> None:
    found = run(
        machine,
        "start 2> /dev/null & wait_for building; one=$(process_1); sleep 50 &\n"
        f"sed -i '{change}' $ASTRAGO_CLUSTER/run/init.json; cluster down; kill -0 $! && kill -0 $one",
    )

    assert (found.status, found.error) == (0, "")
