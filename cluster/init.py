"""Process 1 of the cluster: starts its programs, collects the dead, and takes everything with it when it ends.

It runs in a process, network and mount namespace of its own. When it is killed, in whatever way, the kernel ends every
process of the cluster, pods included, and its mounts, links and packet rules go with the namespaces.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from cluster.commands import Command, plan
from cluster.errors import ClusterError
from cluster.layout import Layout

WRITTEN_ELSEWHERE = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""Written to by containerd, network plugins and kubelet whatever they are told; in here they lie in the run folder."""

KERNEL_SETTINGS = (
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
)
"""Of the whole machine, and the kubelet insists on its own values; in here it gets copies to write to."""


def main() -> None:
    layout = Layout(Path(sys.argv[1]))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        _prepare_namespaces(layout)
        _start_all(layout)
    except (ClusterError, OSError, subprocess.CalledProcessError) as error:
        sys.exit(str(error))
    (layout.run / "started").touch()
    while True:  # children of children end up here; nobody else collects them
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


def _prepare_namespaces(layout: Layout) -> None:
    """Mounts stay in here, and the network is waited for: the other end of its link is made outside."""
    own = layout.run / "elsewhere"
    own.mkdir()
    missing = [path for path in WRITTEN_ELSEWHERE if not Path(path).exists()]
    layout.mount_points.write_text("\n".join(missing), encoding="utf-8")
    for path in WRITTEN_ELSEWHERE:
        Path(path).mkdir(parents=True, exist_ok=True)
        folder = own / path.strip("/").replace("/", "-")
        folder.mkdir()
        subprocess.run(["mount", "--bind", str(folder), path], check=True)
    for name in KERNEL_SETTINGS:
        setting = Path("/proc/sys", name)
        copy = own / name.replace("/", "-")
        copy.write_text(setting.read_text(encoding="utf-8"), encoding="utf-8")
        subprocess.run(["mount", "--bind", str(copy), str(setting)], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    if not sys.stdin.readline():  # a line comes once our end of the link is in here
        raise ClusterError("who started this was killed.", "Start it again.")


def _start_all(layout: Layout) -> None:
    processes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for command in plan(layout.root):
            processes[command.name] = _start(command, layout.run)
            command.wait_until_ready()
    except TimeoutError as error:
        ended = [name for name, process in processes.items() if process.poll() is not None]
        culprit = ended[0] if ended else command.name
        log = (layout.run / f"{culprit}.log").read_text(encoding="utf-8", errors="replace")
        raise TimeoutError(f"{error}; {culprit} says:\n{log.strip()[-1000:]}") from error


def _start(command: Command, run: Path) -> subprocess.Popen[bytes]:
    """In a session of its own, its output in its log; the record is for people and tests that stop one of them."""
    with (run / f"{command.name}.log").open("ab") as log:
        process = subprocess.Popen(
            command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd=command.folder,
        )
    record = {"name": command.name, "pid": process.pid, "arguments": command.arguments}
    (run / f"{command.name}.json").write_text(json.dumps(record), encoding="utf-8")
    return process


if __name__ == "__main__":
    main()
