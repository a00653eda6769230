"""Who set each leaf of the result.

While the merge runs, only what differs from the runtime is noted: a mark on a container says "all below came from
here", a mark on one key says it for that key alone; the nearest mark wins. The table of all leaves is made when
somebody asks for it, so a merge whose origins nobody reads does not pay for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

Json = dict[str, Any]
T = TypeVar("T")
C = TypeVar("C", Json, list[Any])


class Origin(NamedTuple):
    """Where a value came from: the layer in words, and its path inside the TrainJob where it came from there."""

    layer: str
    path: str = ""


RUNTIME = Origin("runtime")
DEFAULT = Origin("default")

_ALWAYS_WRITTEN = frozenset(
    {"metadata", "podAffinityTerm", "preference", "resources", "spec", "status", "template"}
)
"""Structs that the API types write down even when nobody set anything in them."""


_NO_KEYS: dict[str, Origin] = {}


class Origins:
    """Marks on containers, by identity; marked containers are kept alive so that no identity is used twice."""

    __slots__ = ("_alive", "_keys", "_whole")

    def __init__(self, seed: Origins | None = None) -> None:
        self._whole: dict[int, Origin] = dict(seed._whole) if seed else {}
        self._keys: dict[int, dict[str, Origin]] = (
            {k: dict(v) for k, v in seed._keys.items()} if seed else {}
        )
        self._alive: list[Any] = list(seed._alive) if seed else []

    def mark(self, node: T, origin: Origin) -> T:
        """Everything in `node` came from `origin`, as far as nothing below says otherwise; returns the node."""
        self._whole[id(node)] = origin
        self._alive.append(node)
        return node

    def mark_key(self, node: Json, key: str, origin: Origin) -> None:
        """`node[key]` came from `origin`."""
        keys = self._keys.get(id(node))
        if keys is None:
            keys = self._keys[id(node)] = {}
            self._alive.append(node)
        keys[key] = origin

    def fork(self, node: C) -> C:
        """A shallow copy of a dict or list that carries the marks of the original."""
        copy: C = node.copy()
        if not self._alive:
            return copy
        known = id(node)
        if known in self._whole:
            self._whole[id(copy)] = self._whole[known]
            self._alive.append(copy)
        if known in self._keys:
            self._keys[id(copy)] = dict(self._keys[known])
            self._alive.append(copy)
        return copy

    def leaves(self, objects: Sequence[Json]) -> dict[str, Origin]:
        """Each leaf of `objects` as a JSON pointer, with its origin; an empty dict or list is a leaf."""
        found: dict[str, Origin] = {}
        for index, node in enumerate(objects):
            self._walk(node, f"/{index}", RUNTIME, "", found)
        return found

    def _walk(
        self, node: Any, pointer: str, origin: Origin, below: str, found: dict[str, Origin]
    ) -> None:
        # `below` is what has to be added to origin.path to reach this node inside the TrainJob
        whole = self._whole.get(id(node))
        if whole is not None:
            origin, below = whole, ""
        if not node:
            is_unset = pointer.rpartition("/")[2] in _ALWAYS_WRITTEN
            found[pointer] = DEFAULT if is_unset else _at(origin, below)
        elif type(node) is dict:
            keys = self._keys.get(id(node)) or _NO_KEYS
            for key, value in node.items():
                step = f"{pointer}/{_escaped(key) if '/' in key or '~' in key else key}"
                own = keys.get(key)
                if own is None:
                    source, rest = origin, f"{below}.{key}" if origin.path else ""
                else:
                    source, rest = own, ""
                if isinstance(value, (dict, list)):
                    self._walk(value, step, source, rest, found)
                else:
                    found[step] = _at(source, rest)
        else:
            for position, value in enumerate(node):
                step = f"{pointer}/{position}"
                rest = f"{below}[{position}]" if origin.path else ""
                if isinstance(value, (dict, list)):
                    self._walk(value, step, origin, rest, found)
                else:
                    found[step] = _at(origin, rest)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _at(origin: Origin, below: str) -> Origin:
    return Origin(origin.layer, origin.path + below) if origin.path and below else origin
