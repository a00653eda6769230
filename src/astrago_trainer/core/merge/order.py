"""One order of keys for everything that is shown or written, whatever order the input had.

People expect `name` before `image` before `env`, which is the order in which the API declares its fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from astrago_trainer.core.merge.schema import struct

Json = dict[str, Any]

_SPECS = {"JobSet": "struct:jobset.v1alpha2.JobSetSpec"}
_TOP = ("apiVersion", "kind", "metadata", "type", "immutable", "spec", "data")


def in_api_order(manifest: Mapping[str, Any], version: str) -> Json:
    """A copy of the object with the keys in the order of the API; unknown keys come last, sorted."""
    ordered: Json = {}
    for key in sorted(
        manifest, key=lambda name: (_TOP.index(name) if name in _TOP else len(_TOP), name)
    ):
        kind = "any"
        if key == "metadata":
            kind = "struct:meta.v1.ObjectMeta"
        elif key == "spec":
            kind = _SPECS.get(str(manifest.get("kind")), "any")
        ordered[key] = _in_order(manifest[key], kind, version)
    return ordered


def _in_order(value: Any, kind: str, version: str) -> Any:
    outer, _, inner = kind.partition(":")
    if isinstance(value, dict):
        if outer != "struct":
            below = inner if outer == "map" else "any"
            return {key: _ordered(value[key], below, version) for key in sorted(value)}
        fields = struct(inner, version)
        if len(value) > 1:
            # Every known key has a place; sorting the few that are there is cheaper than asking for all of them.
            places = _places(inner, version)
            last = len(places)
            keys = sorted(value, key=lambda key: (places.get(key, last), key))
        else:
            keys = list(value)
        return {
            key: _ordered(value[key], fields[key].kind if key in fields else "any", version)
            for key in keys
        }
    if isinstance(value, list):
        below = inner if outer == "list" else "any"
        return [_ordered(item, below, version) for item in value]
    return value


def _ordered(value: Any, kind: str, version: str) -> Any:
    return _in_order(value, kind, version) if isinstance(value, dict | list) else value


@cache
def _places(name: str, version: str) -> Mapping[str, int]:
    return {key: index for index, key in enumerate(struct(name, version))}
