"""What this machine must have, asked before anything is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from cluster.errors import ClusterError
from cluster.layout import HOST_LINK, Layout

DEBIAN_PACKAGES = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
}
CNI = Path("/usr/lib/cni/bridge")
NEEDED_BYTES = 20 * 2**30


def check_machine(layout: Layout) -> None:
    """Raises ClusterError for the first thing that is in the way; nothing has been changed then."""
    if os.geteuid() != 0:
        raise ClusterError(
            "a cluster needs root: it makes namespaces and runs containers.", "Run it with sudo."
        )
    folder = layout.root
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    if free < NEEDED_BYTES:
        raise ClusterError(
            f"{free / 2**30:.1f} GiB are free at {folder}, and {NEEDED_BYTES >> 30} are needed.",
            "Free some room, or name another folder: ASTRAGO_CLUSTER=/path.",
        )


def install_packages() -> None:
    """Debian's packages that are missing; on other systems the message says what is needed."""
    missing = sorted(
        {package for program, package in DEBIAN_PACKAGES.items() if shutil.which(program) is None}
    )
    if not CNI.exists():
        missing.append("containernetworking-plugins")
    if not missing:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(
            f"these programs are missing: {', '.join(missing)}.",
            "Install them with your package manager.",
        )
    print(f"installing {' '.join(missing)}", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (
        ["update", "-qq"],
        ["install", "-y", "-qq", "--no-install-recommends", *missing],
    ):
        done = subprocess.run(
            ["apt-get", *arguments], capture_output=True, text=True, env=environment
        )
    if done.returncode:
        raise ClusterError(
            f"apt-get could not install {', '.join(missing)}: {done.stderr.strip()[-500:]}",
            "Install them by hand and start again.",
        )


def check_network() -> None:
    """A link of ours that is still there belongs to a cluster that this state folder knows nothing of."""
    if subprocess.run(["ip", "link", "show", HOST_LINK], capture_output=True).returncode == 0:
        raise ClusterError(
            f"the network link {HOST_LINK} is there, but this folder has no running cluster.",
            f"Another cluster runs with another ASTRAGO_CLUSTER; stop it, or remove the link: ip link del {HOST_LINK}",
        )
