"""What the API types look like, and what becomes of a value that passes through them.

The controller reads JSON into typed objects and writes those again: unknown fields vanish, empty and zero values vanish
where the type says so, structs that are no pointers appear even if nobody set them, quantities are rewritten. All of it
shows in the result, so the merge works on values in that *settled* form. The field tables are facts read off the
controller's own types (`make schema`); this module turns them into functions, each built when it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.schema_data import STRUCTS, VERSIONS
from astrago_trainer.core.quantity import Quantity, QuantityError

Json = dict[str, Any]

OMIT: Any = object()
"""What settling answers for a value that would not be written again."""

_INT_RANGE = {"int32": 2**31, "int64": 2**63, "int": 2**63}
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT)(\d\d?)(:\d\d:\d\d)(?:[.,]\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


_PLAIN = {"string": str, "bool": bool}
_ZERO_TIME = "0001-01-01T00:00:00Z"
_KEPT_AS_WRITTEN = {("jobset.v1alpha2.VolumeClaimPolicy", "templates")}
"""Fields that the controller passes on without rewriting, so that the nulls of the API types survive."""


class Field(NamedTuple):
    """One field of an API type."""

    kind: str
    """`string`, `int32`, `quantity`, `struct:<name>`, `list:<kind>`, `map:<kind>`, …"""
    pointer: bool
    """A pointer keeps its zero value when written again."""
    omit: str
    """`e` empty values are left out, `z` zero structs too, `` always written."""
    merges: bool
    """Whether a strategic merge patch merges this list instead of replacing it."""
    key: str
    """The key by which elements of such a list are told apart; empty for lists of scalars."""


class Mismatch(ValueError):  # noqa: N818 - an answer about the input, not a fault of ours
    """A value does not fit its type; `check` finds out where and says it in full."""


@cache
def struct(name: str, version: str) -> dict[str, Field]:
    """The fields of a type in the Trainer version, in the order the API declares them."""
    own = VERSIONS[version]
    raw = own[name] if name in own else STRUCTS[name]
    return {field: _parse_field(text) for field, text in raw.items()}


def _parse_field(text: str) -> Field:
    kind, *flags = text.split(" ")
    merge = next((flag for flag in flags if flag.startswith("merge")), "")
    omit = "z" if "z" in flags else "e" if "e" in flags else ""
    return Field(kind, "p" in flags, omit, bool(merge), merge.partition(":")[2])


@cache
def settler(kind: str, version: str, *, as_patch: bool = False) -> Callable[[Any], Any]:
    """A function that copies a value of `kind` into its settled form; raises Mismatch.

    `as_patch` settles the way the type is written out as JSON: a field that the type always writes stays, empty as `[]`
    or missing as null, because a strategic merge patch acts on both.
    """
    outer, _, inner = kind.partition(":")
    if outer == "struct":
        return _struct_settler(inner, version, as_patch)
    if outer == "list":
        return _list_settler(kind, settler(inner, version, as_patch=as_patch))
    if outer == "map":
        return _map_settler(kind, settler(inner, version, as_patch=as_patch))
    return _SCALARS[outer]


def _list_settler(kind: str, item: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    fill = _filling(kind.partition(":")[2])

    def settle_list(value: Any) -> list[Any]:
        if type(value) is not list:
            raise Mismatch(kind)
        return [item(fill) if v is None else item(v) for v in value]

    return settle_list


def _filling(kind: str) -> Any:
    """What a null in a list or mapping stands for: the zero value of its type."""
    if kind.startswith("struct:"):
        return {}
    if kind in _INT_RANGE:
        return 0
    return "0" if kind == "quantity" else ""


def _map_settler(kind: str, item: Callable[[Any], Any]) -> Callable[[Any], Json]:
    fill = _filling(kind.partition(":")[2])

    def settle_map(value: Any) -> Json:
        if type(value) is not dict:
            raise Mismatch(kind)
        return {k: item(fill) if v is None else item(v) for k, v in value.items()}

    return settle_map


class _Fields(NamedTuple):
    """How the fields of a type settle."""

    settlers: dict[str, Callable[[Any], Any]]
    plain: dict[str, type]
    """Fields that settle to themselves, so that no call is needed."""
    kept: set[str]
    """Those of them that are written even when empty."""
    vanishing: set[str]
    """Lists and mappings that are not written when empty."""
    always: list[tuple[str, Callable[[], Any]]]


def _fields_of(name: str, version: str, as_patch: bool) -> _Fields:
    made = _Fields({}, {}, set(), set(), [])
    for field_name, field in struct(name, version).items():
        written = as_patch or (name, field_name) in _KEPT_AS_WRITTEN
        settle = settler(field.kind, version, as_patch=written)
        if field.kind.startswith(("list:", "map:")):
            made.settlers[field_name] = settle
            if not as_patch or field.omit:
                made.vanishing.add(field_name)
            if as_patch and not field.omit:
                made.always.append((field_name, _null))
            continue
        made.settlers[field_name] = _field_settler(field, settle, as_patch)
        if field.kind in _PLAIN:
            made.plain[field_name] = _PLAIN[field.kind]
            if field.pointer or not field.omit:
                made.kept.add(field_name)
        if (zero := _zero_value(field, settle, as_patch)) is not None:
            made.always.append((field_name, zero))
    return made


def _struct_settler(name: str, version: str, as_patch: bool) -> Callable[[Any], Json]:
    fields: _Fields | None = None

    def settle_struct(value: Any) -> Json:
        nonlocal fields
        if type(value) is not dict:
            raise Mismatch(name)
        if fields is None:
            # Made on first use, because types contain themselves; and assigned when complete, because another thread
            # that saw a part of them would drop the other fields of its value.
            fields = _fields_of(name, version, as_patch)
        settlers, plain, kept, vanishing, always = fields
        out = {}
        for key, item in value.items():
            if plain.get(key) is type(item):
                if item or key in kept:
                    out[key] = item
            elif item is not None and key in settlers:
                settled = settlers[key](item)
                if settled is not OMIT and (settled or key not in vanishing):
                    out[key] = settled
        for key, zero in always:
            if key not in out:
                out[key] = zero()
        return out

    return settle_struct


@cache
def field_settler(field: Field, version: str) -> Callable[[Any], Any]:
    """Settles a value of one field; answers OMIT for what the field leaves out."""
    settle = settler(field.kind, version)
    if field.kind.startswith(("list:", "map:")):
        return lambda value: settle(value) or OMIT
    return _field_settler(field, settle, False)


def _field_settler(
    field: Field, settle: Callable[[Any], Any], as_patch: bool
) -> Callable[[Any], Any]:
    if field.kind == "time":  # the zero time is written as null
        nothing = None if as_patch else OMIT
        return lambda value: nothing if (settled := settle(value)) == _ZERO_TIME else settled
    if field.pointer or field.kind.startswith("struct:") or not field.omit:
        return settle if field.omit != "z" else lambda value: settle(value) or OMIT
    return lambda value: settled if (settled := settle(value)) else OMIT


def _zero_value(
    field: Field, settle: Callable[[Any], Any], as_patch: bool
) -> Callable[[], Any] | None:
    """How the type writes a field that nobody set, or None when it does not."""
    if field.pointer:
        return _null if as_patch and not field.omit else None
    if field.omit == "z":
        return None
    if field.kind.startswith("struct:"):
        return dict if settle({}) == {} else lambda: settle({})
    if field.kind == "quantity":  # a struct to Go, and structs are never empty
        return lambda: "0"
    if field.kind == "time":  # likewise, and a zero time is written as null
        return _null if as_patch else None
    if field.omit or field.kind == "any":
        return None
    return {"string": str, "bool": bool}.get(field.kind, int)


def _null() -> None:
    return None


def _settle_string(value: Any) -> str:
    if type(value) is not str:
        raise Mismatch("string")
    return value


def _settle_bool(value: Any) -> bool:
    if type(value) is not bool:
        raise Mismatch("bool")
    return value


def _settle_int(kind: str) -> Callable[[Any], int]:
    bound = _INT_RANGE[kind]

    def settle(value: Any) -> int:
        if type(value) is not int or not -bound <= value < bound:
            raise Mismatch(kind)
        return value

    return settle


def _settle_int_or_string(value: Any) -> int | str:
    if type(value) is str:
        return value
    return _settle_int32(value)


class Reworded(str):
    """A quantity whose printed text no longer tells its notation: `1.5Ki` is printed as `1536`, and `84562.5Ki` as
    `86592000`, which is printed as `86592k` once it has been read again.

    The text is that of a second printing, because templates are printed twice. Where the controller sums what it read,
    or prints once, `read` has what it was.
    """

    __slots__ = ("read",)
    read: Quantity


def printed_once(text: str) -> str:
    """The text of a quantity that the controller passes on from the TrainJob without reading it again."""
    return str(text.read) if isinstance(text, Reworded) else text


def _settle_quantity(value: Any) -> str:
    if not isinstance(value, str):
        if type(value) not in (int, float):
            raise Mismatch("quantity")
        value = repr(value)
    try:
        return _settled_quantity(value.strip())
    except QuantityError as error:
        raise Mismatch("quantity") from error


@lru_cache(maxsize=4096)
def _settled_quantity(text: str) -> str:
    quantity = Quantity.parse(text)
    printed = str(quantity)
    again = Quantity.parse(printed)
    if again.format == quantity.format:
        return printed
    reworded = Reworded(again)
    reworded.read = quantity
    return reworded


def _settle_time(value: Any) -> str:
    parts = _TIME.fullmatch(value) if type(value) is str else None
    if parts is None:
        raise Mismatch("time")
    day, hour, rest, zone = parts.groups()
    try:
        moment = datetime.fromisoformat(f"{day}{hour:0>2}{rest}{zone}").astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise Mismatch("time") from error
    return f"{moment.year:04}-{moment:%m-%dT%H:%M:%SZ}"


_settle_int32 = _settle_int("int32")
_SCALARS: dict[str, Callable[[Any], Any]] = {
    "string": _settle_string,
    "bool": _settle_bool,
    "int32": _settle_int32,
    "int64": _settle_int("int64"),
    "int": _settle_int("int"),
    "intOrString": _settle_int_or_string,
    "quantity": _settle_quantity,
    "time": _settle_time,
    "duration": _settle_string,
    "bytes": _settle_string,
    "any": lambda value: value,
}

_EXPECTED = {
    "string": "a string",
    "bool": "true or false",
    "int32": "a whole number that fits 32 bits",
    "int64": "a whole number that fits 64 bits",
    "int": "a whole number that fits 64 bits",
    "intOrString": "a whole number or a string",
    "quantity": "a quantity such as 500m, 2 or 16Gi",
    "time": "a time such as 2026-01-31T12:00:00Z",
    "list": "a list",
    "map": "a mapping",
    "struct": "a mapping",
}


_FITTING = {
    "quantity": "Write a number and one suffix: m, k, M, G, Ki, Mi, Gi.",
    "string": "Put it into quotes.",
    "int32": "Write a number without quotes, from -2147483648 to 2147483647.",
    "list": "Begin each entry with a dash.",
}


_MAPPINGS = (dict, Mapping)
"""The usual case first: asking an abstract class takes ten times as long."""


def check(value: Any, kind: str, version: str, path: str = "") -> tuple[list[Problem], list[str]]:
    """Every place where `value` does not fit its type, and the paths of every field the type does not have."""
    problems: list[Problem] = []
    unknown: list[str] = []
    _check(value, kind, version, path, problems, unknown)
    return problems, unknown


def _check(
    value: Any, kind: str, version: str, path: str, problems: list[Problem], unknown: list[str]
) -> None:
    outer, _, inner = kind.partition(":")
    if outer in ("struct", "map") and isinstance(value, _MAPPINGS):
        fields = struct(inner, version) if outer == "struct" else None
        for key, item in value.items():
            below = f"{path}.{key}" if path else str(key)
            if fields is None:
                _check(item, inner, version, f"{path}[{key}]", problems, unknown)
            elif key not in fields:
                unknown.append(below)
            elif item is not None:
                _check(item, fields[key].kind, version, below, problems, unknown)
    elif outer == "list" and isinstance(value, list):
        for index, item in enumerate(value):
            _check(item, inner, version, f"{path}[{index}]", problems, unknown)
    elif outer in ("struct", "map", "list"):
        problems.append(_type_problem(outer, value, path))
    elif value is not None:
        try:
            _SCALARS[outer](value)
        except Mismatch:
            problems.append(_type_problem(outer, value, path))


def fitting(value: Any, kind: str, version: str) -> Any:
    """A copy with only what the type has and what fits it, so that rules can be checked on the rest."""
    outer, _, inner = kind.partition(":")
    if outer == "struct" and isinstance(value, _MAPPINGS):
        fields = struct(inner, version)
        kept = {
            key: fitting(item, fields[key].kind, version)
            for key, item in value.items()
            if key in fields
        }
        return {key: item for key, item in kept.items() if item is not None}
    if outer == "map" and isinstance(value, _MAPPINGS):
        return {
            key: item for key, item in value.items() if fitting(item, inner, version) is not None
        }
    if outer == "list" and isinstance(value, list):
        fill = _filling(inner)
        return [fill if (kept := fitting(item, inner, version)) is None else kept for item in value]
    if outer in ("struct", "map", "list") or value is None:
        return None
    try:
        _SCALARS[outer](value)
    except Mismatch:
        return None
    return value


def _type_problem(kind: str, value: Any, path: str) -> Problem:
    found = repr(value)
    shown = found if len(found) <= 60 else f"{found[:57]}…"
    text = f"{_EXPECTED.get(kind, kind)} is expected, found {shown}."
    return Problem(path, "FieldValueTypeInvalid", text, _FITTING.get(kind, ""))
