"""Spoils a good pair in one place: what a user's file holds besides clean values.

Unknown and misspelt fields are dropped by the API machinery, nulls count as absent, a value of
another type is refused before the webhook is asked. Places are found by the field table, so that
the spoilt thing is the one that was meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.oracle.values import Die, Field, Json, fields_of

_TRAIN_JOB = "trainer.v1alpha1.TrainJob"
_RUNTIME = "trainer.v1alpha1.ClusterTrainingRuntime"
# The merge refuses `flux` by design; another `kind` or `apiVersion` asks another question.
_LEFT_ALONE = {"flux", "kind", "apiVersion"}

_WRONG: dict[str, tuple[object, ...]] = {  # mostly; some are only strange, and taken
    "string": (5, True, {}, [], 1.5),
    "bool": ("true", 1, 0, {}, ""),
    "int": ("5", 1.5, True, [], 2**70, 2**63, -(2**63)),
    "int32": ("5", 1.5, True, {}, 2**31, 2.0, -(2**31) - 1),
    "int64": ("5", 1.5, True, {}, 2**63, 2.0, 2**63 - 1, -(2**63), -(2**63) - 1),
    "intOrString": (True, 1.5, {}, [], 2**31, "words"),
    "quantity": ("abc", "", True, {}, "1 Gi", "1GiB", "0x10", "--1", "1e", "1ee3", [1], "1_000"),
    "time": (
        "yesterday", 5, "2026-01-02", True, "", "0001-01-01T00:00:00Z", "2026-02-30T00:00:00Z",
        "2026-01-02T03:04:60Z", "2026-01-02T03:04:05,5Z", "2026-01-02 03:04:05Z", "2026-01-02T24:00:00Z",
        "2026-01-02T3:04:05Z", "2026-01-02t03:04:05z", "2026-01-02T03:04:05", "2024-02-29T00:00:00+14:00",
    ),
    "list": ({}, "x", 5, {"a": 1}),
    "map": ([], "x", 5, [1], {"k": 5}, {"k": {}}, {"k": None}),
    "struct": ([], "x", 5, True),
}  # fmt: skip


def spoil(die: Die, pair: Json) -> Json:
    """The pair with one oddity in it; the given one is changed."""
    side, struct = die.pick((("runtime", _RUNTIME), ("trainJob", _TRAIN_JOB)))
    places = list(_structs(die.version, pair[side], struct))
    value, fields = die.pick(places)
    candidates = [f for f in fields if f.name not in _LEFT_ALONE]
    draw = die.random()
    if draw < 0.4 or not candidates:
        value[die.pick(("unknown", "Image", "x-note", "NumNodes", "creationTimeStamp"))] = die.pick(
            ("x", 5, None, {"deep": [1, {"er": True}]}, [])
        )
    elif draw < 0.65:
        value[die.pick(candidates).name] = None
    elif draw < 0.72:
        _null_inside(die, value)
    elif draw < 0.9:
        field = die.pick(candidates)
        value[field.name] = die.pick(_WRONG[field.kind])
    elif draw < 0.95:
        _misplace(die, pair)
    else:
        _direct(die, pair["trainJob"])
    return pair


def _structs(version: str, value: Json, struct: str) -> Iterator[tuple[Json, tuple[Field, ...]]]:
    """Every struct inside `value`, itself first, with its fields."""
    fields = fields_of(version, struct)
    yield value, fields
    for field in fields:
        inner = value.get(field.name)
        if field.kind == "struct" and isinstance(inner, dict):
            yield from _structs(version, inner, field.inner)
        elif field.kind == "list" and field.inner.startswith("struct:") and isinstance(inner, list):
            for item in inner:
                yield from _structs(version, item, field.inner.removeprefix("struct:"))


def _null_inside(die: Die, value: Json) -> None:
    """A null as an element of a list or as a value of a map."""
    lists = [v for v in value.values() if isinstance(v, list)]
    maps = [v for v in value.values() if isinstance(v, dict)]
    if lists and die.chance(0.5):
        die.pick(lists).append(None)
    elif maps:
        die.pick(maps)["nothing"] = None


def _misplace(die: Die, pair: Json) -> None:
    """The runtime or the TrainJob lacks something that all of them have."""
    side = die.pick(("runtime", "trainJob"))
    whole = pair[side]
    choices = [
        (whole, "metadata"),
        (whole, "spec"),
        (whole["metadata"], "name"),
        (whole["metadata"], "namespace"),
    ]
    if side == "trainJob":
        choices.append((whole["spec"], "runtimeRef"))
    else:
        jobs = whole["spec"].get("template", {}).get("spec", {}).get("replicatedJobs", [])
        for job in jobs:
            pod_template = job["template"]["spec"]["template"]
            choices += [
                (job, "name"),
                (job, "template"),
                (job["template"], "spec"),
                (job["template"]["spec"], "template"),
            ]
            choices += [(pod_template, "spec"), (pod_template["spec"], "containers")]
    owner, name = die.pick(choices)
    owner.pop(name, None)


def _direct(die: Die, train_job: Json) -> None:
    """A map that holds what a strategic merge patch takes for a directive."""
    places = list(_structs(die.version, train_job, _TRAIN_JOB))
    maps = [
        v[f.name]
        for v, fields in places
        for f in fields
        if f.kind == "map" and isinstance(v.get(f.name), dict)
    ]
    if maps:
        key = die.pick(
            (
                "$patch",
                "$patch",
                "$retainKeys",
                "$setElementOrder/env",
                "$deleteFromPrimitiveList/x",
            )
        )
        die.pick(maps)[key] = die.pick(("delete", "replace", "merge", "none"))
