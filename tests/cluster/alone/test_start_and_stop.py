"""The cluster comes back after its death, and leaves nothing behind. Runs last: it ends the cluster.

Meanwhile the machine has others on it, see `neighbours`.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cluster.holder import Holder
from cluster.layout import HOST_LINK, Layout
from cluster.operators import Kubectl
from tests.cluster.alone.neighbours import (
    ODD,
    SETTING,
    answers,
    containerd,
    kubelet_group,
    servers,
    setting,
)
from tests.lengths import in_campaign

ROOT = Path(__file__).parents[3]


def start_tool(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cluster", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def tool(*arguments: str) -> str:
    with start_tool(*arguments) as process:
        output, error = process.communicate()
    assert process.returncode == 0, error
    return output


@pytest.fixture
def holder() -> Holder:
    return Holder(Layout.default())


@pytest.fixture(scope="module", autouse=True)
def neighbours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    folder = tmp_path_factory.mktemp("containerd")
    with containerd(folder) as runtime, kubelet_group() as (group, member), servers(), setting():
        yield SimpleNamespace(containerd=runtime, group=group, member=member)


def kill(pid: int) -> None:
    """Returns when it has ended."""
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([handle], [], [], 60)[0]
    os.close(handle)


def kill_program(holder: Holder, name: str) -> None:
    record = json.loads((holder.layout.run / f"{name}.json").read_text(encoding="utf-8"))
    assert holder.inside("kill", "-9", str(record["pid"])).returncode == 0


def parent(pid: int) -> int:
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return int(stat.rpartition(")")[2].split()[1])


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def assert_whole(holder: Holder) -> None:
    assert holder.is_up()
    runtimes = Kubectl(holder.layout.kubeconfig)("get", "clustertrainingruntimes", "-o", "name")
    assert "torch-distributed" in runtimes


def test_a_running_cluster_is_found_and_not_started_again(holder, version):
    before = holder.pid()

    output = tool("up", "--trainer", version)

    assert before is not None
    assert holder.pid() == before
    assert output.splitlines()[-1] == f"export KUBECONFIG={holder.layout.kubeconfig}"


@pytest.mark.parametrize(
    "victim", ["kubelet", "all of it", *in_campaign("containerd", "the outer process")]
)
def test_a_cluster_that_was_killed_starts_again(holder, version, victim):
    before = holder.pid()
    assert before is not None
    if victim == "all of it":
        kill(before)
    elif victim == "the outer process":
        kill(parent(before))
    else:
        kill_program(holder, victim)

    tool("up", "--trainer", version)

    assert holder.pid() not in (None, before)
    assert_whole(holder)


def test_of_two_starts_at_once_one_starts_and_the_other_finds_it(holder, version):
    tool("down")

    with (
        start_tool("up", "--trainer", version) as one,
        start_tool("up", "--trainer", version) as two,
    ):
        outputs = [process.communicate()[0] for process in (one, two)]

    assert (one.returncode, two.returncode) == (0, 0)
    waited = [output.splitlines()[0].startswith("waiting for another") for output in outputs]
    assert sorted(waited) == [False, True]
    assert_whole(holder)


@pytest.mark.parametrize("moment", ["started", *in_campaign("etcd.json", "manifests")])
def test_a_start_that_was_killed_is_followed_by_one_that_works(holder, version, moment):
    tool("down")
    with start_tool("up", "--trainer", version) as process:
        wait_until((holder.layout.run / moment).exists)
        process.kill()
    left = holder.pid()

    tool("up", "--trainer", version)

    assert holder.pid() not in (None, left)
    assert_whole(holder)


@pytest.mark.parametrize("moment", ["manifests", *in_campaign("etcd.json")])
def test_an_interrupted_start_ends_what_it_started(holder, version, moment):
    tool("down")
    with start_tool("up", "--trainer", version) as process:
        wait_until((holder.layout.run / moment).exists)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate()

    assert (process.returncode, error) == (130, "cluster: interrupted; what was built is kept\n")
    assert holder.pid() is None
    assert_no_trace(holder)


def test_nothing_of_it_is_left_when_it_is_ended(holder, version):
    tool("up", "--trainer", version)

    tool("down")
    tool("down")  # ending what does not run is fine

    assert holder.pid() is None
    assert_no_trace(holder)


def test_the_others_on_the_machine_were_not_disturbed(neighbours):
    if neighbours.containerd is not None:
        assert neighbours.containerd.poll() is None
    assert answers()
    assert neighbours.member.poll() is None
    assert str(neighbours.member.pid) in (neighbours.group / "cgroup.procs").read_text().split()
    assert SETTING.read_text() == ODD


def assert_no_trace(holder: Holder) -> None:
    state = str(holder.layout.root)
    commands = [path.read_bytes().decode(errors="replace") for path in _command_lines()]
    assert [line for line in commands if state in line] == []
    assert state not in Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    assert subprocess.run(["ip", "link", "show", HOST_LINK], capture_output=True).returncode != 0
    rules = subprocess.run(["iptables-save"], capture_output=True, text=True).stdout
    assert "KUBE-" not in rules
    assert "astrago" not in rules
    assert list(Path("/sys/fs/cgroup").glob(f"**/{holder.layout.cgroup}")) == []
    assert list(Path("/run/netns").glob("cni-*")) == []
    assert not holder.layout.run.exists()


def _command_lines() -> list[Path]:
    return [
        path
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if path.parent.name != str(os.getpid())
    ]
