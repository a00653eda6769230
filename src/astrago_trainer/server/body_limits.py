"""Limits on the structure of a request body, checked before any model reads it.

The time that a body takes follows from the number of its values, not from its bytes: 2 MiB hold 700,000 values, or one
script.
"""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.core.spec.paths import join_path

MAX_MEMBERS = 5_000
"""Of one list or object. A pod with more variables or volumes does not fit into the cluster's database."""
MAX_VALUES = 50_000
"""Of the whole body, lists and objects included."""
MAX_DEPTH = 32
"""Levels of lists and objects in each other; a job has 5."""

_MAX_NAME = 60
_MOVE_DATA = "Put data into code, a ConfigMap or a volume."

_Entry = tuple[Any, "_Entry | None", str | int, int]
"""A list or object, the entry that holds it, its key or index there, its level."""


def check_structure(body: Any) -> None:
    """Raises Unreadable for a body with too many values or levels. It does not recurse, and stops at the first."""
    if not isinstance(body, dict | list):
        return
    open_entries: list[_Entry] = [(body, None, "", 1)]
    values = 1
    while open_entries:
        entry = open_entries.pop()
        holder, _, _, level = entry
        values += len(holder)
        if len(holder) > MAX_MEMBERS:
            raise _refusal(
                _place(entry), f"must have at most {MAX_MEMBERS:,} entries; found {len(holder):,}."
            )
        if values > MAX_VALUES:
            raise _refusal("", f"a body may have at most {MAX_VALUES:,} values in all; found more.")
        if level > MAX_DEPTH:
            raise _refusal(
                _place(entry),
                f"must have at most {MAX_DEPTH} levels of lists and objects; found more.",
            )
        members = holder.items() if isinstance(holder, dict) else enumerate(holder)
        open_entries += [
            (each, entry, key, level + 1) for key, each in members if isinstance(each, dict | list)
        ]


def _refusal(path: str, message: str) -> Unreadable:
    return Unreadable([Problem(path, "too-large", message, _MOVE_DATA)])


def _place(entry: _Entry | None) -> str:
    steps: list[str | int] = []
    while entry is not None and entry[1] is not None:
        step = entry[2]
        steps.append(step[:_MAX_NAME] if isinstance(step, str) else step)
        entry = entry[1]
    return join_path(steps[::-1])
