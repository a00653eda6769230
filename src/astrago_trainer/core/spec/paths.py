"""Field paths in the one notation used for problems and sources: `env[0].name`, `labels.tier`.

The preview joins these with the paths of the merge, which writes them the same way: a key as it is
after a dot, also one with dots of its own (`limits.nvidia.com/gpu`), and an index in brackets.
"""

from __future__ import annotations

from collections.abc import Iterable


def join_path(parts: Iterable[str | int]) -> str:
    """The path of a place, given the keys and indices that lead to it."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path
