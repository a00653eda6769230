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
from contextlib import suppress
from pathlib import Path

from cluster.cgroups import make_cgroup, remove_cgroup
from cluster.errors import ClusterError
from cluster.layout import (
    HOST_IP,
    HOST_LINK,
    LINK_NETWORK,
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
        return record["pid"] if record == _identity(record["pid"]) else None

    def is_up(self) -> bool:
        """Whether all programs run; one that has died is reason enough to start anew."""
        if self.pid() is None or not (self.layout.run / "started").exists():
            return False
        records = [path for path in self.layout.run.glob("*.json") if path != self._record]
        pids = [str(json.loads(path.read_text(encoding="utf-8"))["pid"]) for path in records]
        try:
            return self.inside("kill", "-0", *pids).returncode == 0
        except ClusterError:  # it ended while it was asked
            return False

    def start(self) -> None:
        """A fresh run on the kept state; returns when all programs are ready. If it fails, only its logs are left."""
        shutil.rmtree(self.layout.run, ignore_errors=True)
        shutil.rmtree(self.layout.root / "etcd", ignore_errors=True)
        self.layout.run.mkdir(parents=True)
        try:
            self._start()
        except BaseException:  # also Ctrl-C: half a cluster is of no use
            self._end()
            raise

    def _start(self) -> None:
        make_cgroup(self.layout.cgroup)
        # Mounts as slaves of the machine's: what others unmount goes away in there as well, and is not held by us.
        with (self.layout.run / "init.log").open("ab") as log:
            outer = subprocess.Popen(
                ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
                 "--propagation=slave", sys.executable, "-m", "cluster.init", str(self.layout.root)],
                stdin=subprocess.PIPE, stdout=log, stderr=log, bufsize=0, start_new_session=True,
                cwd=Path(__file__).parents[1],
            )  # fmt: skip
        # Until it is told to go on, it ends by itself when we are killed: no cluster runs without a record.
        pid = self._only_child(outer)
        self._record.write_text(json.dumps(_identity(pid)), encoding="utf-8")
        assert outer.stdin is not None
        try:
            _link(pid, self.layout.root)
            outer.stdin.write(b"go\n")
        except (ClusterError, BrokenPipeError):
            if _start_time(pid) is not None:
                raise  # else process 1 has ended first, and knows why
        outer.stdin.close()
        self._wait_until_started(outer)

    def stop(self) -> None:
        """Ends process 1; the kernel ends the rest. Stopping what does not run is fine, and so is what half runs."""
        self._end()
        shutil.rmtree(self.layout.run, ignore_errors=True)

    def _end(self) -> None:
        """Everything but the logs."""
        pid = self.pid()
        if pid is not None:
            self._kill(pid)
        if link_owner() == str(self.layout.root):
            subprocess.run(["ip", "link", "del", HOST_LINK], capture_output=True)
        remove_cgroup(self.layout.cgroup)
        _remove_folders(self.layout.mount_points)

    def _kill(self, pid: int) -> None:
        """Returns when it has ended, and with it everything in its process namespace."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:  # in the meantime
            return
        try:
            if self.pid() == pid:  # asked again: the handle cannot come to mean another process
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            ended = select.select([handle], [], [], STOP_SECONDS)[0]
        except PermissionError as error:
            raise ClusterError(
                f"process {pid}, the cluster, is not yours to end.", "Run it with sudo."
            ) from error
        finally:
            os.close(handle)
        if not ended:
            raise ClusterError(
                f"process {pid} does not end.", "Look at it with `ps`, then try again."
            )

    def inside(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command in the cluster's own namespaces."""
        pid = self.pid()
        if pid is None:
            raise ClusterError("the cluster is not running.", "Start it: make cluster")
        command = ["nsenter", "--target", str(pid), "--mount", "--net", "--pid", "--", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    def _only_child(self, process: subprocess.Popen[bytes]) -> int:
        """unshare forks once; its child is process 1 of the cluster."""
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        end = time.monotonic() + 10
        while time.monotonic() < end and process.poll() is None:
            found = children.read_text(encoding="utf-8").split()
            if found:
                return int(found[0])
            time.sleep(0.01)
        raise ClusterError(
            f"namespaces cannot be made here: {self._last_words()}",
            "A container must be allowed to (privileged); or use a machine of its own.",
        )

    def _wait_until_started(self, outer: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + START_SECONDS
        while not (self.layout.run / "started").exists():
            if outer.poll() is not None or time.monotonic() > end:
                raise ClusterError(
                    f"the cluster did not start: {self._last_words()}",
                    f"The logs are in {self.layout.run}; `make clean-cluster` removes them.",
                )
            time.sleep(0.1)

    def _last_words(self) -> str:
        log = (self.layout.run / "init.log").read_text(encoding="utf-8", errors="replace")
        return log.strip()[-1500:]


def link_owner() -> str | None:
    """The state folder whose cluster the link belongs to; "" for a link that no cluster made, None without a link."""
    if shutil.which("ip") is None:
        return None
    found = subprocess.run(["ip", "-json", "link", "show", HOST_LINK], capture_output=True)
    return json.loads(found.stdout)[0].get("ifalias", "") if found.returncode == 0 else None


def _link(pid: int, owner: Path) -> None:
    """A pair of links, one end in the cluster's network: that is how this machine reaches the API server."""
    length = LINK_NETWORK.rpartition("/")[2]
    inside = ["nsenter", "--target", str(pid), "--net", "--"]
    for command in (
        ["ip", "link", "add", HOST_LINK, "type", "veth", "peer", "name", NODE_LINK, "netns", str(pid)],
        ["ip", "link", "set", HOST_LINK, "alias", str(owner)],
        ["ip", "addr", "add", f"{HOST_IP}/{length}", "dev", HOST_LINK],
        ["ip", "link", "set", HOST_LINK, "up"],
        ["ip", "route", "add", POD_NETWORK, "via", NODE_IP],
        ["ip", "route", "add", SERVICE_NETWORK, "via", NODE_IP],
        [*inside, "ip", "addr", "add", f"{NODE_IP}/{length}", "dev", NODE_LINK],
        [*inside, "ip", "link", "set", NODE_LINK, "up"],
        [*inside, "ip", "route", "add", "default", "via", HOST_IP],
        [*inside, "sysctl", "-qw", "net.ipv4.ip_forward=1"],
    ):  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ClusterError(
                f"the cluster's network cannot be made: `{' '.join(command)}` says: {done.stderr.strip()}",
                "This machine's kernel must have veth links, and a container the right to make them.",
            )
    subprocess.run(
        [*inside, "sysctl", "-qw", "net.bridge.bridge-nf-call-iptables=1"], capture_output=True
    )


def _identity(pid: int) -> dict[str, object]:
    """Names a process for good: pids are used again, also in the same moment after the next boot of the machine."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    return {"pid": pid, "start_time": _start_time(pid), "boot": boot}


def _start_time(pid: int) -> str | None:
    """None when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _remove_folders(listed: Path) -> None:
    """Mount points that a run had to make; not those that somebody uses by now."""
    if listed.exists():
        for path in listed.read_text(encoding="utf-8").splitlines():
            with suppress(OSError):
                Path(path).rmdir()
