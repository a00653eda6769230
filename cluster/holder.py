"""Starts and stops the cluster as one thing: its process 1, by pid and start time, and the link into its network."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from cluster.errors import ClusterError
from cluster.layout import (
    HOST_IP,
    HOST_LINK,
    NODE_IP,
    NODE_LINK,
    POD_NETWORK,
    SERVICE_NETWORK,
    Layout,
)

START_SECONDS = 240.0
STOP_SECONDS = 30.0


class Holder:
    """The running cluster of a state folder, if there is one."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._record = layout.run / "init.json"

    def pid(self) -> int | None:
        """Process 1 of the cluster as this machine counts; None when it is not running, or is not ours any more."""
        try:
            record = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return record["pid"] if _start_time(record["pid"]) == record["start_time"] else None

    def is_up(self) -> bool:
        """Whether all programs run; one that has died is reason enough to start anew."""
        if self.pid() is None or not (self.layout.run / "started").exists():
            return False
        records = [path for path in self.layout.run.glob("*.json") if path != self._record]
        pids = [str(json.loads(path.read_text(encoding="utf-8"))["pid"]) for path in records]
        return self.inside("kill", "-0", *pids).returncode == 0

    def start(self) -> None:
        """A fresh run on the kept state; returns when all programs are ready."""
        shutil.rmtree(self.layout.run, ignore_errors=True)
        shutil.rmtree(self.layout.root / "etcd", ignore_errors=True)
        self.layout.run.mkdir(parents=True)
        with (self.layout.run / "init.log").open("ab") as log:
            outer = subprocess.Popen(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                 sys.executable, "-m", "cluster.init", str(self.layout.root)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                cwd=Path(__file__).parents[1],
            )  # fmt: skip
        pid = _only_child(outer)
        self._record.write_text(
            json.dumps({"pid": pid, "start_time": _start_time(pid)}), encoding="utf-8"
        )
        _link(pid)
        assert outer.stdin is not None
        outer.stdin.write(b"go\n")
        outer.stdin.close()
        self._wait_until_started(outer)

    def stop(self) -> None:
        """Ends process 1; the kernel ends the rest. Stopping what does not run is fine."""
        pid = self.pid()
        if pid is not None:
            with _pidfd(pid) as handle:
                os.kill(pid, signal.SIGKILL)
                if not select.select([handle], [], [], STOP_SECONDS)[0]:
                    raise ClusterError(
                        f"process {pid} does not end.", "Look at it with `ps`, then try again."
                    )
        subprocess.run(["ip", "link", "del", HOST_LINK], capture_output=True)
        shutil.rmtree(self.layout.run, ignore_errors=True)
        _remove_cgroups()

    def inside(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command in the cluster's own namespaces."""
        pid = self.pid()
        if pid is None:
            raise ClusterError("the cluster is not running.", "Start it: make cluster")
        command = ["nsenter", "--target", str(pid), "--mount", "--net", "--pid", "--", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def _wait_until_started(self, outer: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while not (self.layout.run / "started").exists():
            if outer.poll() is not None or time.monotonic() > end:
                log = (self.layout.run / "init.log").read_text(encoding="utf-8", errors="replace")
                raise ClusterError(
                    f"the cluster did not start:\n{log.strip()[-1500:]}",
                    f"The logs are in {self.layout.run}; `make clean-cluster` removes what is left.",
                )
            time.sleep(0.1)


def _link(pid: int) -> None:
    """A pair of links, one end in the cluster's network: that is how this machine reaches the API server."""
    subprocess.run(["ip", "link", "del", HOST_LINK], capture_output=True)
    for arguments in (
        ["link", "add", HOST_LINK, "type", "veth", "peer", "name", NODE_LINK, "netns", str(pid)],
        ["addr", "add", f"{HOST_IP}/30", "dev", HOST_LINK],
        ["link", "set", HOST_LINK, "up"],
        ["route", "add", POD_NETWORK, "via", NODE_IP],
        ["route", "add", SERVICE_NETWORK, "via", NODE_IP],
    ):
        subprocess.run(["ip", *arguments], check=True, capture_output=True)
    inside = ["nsenter", "--target", str(pid), "--net", "--"]
    for arguments in (
        ["ip", "addr", "add", f"{NODE_IP}/30", "dev", NODE_LINK],
        ["ip", "link", "set", NODE_LINK, "up"],
        ["ip", "route", "add", "default", "via", HOST_IP],
        ["sysctl", "-qw", "net.ipv4.ip_forward=1"],
    ):
        subprocess.run([*inside, *arguments], check=True, capture_output=True)
    subprocess.run(
        [*inside, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"], capture_output=True
    )


def _only_child(process: subprocess.Popen[bytes]) -> int:
    """unshare forks once; its child is process 1 of the cluster."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + 10
    while time.monotonic() < end and process.poll() is None:
        found = children.read_text(encoding="utf-8").split()
        if found:
            return int(found[0])
        time.sleep(0.01)
    raise ClusterError(
        "namespaces cannot be made here.", "Is this a container without the right to? See init.log."
    )


def _start_time(pid: int) -> str | None:
    """With the pid it names a process for good: pids are used again, the two together are not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


class _pidfd:  # noqa: N801 - used like a function
    def __init__(self, pid: int) -> None:
        self._handle = os.pidfd_open(pid)

    def __enter__(self) -> int:
        return self._handle

    def __exit__(self, *_: object) -> None:
        os.close(self._handle)


def _remove_cgroups() -> None:
    """The kubelet's folders, deepest first; empty once the processes are gone."""
    for base in Path("/sys/fs/cgroup").glob("**/kubepods"):
        for folder in sorted((path for path in base.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        base.rmdir()
