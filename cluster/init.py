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

WRITTEN_ELSEWHERE = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)
"""Written to by containerd, network plugins and kubelet whatever they are told; in here they lie in the run folder."""


def main() -> None:
    layout_root, *_ = sys.argv[1:]
    folder = Path(layout_root)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    _prepare_namespaces(folder / "run")
    for command in plan(folder):
        _start(command, folder / "run")
    (folder / "run" / "started").touch()
    while True:  # children of children end up here; nobody else collects them
        try:
            os.wait()
        except ChildProcessError:
            signal.pause()


def _prepare_namespaces(run: Path) -> None:
    """Mounts stay in here, and the network is waited for: the other end of its link is made outside."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for path in WRITTEN_ELSEWHERE:
        own = run / "elsewhere" / path.strip("/").replace("/", "-")
        own.mkdir(parents=True)
        Path(path).mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", str(own), path], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    sys.stdin.readline()  # the starter has moved our end of the link in here


def _start(command: Command, run: Path) -> None:
    """In a session of its own, its output in its log; the record is for people and tests that stop one of them."""
    with (run / f"{command.name}.log").open("ab") as log:
        process = subprocess.Popen(
            command.arguments,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    record = {"name": command.name, "pid": process.pid, "arguments": command.arguments}
    (run / f"{command.name}.json").write_text(json.dumps(record), encoding="utf-8")
    command.wait_until_ready()


if __name__ == "__main__":
    main()
