"""The runtimes that are installed on the cluster, as manifests: what a preview has to start from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.engines.kubernetes.client import Client
from astrago_trainer.engines.kubernetes.objects import ClusterRuntime
from astrago_trainer.engines.kubernetes.resources import CLUSTER_RUNTIMES
from astrago_trainer.engines.kubernetes.watching import Watched


class InstalledRuntimes:
    """A copy that a watch keeps true. Jobs run without it, so nobody waits for the right to read it."""

    def __init__(self, client: Client) -> None:
        self.watched = Watched(
            client, CLUSTER_RUNTIMES, ClusterRuntime, self._take, is_needed=False
        )
        self._manifests: dict[str, Mapping[str, Any]] = {}

    def manifests(self) -> Mapping[str, Mapping[str, Any]] | None:
        """By name; None until they were read, and where they may not be."""
        is_known = self.watched.is_listed.is_set() and (self._manifests or not self.watched.trouble)
        return self._manifests if is_known else None

    def _take(self, runtime: ClusterRuntime, is_gone: bool) -> None:
        name = runtime.metadata.name
        if is_gone:
            self._manifests.pop(name, None)
        else:
            self._manifests[name] = _manifest(runtime)


def _manifest(runtime: ClusterRuntime) -> Mapping[str, Any]:
    """What people wrote, without what the API server keeps beside it."""
    meta = runtime.metadata
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": meta.name, **({"labels": meta.labels} if meta.labels else {})},
        "spec": runtime.spec,
    }
