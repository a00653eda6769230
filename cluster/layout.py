"""Where things are: one folder for all state, and the addresses inside the cluster's own network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cluster.cache import cache_folder

HOST_LINK = "astrago-host"
NODE_LINK = "astrago-node"
HOST_IP = "10.143.0.1"
NODE_IP = "10.143.0.2"
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
        return Layout(Path(folder) if folder else cache_folder() / "cluster" / "state")

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def run(self) -> Path:
        """Process records, sockets and logs of the running cluster."""
        return self.root / "run"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "admin.kubeconfig"

    @property
    def socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def lock(self) -> Path:
        return self.root.with_suffix(".lock")
