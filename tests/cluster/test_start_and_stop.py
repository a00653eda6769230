"""The cluster comes back after its death, and leaves nothing behind. Runs last: it ends the cluster."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.holder import Holder
from cluster.layout import HOST_LINK, Layout
from cluster.operators import Kubectl

ROOT = Path(__file__).parents[2]


def tool(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "cluster", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def holder() -> Holder:
    return Holder(Layout.default())


def test_a_running_cluster_is_found_and_not_started_again(holder, version):
    before = holder.pid()

    output = tool("up", "--trainer", version)

    assert before is not None
    assert holder.pid() == before
    assert output.splitlines()[-1] == f"export KUBECONFIG={holder.layout.kubeconfig}"


@pytest.mark.parametrize("victim", ["kubelet", "all of it"])
def test_a_cluster_that_was_killed_starts_again(holder, version, victim):
    before = holder.pid()
    assert before is not None
    if victim == "kubelet":
        record = json.loads((holder.layout.run / "kubelet.json").read_text(encoding="utf-8"))
        assert holder.inside("kill", "-9", str(record["pid"])).returncode == 0
    else:
        handle = os.pidfd_open(before)
        os.kill(before, signal.SIGKILL)
        assert select.select([handle], [], [], 60)[0]
        os.close(handle)

    tool("up", "--trainer", version)

    assert holder.pid() not in (None, before)
    runtimes = Kubectl(holder.layout.kubeconfig)("get", "clustertrainingruntimes", "-o", "name")
    assert "torch-distributed" in runtimes


def test_nothing_of_it_is_left_when_it_is_ended(holder):
    state = str(holder.layout.root)

    tool("down")
    tool("down")  # ending what does not run is fine

    assert holder.pid() is None
    commands = [path.read_bytes().decode(errors="replace") for path in _command_lines()]
    assert [line for line in commands if state in line] == []
    assert state not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert subprocess.run(["ip", "link", "show", HOST_LINK], capture_output=True).returncode != 0
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True).stdout
    assert "KUBE-" not in rules
    assert "astrago" not in rules
    assert list(Path("/sys/fs/cgroup").glob("*/kubepods")) == []
    assert list(Path("/run/netns").glob("cni-*")) == []
    assert not holder.layout.run.exists()


def _command_lines() -> list[Path]:
    return [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid())
    ]
