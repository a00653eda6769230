"""The shipped objects as one installation wants them. Pure, but for reading the package's own files.

`deploy/kustomization.yaml` is the list, so that `kubectl apply -k deploy` and `astrago install` are the same thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from astrago_trainer import __version__
from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.names import check_namespace
from astrago_trainer.core.namespace_rules import check_patterns, parse_selector, split_patterns
from astrago_trainer.core.quantity import Quantity, QuantityError
from astrago_trainer.install.adoption_policy import allow_adoption, rule_of
from astrago_trainer.manifests import parse_documents

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

Json = dict[str, Any]

NAMESPACE = "astrago-system"
IMAGE = f"astrago-trainer:{__version__}"
STORAGE = "20Gi"
ACCOUNT = "astrago"
"""The server's service account, in its own namespace."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Installation:
    """What differs from cluster to cluster."""

    namespace: str = NAMESPACE
    image: str = IMAGE
    storage: str = STORAGE
    """Size of the volume for database and logs; `none` keeps them in the pod, and they go with it."""
    storage_class: str | None = None
    """None: the cluster's default."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Variables of the server, over those of the shipped Deployment."""


def check_installation(wanted: Installation) -> None:
    """Raises InvalidRequest with everything that is wrong."""
    problems = check_namespace(wanted.namespace, path="--namespace")
    if not wanted.image or any(each.isspace() for each in wanted.image):
        problems.append(
            Problem("--image", "FieldValueInvalid", f"must name an image; found {wanted.image!r}.")
        )
    if wanted.storage != "none" and not _is_size(wanted.storage):
        message = f"must be a size such as {STORAGE}, or none; found {wanted.storage!r}."
        problems.append(Problem("--storage", "FieldValueInvalid", message))
    problems += check_patterns(
        split_patterns(wanted.settings.get("ASTRAGO_NAMESPACES", "")), path="ASTRAGO_NAMESPACES"
    )
    try:
        parse_selector(wanted.settings.get("ASTRAGO_NAMESPACE_SELECTOR", ""))
    except ValueError as error:
        message = f"must be labels with commas between; found {str(error)[:80]!r}."
        problems.append(Problem("ASTRAGO_NAMESPACE_SELECTOR", "FieldValueInvalid", message))
    for name in wanted.settings:
        if not _VARIABLE.fullmatch(name):
            message = f"must be NAME=VALUE with the name of a variable; found {name!r}."
            problems.append(Problem("--set", "FieldValueInvalid", message))
    if problems:
        raise InvalidRequest(problems)


def installation_objects(wanted: Installation) -> list[Json]:
    """In the order in which they are applied: what others stand on first."""
    check_installation(wanted)
    objects = list(shipped_objects(wanted.namespace))
    if wanted.storage == "none":
        objects = [each for each in objects if each["kind"] != "PersistentVolumeClaim"]
    for each in objects:
        if each["kind"] == "PersistentVolumeClaim":
            _set_storage(each, wanted)
        if each["kind"] == "Deployment":
            _set_server(each, wanted)
    allow_adoption(objects, rule_of(wanted.settings))
    return objects


def shipped_objects(namespace: str = NAMESPACE) -> Iterator[Json]:
    """All of them, in another namespace if told: it is named in subjects and policies, too."""
    for path in _resources(files("astrago_trainer") / "deploy"):
        text = path.read_text("utf-8").replace(NAMESPACE, namespace)
        yield from parse_documents(text.encode(), path.name)


def server_settings(objects: list[Json]) -> dict[str, str]:
    """The variables that the server will find."""
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    return {each["name"]: each["value"] for each in _server(deployment)["env"]}


def _resources(folder: Traversable) -> Iterator[Traversable]:
    (listed,) = parse_documents(
        (folder / "kustomization.yaml").read_bytes(), f"{folder.name}/kustomization.yaml"
    )
    for name in listed["resources"]:
        # `..` is taken apart by hand: inside an archive a path is no more than names.
        if name.startswith("../"):
            yield from _resources(files("astrago_trainer") / name.removeprefix("../"))
        else:
            yield folder / name


def _set_storage(claim: Json, wanted: Installation) -> None:
    claim["spec"]["resources"]["requests"]["storage"] = wanted.storage
    if wanted.storage_class is not None:
        claim["spec"]["storageClassName"] = wanted.storage_class


def _set_server(deployment: Json, wanted: Installation) -> None:
    server = _server(deployment)
    server["image"] = wanted.image
    variables = {each["name"]: each["value"] for each in server["env"]} | dict(wanted.settings)
    server["env"] = [{"name": name, "value": value} for name, value in variables.items()]
    if wanted.storage == "none":
        volumes = deployment["spec"]["template"]["spec"]["volumes"]
        deployment["spec"]["template"]["spec"]["volumes"] = [
            {"name": "data", "emptyDir": {}} if each["name"] == "data" else each for each in volumes
        ]


def _server(deployment: Json) -> Json:
    found: Json = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def _is_size(text: str) -> bool:
    try:
        return Quantity.parse(text).number > 0
    except QuantityError:
        return False
