"""Says in words where our answer differs from the controller's.

Refusals are compared as multisets and objects by kind and name, because the controller runs its
plugins in random order. Two things are random in themselves: the key pair of the MPI Secret, of
which only the names are compared, and, with XGBoost, the order of the trainer's variables, since
two plugins add to them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from astrago_trainer.core.errors import Problem

Json = dict[str, Any]

_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
_CRASHES = ("panic", "error")
_ABSENT = "nothing"


class Answer(Protocol):
    """What our merge answers."""

    @property
    def objects(self) -> Sequence[Json]: ...
    @property
    def problems(self) -> Sequence[Problem]: ...


def differences(
    ours: Answer, theirs: Mapping[str, Any], *, any_env_order: bool = False
) -> list[str]:
    """One line per difference, none when the answers are equal; `any_env_order` is for XGBoost."""
    errors = [p for p in ours.problems if p.severity == "error"]
    if "errors" in theirs:
        return _error_differences(errors, theirs["errors"])
    if "undecodable" in theirs:
        if any(p.code == "FieldValueTypeInvalid" for p in errors):
            return []
        misfit = theirs["undecodable"]
        return [f"theirs does not fit the types ({misfit}), ours {_in_short(ours, errors)}"]
    crash = next((theirs[kind] for kind in _CRASHES if kind in theirs), None)
    if crash is not None:
        if any(p.code == "InternalError" and not p.path for p in errors):
            return []
        return [f"theirs crashed ({crash}), ours {_in_short(ours, errors)}"]
    if errors:
        return [f"theirs made objects, ours refused: {p.path} {p.code} {p.message}" for p in errors]
    return _object_differences(ours.objects, theirs["objects"], any_env_order=any_env_order)


def is_xgboost(pair: Json) -> bool:
    """Whether two plugins add variables in random order."""
    spec = pair["runtime"].get("spec")
    policy = spec.get("mlPolicy") if isinstance(spec, dict) else None
    return isinstance(policy, dict) and policy.get("xgboost") is not None


def _in_short(ours: Answer, errors: Sequence[Problem]) -> str:
    if errors:
        return f"refused: {errors[0].path} {errors[0].code} {errors[0].message}"
    return f"made {len(ours.objects)} objects"


def _error_differences(ours: Iterable[Problem], theirs: Iterable[Json]) -> list[str]:
    mine = Counter((p.path, p.code, p.message) for p in ours)
    real = Counter((e["field"], e["type"], e["detail"]) for e in theirs)
    return [f"refusal only in theirs: {e}" for e in (real - mine).elements()] + [
        f"refusal only in ours: {e}" for e in (mine - real).elements()
    ]


def _object_differences(
    ours: Sequence[Json], theirs: Sequence[Json], *, any_env_order: bool
) -> list[str]:
    mine, real = _by_name(ours, any_env_order), _by_name(theirs, any_env_order)
    found = []
    for key in dict.fromkeys([*real, *mine]):
        pairs = _aligned(mine.get(key, []), real.get(key, []))
        for left, right in pairs:
            found += _deep(left, right, "/".join(key))
    return found


def _by_name(objects: Sequence[Json], any_env_order: bool) -> dict[tuple[str, str], list[Json]]:
    grouped: dict[tuple[str, str], list[Json]] = {}
    for item in objects:
        name = item.get("metadata", {}).get("name", "")
        grouped.setdefault((item.get("kind", ""), name), []).append(_settled(item, any_env_order))
    return grouped


def _settled(item: Json, any_env_order: bool) -> Json:
    """The object without what is random in it; the given one is left as it is."""
    if item.get("kind") == "Secret":
        return item | {"data": dict.fromkeys(item.get("data", {}), "random")}
    if item.get("kind") != "JobSet" or not any_env_order:
        return item
    copy: Json = json.loads(json.dumps(item))
    for job in copy["spec"].get("replicatedJobs", []):
        template = job.get("template", {})
        if template.get("metadata", {}).get("labels", {}).get(_ANCESTOR) != "trainer":
            continue
        pod = template.get("spec", {}).get("template", {}).get("spec", {})
        for container in pod.get("containers") or []:
            if container.get("name") == "node" and "env" in container:
                container["env"].sort(key=lambda variable: json.dumps(variable, sort_keys=True))
    return copy


def _aligned(ours: Sequence[Any], theirs: Sequence[Any]) -> list[tuple[Any, Any]]:
    length = max(len(ours), len(theirs))
    padded = [[*side, *[_ABSENT] * (length - len(side))] for side in (ours, theirs)]
    return list(zip(*padded, strict=True))


def _deep(ours: Any, theirs: Any, path: str) -> list[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        found = []
        for key in dict.fromkeys([*theirs, *ours]):
            found += _deep(ours.get(key, _ABSENT), theirs.get(key, _ABSENT), f"{path}.{key}")
        return found
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [_line(ours, theirs, path)]
        found = []
        for index, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            found += _deep(left, right, f"{path}[{index}]")
        return found
    return [] if _same(ours, theirs) else [_line(ours, theirs, path)]


def _same(ours: Any, theirs: Any) -> bool:
    """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
    return isinstance(ours, bool) == isinstance(theirs, bool) and bool(ours == theirs)


def _line(ours: Any, theirs: Any, path: str) -> str:
    return f"{path}: theirs {_shown(theirs)}, ours {_shown(ours)}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]}…"
