"""A JSON object under construction that remembers which field of the request made each leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from astrago_trainer.core.spec.paths import join_path

Json = dict[str, Any]
Path = tuple[str | int, ...]


class Draft:
    """`put` fills it leaf by leaf; `value` is the object, `sources` its origins."""

    def __init__(self) -> None:
        self.value: Json = {}
        self._leaves: dict[Path, str] = {}

    def put(self, path: Path, value: Any, source: str = "") -> None:
        """Set the value at `path`, making what is on the way; lists grow at their end."""
        *parents, last = path
        holder: Any = self.value
        for step, following in zip(parents, path[1:], strict=True):
            holder = _enter(holder, step, [] if isinstance(following, int) else {})
        if not isinstance(holder, list):
            holder[last] = value
        elif last == len(holder):
            holder.append(value)
        else:
            raise IndexError(f"{join_path(path)}: the list has {len(holder)} entries")
        if source:
            self._leaves.update((leaf, source) for leaf in _leaves(path, value))

    def graft(self, path: Path, other: Draft) -> None:
        """Put another draft's object at `path`, with its sources."""
        for key, value in other.value.items():
            self.put((*path, key), value)
        self._leaves.update(((*path, *leaf), source) for leaf, source in other._leaves.items())

    def count(self, path: Path) -> int:
        """How many entries the list at `path` has so far."""
        holder: Any = self.value
        for step in path:
            holder = holder.get(step) if isinstance(holder, dict) else holder[step]
            if holder is None:
                return 0
        return len(holder)

    @property
    def sources(self) -> dict[str, str]:
        """Path of a leaf -> field of the request."""
        return {join_path(path): source for path, source in self._leaves.items()}


def _enter(holder: Any, step: str | int, empty: Any) -> Any:
    if isinstance(step, str):
        return holder.setdefault(step, empty)
    if step == len(holder):
        holder.append(empty)
    return holder[step]


def _leaves(path: Path, value: Any) -> Iterator[Path]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves((*path, key), inner)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from _leaves((*path, index), inner)
    else:
        yield path
