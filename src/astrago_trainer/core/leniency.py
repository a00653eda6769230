"""A request body read as pydantic reads it by default: values of another type are converted, unknown fields ignored.

The models of this package are strict. A body for a lenient door goes through here first; what comes out is checked by
the same strict rules as everywhere, and each change is a warning, so that nothing is different without a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, get_args

from pydantic import ConfigDict, TypeAdapter, ValidationError

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.spec.base import Model

IGNORED = "field-ignored"
CONVERTED = "value-converted"
MOST_WARNINGS = 50
_MOST_NAME = 100
_MOST_DIGITS = 30
_LARGEST: int = 10**_MOST_DIGITS

_LAX: dict[object, TypeAdapter[Any]] = {int: TypeAdapter(int), bool: TypeAdapter(bool)}


class LenientModel(Model):
    """A model for a lenient door: its description allows other fields."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    TEXT_FROM_NUMBERS: ClassVar[frozenset[str]] = frozenset()
    """Fields of text that also take a number."""


def lenient(
    model: type[LenientModel], body: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Problem, ...]]:
    """The body with the types that the model expects, as far as they can be converted, and what was changed."""
    warnings: list[Problem] = []
    made = _read(model, body, "", warnings)
    rest = len(warnings) - MOST_WARNINGS
    if rest > 0:
        del warnings[MOST_WARNINGS:]
        warnings.append(_warning("", IGNORED, f"{rest} more fields were ignored or converted."))
    return made, tuple(warnings)


def _read(
    model: type[LenientModel], body: Mapping[str, Any], above: str, warnings: list[Problem]
) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in body.items():
        if name not in model.model_fields:
            where = above + str(name)[:_MOST_NAME].encode("utf-8", "replace").decode()
            warnings.append(_warning(where, IGNORED, "there is no such field; it was ignored."))
            continue
        kind = model.model_fields[name].annotation
        where = above + name
        if name in model.TEXT_FROM_NUMBERS and type(value) in (int, float) and _is_short(value):
            made[name] = str(value)
            warnings.append(_warning(where, CONVERTED, "text is expected; the number was taken."))
        else:
            made[name] = _value(kind, value, where, warnings)
    return made


def _value(kind: Any, value: Any, where: str, warnings: list[Problem]) -> Any:
    """What cannot be converted stays as it is: the strict rules say what is wrong with it."""
    if isinstance(kind, type) and issubclass(kind, LenientModel) and isinstance(value, Mapping):
        return _read(kind, value, f"{where}.", warnings)
    parts = get_args(kind)
    if parts and parts[-1] is Ellipsis and isinstance(value, list):
        return [
            _value(parts[0], each, f"{where}[{index}]", warnings)
            for index, each in enumerate(value)
        ]
    if kind not in _LAX or type(value) is kind or not _is_short(value):
        return value
    try:
        made = _LAX[kind].validate_python(value)
    except ValidationError:
        return value
    shown = str(made).lower() if kind is bool else made
    expected = "true or false" if kind is bool else "a whole number"
    warnings.append(
        _warning(where, CONVERTED, f"{expected} is expected; the value was read as {shown}.")
    )
    return made


def _is_short(value: Any) -> bool:
    """Python prints no number with more than 4,300 digits, and a job has none with more than 30."""
    if isinstance(value, int):
        return bool(abs(value) < _LARGEST)
    return not isinstance(value, str) or len(value) <= _MOST_DIGITS


def _warning(path: str, code: str, message: str) -> Problem:
    return Problem(path, code, message, severity="warning")
