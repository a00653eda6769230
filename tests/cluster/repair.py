"""Makes a generated object acceptable: what the API server refuses is taken out of it, until it refuses nothing.

The generator of the pairs knows the operator's Go types, not the rules of the CRDs, and most of its pairs are refused.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.cluster.api import Json, Space

ATTEMPTS = 60
_STEP = re.compile(r'\[(\d+)\]|\["?([^"\]]+)"?\]|\.?([^.\[\]]+)')


def repaired(space: Space, manifest: Json) -> Json | None:
    """The object without what was refused; None where no such part can be named."""
    manifest = copy.deepcopy(manifest)
    for _ in range(ATTEMPTS):
        answer = space.try_create(manifest, dryRun="All")
        if answer.code == 201:
            return manifest
        removed = [_remove(manifest, field) for field in _refused_fields(answer.body)]
        if not any(removed):
            return None
    return None


def _refused_fields(answer: Json) -> list[str]:
    unknown = re.findall(r'unknown field "([^"]+)"', answer["message"])
    named = [cause.get("field", "") for cause in answer.get("details", {}).get("causes", [])]
    denied = re.findall(r"(spec\.[\w.\[\]]+): (?:Invalid|Forbidden|Required)", answer["message"])
    return sorted({*unknown, *named, *denied} - {"", "<nil>"}, reverse=True)


def _remove(manifest: Json, field: str) -> bool:
    """Takes out the field, or the nearest thing around it that is there."""
    steps: list[Any] = [
        int(index) if index else key or name for index, key, name in _STEP.findall(field)
    ]
    parents: list[tuple[Any, Any]] = []
    node: Any = manifest
    for step in steps:
        parents.append((node, step))
        try:
            node = node[step]
        except (KeyError, IndexError, TypeError):
            parents.pop()  # what is missing is required: what it is missing from has to go
            break
    while parents and parents[-1][1] in ("spec", "metadata", "template", "replicatedJobs"):
        parents.pop()
    if not parents:
        return False
    holder, step = parents[-1]
    del holder[step]
    return True
