"""Asks the API server for what an installation needs: server-side apply, dry runs, and what may be done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from astrago_trainer.engines.kubernetes.client import APPLY, Client
from astrago_trainer.engines.kubernetes.resources import Resource

Json = Mapping[str, Any]

_PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "ClusterTrainingRuntime": "clustertrainingruntimes",
    "Deployment": "deployments",
    "Namespace": "namespaces",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Service": "services",
    "ServiceAccount": "serviceaccounts",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
}
"""Of the kinds that are shipped; a test holds the list to the files."""


class InstallClient(Client):
    """The engine's client, with more verbs."""

    async def find_like(self, manifest: Json) -> Json | None:
        """What the cluster has under this kind and name."""
        return await self.find(resource_of(manifest), namespace_of(manifest), name_of(manifest))

    async def put(self, manifest: Json, *, is_dry: bool, is_forced: bool) -> Json:
        """Applied on the server under our name as manager; Conflict where another manager holds a field."""
        path = resource_of(manifest).path(namespace_of(manifest), name_of(manifest))
        more = {"force": "true" if is_forced else "false", **({"dryRun": "All"} if is_dry else {})}
        return await self._write("PATCH", path, manifest, APPLY, **more)

    async def try_create(self, path: str, manifest: Json) -> Json:
        """As if it were created, with all that admission says; nothing is."""
        return await self._write("POST", path, manifest, dryRun="All")

    async def get(self, path: str, **query: str) -> Json:
        """Any answer in JSON; NotFound, Refused and EngineUnavailable as the client has them."""
        found: Json = msgspec.json.decode(await self.read(path, **query))
        return found


def resource_of(manifest: Json) -> Resource:
    version = str(manifest["apiVersion"])
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return Resource(base, _PLURALS[manifest["kind"]])


def namespace_of(manifest: Json) -> str:
    return str(manifest["metadata"].get("namespace", ""))


def name_of(manifest: Json) -> str:
    return str(manifest["metadata"]["name"])
