"""Where things are: one folder for all state, and the addresses inside the cluster's own network."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cluster.cache import cache_folder

HOST_LINK = "astrago-host"
NODE_LINK = "astrago-node"
HOST_IP = "10.143.0.1"
NODE_IP = "10.143.0.2"
LINK_NETWORK = "10.143.0.0/30"
BRIDGE = "pods0"
POD_NETWORK = "10.144.0.0/16"
POD_GATEWAY = "10.144.0.1"
SERVICE_NETWORK = "10.145.0.0/16"
API_SERVICE_IP = "10.145.0.1"
API_PORT = 6443
NODE_NAME = "astrago"


@dataclass(frozen=True, slots=True)
class Layout:
    """The state folder and what is in it."""

    root: Path

    @staticmethod
    def default() -> Layout:
        folder = os.environ.get("ASTRAGO_CLUSTER")
        return Layout((Path(folder) if folder else cache_folder() / "cluster" / "state").absolute())

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def run(self) -> Path:
        """Process records, sockets and logs of the running cluster."""
        return self.root / "run"

    @property
    def git(self) -> Path:
        """Repositories that pods may clone."""
        return self.root / "git"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    @property
    def socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def mount_points(self) -> Path:
        """Lists folders outside this one that the run had to make, to mount its own ones there."""
        return self.run / "mount-points"

    @property
    def cgroup(self) -> str:
        """Of the pods, below the machine's root group. Named after the folder: nobody else has such a group."""
        return f"astrago-{hashlib.sha256(str(self.root).encode()).hexdigest()[:8]}"

    @property
    def lock(self) -> Path:
        """This machine's network: link and addresses are fixed, so clusters of two folders must not start at once."""
        return Path("/proc/self/ns/net")
