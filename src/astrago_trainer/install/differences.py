"""What is different between an object as shipped and as the cluster has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from astrago_trainer.manifests import dump_yaml

Json = Mapping[str, Any]

_OF_THE_SERVER = (
    "creationTimestamp",
    "finalizers",  # the Trainer's controller marks runtimes that are in use
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
)
_OF_CONTROLLERS = ("deployment.kubernetes.io/", "pv.kubernetes.io/", "volume.")
"""Beginnings of annotations that come by themselves, at any time."""


def first_difference(shipped: Any, found: Any, path: str = "") -> str:
    """Where the cluster lacks what was shipped, as a path; empty when all of it is there.

    What the cluster has beyond that (defaults, status, others' labels) does not count.
    """
    if isinstance(shipped, Mapping):
        if not isinstance(found, Mapping):
            return path or "."
        for key, value in shipped.items():
            if where := first_difference(value, found.get(key), f"{path}.{key}".lstrip(".")):
                return where
        return ""
    if isinstance(shipped, list):
        if not isinstance(found, list) or len(shipped) != len(found):
            return path
        for place, (one, other) in enumerate(zip(shipped, found, strict=True)):
            if where := first_difference(one, other, f"{path}[{place}]"):
                return where
        return ""
    # The API server leaves out what is empty, and 4 and "4" are the same quantity.
    is_same = str(shipped) == str(found) or (shipped in ("", None) and found is None)
    return "" if is_same else path


def is_same(before: Json, after: Json) -> bool:
    """Whether nothing changed that people write; controllers write the rest all the time."""
    return _written(before) == _written(after)


def diff_lines(before: Json | None, after: Json, title: str) -> Iterator[str]:
    """As `diff -u` shows it, without what the server writes itself; nothing when they are alike."""
    from difflib import unified_diff

    old, new = (
        [] if each is None else dump_yaml(_written(each)).splitlines() for each in (before, after)
    )
    yield from unified_diff(old, new, f"{title} now", f"{title} then", lineterm="", n=2)


def _written(found: Json) -> Json:
    metadata = {
        name: value for name, value in found["metadata"].items() if name not in _OF_THE_SERVER
    }
    if annotations := metadata.pop("annotations", None):
        kept = {
            name: value
            for name, value in annotations.items()
            if not name.startswith(_OF_CONTROLLERS)
        }
        metadata |= {"annotations": kept} if kept else {}
    shown = {name: value for name, value in found.items() if name not in ("status", "metadata")}
    return {**shown, "metadata": metadata}
