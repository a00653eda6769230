"""The cluster's own programs, ended and started again: as its run folder records them, and recorded there anew."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cluster.holder import Holder
from cluster.operators import Kubectl
from tests.cluster.api import PATIENCE


class Programs:
    """By name: `etcd`, `kube-apiserver`, `kubelet`."""

    def __init__(self, holder: Holder, kubectl: Kubectl) -> None:
        self._holder = holder
        self._kubectl = kubectl

    def kill(self, name: str) -> None:
        """Returns when it is gone, its ports with it."""
        pid = str(self._record(name)["pid"])
        assert self._inside("kill", "-9", pid)
        end = time.monotonic() + PATIENCE
        while self._inside("kill", "-0", pid):
            assert time.monotonic() < end, f"{name}, process {pid}, does not end"

    def start(self, name: str) -> None:
        """As it was started before, on what it left behind."""
        known = self._record(name)
        log = shlex.quote(str(self._holder.layout.run / f"{name}.log"))
        command = f"setsid {shlex.join(known['arguments'])} >>{log} 2>&1 </dev/null & echo $!"
        made = self._holder.inside("sh", "-c", command)
        record = {**known, "pid": int(made.stdout)}
        self._path(name).write_text(json.dumps(record), encoding="utf-8")

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """Killed, and started again afterwards."""
        self.kill(name)
        try:
            yield
        finally:
            self.start(name)

    @contextmanager
    def silent(self, name: str) -> Iterator[None]:
        """Stopped in the middle of whatever it does; it goes on afterwards."""
        pid = str(self._record(name)["pid"])
        assert self._inside("kill", "-STOP", pid)
        try:
            yield
        finally:
            assert self._inside("kill", "-CONT", pid)

    def until_well(self) -> None:
        """The API server, the node and the operators: those have leases, and end when they cannot renew them.

        After several ends the kubelet lets an operator wait for minutes. An administrator would start it anew, as here.
        """
        end = time.monotonic() + PATIENCE
        while self._kubectl("get", "--raw", "/readyz", check=False) != "ok":
            assert time.monotonic() < end, "the API server is not ready"
        self._kubectl("wait", "nodes", "--all", "--for=condition=Ready", "--timeout=180s")
        rollout = ("-n", "kubeflow-system", "rollout")
        if not self._kubectl(*rollout, "status", "deploy", "--timeout=5s", check=False):
            self._kubectl(*rollout, "restart", "deploy")
        self._kubectl(*rollout, "status", "deploy", "--timeout=180s")

    def _inside(self, *arguments: str) -> bool:
        return self._holder.inside(*arguments).returncode == 0

    def _record(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._path(name).read_text(encoding="utf-8"))
        return found

    def _path(self, name: str) -> Any:
        return self._holder.layout.run / f"{name}.json"
