"""Makes a failing pair small: takes away keys and list items while it still fails."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]

_MOST_TRIES = 3000  # a few seconds of merging; a pair has some hundred places


def minimise(pair: Json, still_fails: Callable[[Json], bool]) -> Json:
    """The smallest failing pair found on the way down; the given one is not changed."""
    smallest = copy.deepcopy(pair)
    tries = 0
    shrank = True
    while shrank and tries < _MOST_TRIES:
        shrank = False
        for path in list(_paths(smallest)):  # from the outside in: one cut may save a hundred
            if tries >= _MOST_TRIES or not _holds(smallest, path):
                continue
            candidate = copy.deepcopy(smallest)
            del _owner(candidate, path)[path[-1]]
            tries += 1
            if still_fails(candidate):
                smallest, shrank = candidate, True
    return smallest


def _paths(pair: Json) -> Iterator[Path]:
    """All places, level by level, a list from its end so that cuts do not move the others."""
    level: list[tuple[Path, Any]] = [((key,), pair[key]) for key in pair]
    while level:
        below: list[tuple[Path, Any]] = []
        for path, value in level:
            if len(path) > 1:  # a pair keeps both of its halves
                yield path
            if isinstance(value, dict):
                below += [((*path, key), inner) for key, inner in value.items()]
            elif isinstance(value, list):
                below += [((*path, i), value[i]) for i in reversed(range(len(value)))]
        level = below


def _owner(pair: Any, path: Path) -> Any:
    for step in path[:-1]:
        pair = pair[step]
    return pair


def _holds(pair: Json, path: Path) -> bool:
    try:
        _owner(pair, path)[path[-1]]
    except (KeyError, IndexError, TypeError):
        return False
    return True
