"""What would keep a server from running, found before anything is applied. Pure, but for the one that asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.engines.base import EngineError
from astrago_trainer.install.cluster import InstallClient
from astrago_trainer.install.manifests import IMAGE, Installation
from astrago_trainer.install.server_state import CLAIM, image_fixes

Json = Mapping[str, Any]

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a server is to be installed; None for what may not be read."""

    storage_classes: Sequence[Json] | None = None
    nodes: Sequence[Json] | None = None
    claim: Json | None = None
    """The server's, if it is there already."""


async def read_ground(client: InstallClient, namespace: str) -> Ground:
    claim = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{CLAIM}"
    classes = await _items(client, "/apis/storage.k8s.io/v1/storageclasses")
    nodes = await _items(client, "/api/v1/nodes")
    try:
        found: Json | None = await client.get(claim)
    except EngineError:
        found = None
    return Ground(classes, nodes, found)


def check_ground(ground: Ground, wanted: Installation, *, is_image_named: bool) -> list[Problem]:
    """Everything that would leave the server without its volume or its image, with the command that helps."""
    problems = _check_storage(ground, wanted)
    if not is_image_named and wanted.image == IMAGE and not _is_on_a_node(ground, IMAGE):
        build, install = image_fixes(wanted.namespace)
        problems.append(
            Problem(
                "--image",
                "unpublished-image",
                f"the image {IMAGE} is in no registry, and no node reports it.",
                f"Build and push it, then name it: {build} && {install}",
            )
        )
    return problems


def default_classes(classes: Sequence[Json]) -> list[str]:
    return [
        name
        for name, each in zip(class_names(classes), classes, strict=True)
        if (each["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]


def class_names(classes: Sequence[Json]) -> list[str]:
    return [str(each["metadata"]["name"]) for each in classes]


def _check_storage(ground: Ground, wanted: Installation) -> list[Problem]:
    if wanted.storage == "none" or wanted.storage_class == "" or ground.storage_classes is None:
        return []
    if ground.claim is not None and (ground.claim.get("status") or {}).get("phase") == "Bound":
        return []
    names = class_names(ground.storage_classes)
    shown = ", ".join(names[:5])
    without = "--storage none keeps database and logs in the pod, and they go with it"
    if wanted.storage_class is not None:
        if wanted.storage_class in names:
            return []
        message = (
            f"the cluster has no storage class {wanted.storage_class!r}; it has {shown or 'none'}."
        )
        return [Problem("--storage-class", "missing", message, f"Name one of them; {without}.")]
    if default_classes(ground.storage_classes):
        return []
    if not names:
        message = (
            "the cluster has no storage class: the server's claim would wait for a volume for ever."
        )
        remedy = f'Add one, or make a volume by hand and give --storage-class ""; {without}.'
        return [Problem("--storage-class", "missing", message, remedy)]
    message = f"no storage class is the default, and none is named; the cluster has {shown}."
    return [
        Problem(
            "--storage-class", "missing", message, f"Give --storage-class {names[0]}; {without}."
        )
    ]


def _is_on_a_node(ground: Ground, image: str) -> bool:
    """As kubelets report it; they know some 50 images of their node."""
    wanted = {image, f"docker.io/library/{image}"}
    return any(
        wanted & set(found.get("names") or ())
        for node in ground.nodes or ()
        for found in (node.get("status") or {}).get("images") or ()
    )


async def _items(client: InstallClient, path: str) -> list[Json] | None:
    try:
        found: list[Json] = (await client.get(path))["items"]
    except EngineError:
        return None
    return found
