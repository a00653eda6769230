"""From untrusted data to a JobSpec, or to every problem in it at once.

pydantic's errors are retold here: where, what was expected, what was found, what to do. A value is
shown only where it cannot be a secret, and never in full when it is long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from astrago_trainer.core.errors import MAX_PROBLEMS, InvalidRequest, Problem, listed
from astrago_trainer.core.spec.base import Model
from astrago_trainer.core.spec.models import JobSpec
from astrago_trainer.core.spec.paths import join_path

M = TypeVar("M", bound=Model)

_QUIET = ("value", "training_code", "inline", "files", "url")
"""Fields whose content is never repeated: passwords, and scripts nobody wants in a message."""

_KNOWN: Mapping[str, tuple[str, str]] = {
    "missing": ("FieldValueRequired", "must be given"),
    "extra_forbidden": ("FieldValueForbidden", "there is no such field"),
    "string_type": ("FieldValueTypeInvalid", "must be text"),
    "int_type": ("FieldValueTypeInvalid", "must be a whole number"),
    "bool_type": ("FieldValueTypeInvalid", "must be true or false"),
    "dict_type": ("FieldValueTypeInvalid", "must be an object"),
    "model_type": ("FieldValueTypeInvalid", "must be an object"),
    "model_attributes_type": ("FieldValueTypeInvalid", "must be an object"),
    "tuple_type": ("FieldValueTypeInvalid", "must be a list"),
    "list_type": ("FieldValueTypeInvalid", "must be a list"),
    "literal_error": ("FieldValueNotSupported", "must be {expected}"),
    "greater_than_equal": ("FieldValueInvalid", "must be at least {ge}"),
    "less_than_equal": ("FieldValueInvalid", "must be at most {le}"),
}


def parse_job_spec(data: Mapping[str, Any]) -> JobSpec:
    """The JobSpec that `data` describes; raises InvalidRequest with all problems."""
    spec, problems = parse_model(JobSpec, data)
    if spec is None:
        raise InvalidRequest(problems)
    return spec


def parse_model(model: type[M], data: object) -> tuple[M | None, tuple[Problem, ...]]:
    """`data` as this model, or None and why not."""
    if not isinstance(data, Mapping):
        return None, (
            Problem("", "FieldValueTypeInvalid", f"must be an object; found {_found(data)}."),
        )
    try:
        return model.model_validate(data), ()
    except ValidationError as error:
        found = error.errors(include_url=False)
        return None, listed([_problem(each, model) for each in found[: MAX_PROBLEMS + 1]])


def _problem(details: ErrorDetails, model: type[Model]) -> Problem:
    where = [part for part in details["loc"] if part != "[key]"]
    path, context = join_path(where), details.get("ctx", {})
    if "message" in context:
        return Problem(path, details["type"], context["message"], context["remedy"])
    code, expected = _KNOWN.get(details["type"], ("FieldValueInvalid", details["msg"]))
    message = expected.format_map(context) if details["type"] in _KNOWN else expected
    value = details["input"]
    if details["type"] == "extra_forbidden":
        return Problem(path, code, f"{message}.", _did_you_mean(where, model))
    if details["type"] == "missing":
        return Problem(path, code, f"{message}.")
    is_quiet = any(part in _QUIET for part in where)
    found = _kind(value) if is_quiet else _found(value)
    remedy = (
        "Put it in quotes."
        if code == "FieldValueTypeInvalid" and _is_number_for_text(details)
        else ""
    )
    return Problem(path, code, f"{message}; found {found}.", remedy)


def _is_number_for_text(details: ErrorDetails) -> bool:
    return details["type"] == "string_type" and isinstance(details["input"], bool | int | float)


def _did_you_mean(where: Sequence[str | int], model: type[Model]) -> str:
    """The usual slip is another spelling."""
    names = _fields_at(model, where[:-1])
    if not names:
        return "Leave it out, or check its spelling."
    from difflib import get_close_matches

    wanted = _letters(str(where[-1]))
    near = [name for name in names if _letters(name) == wanted]
    near = near or get_close_matches(wanted, names, 1)
    return f"Did you mean {near[0]}?" if near else f"The fields are {', '.join(names)}."


def _fields_at(model: type[Model], where: Sequence[str | int]) -> list[str]:
    """Names of the fields that the object at this place may have; none where they are free."""
    found: type[Model] | None = model
    for part in where:
        if isinstance(part, str) and found is not None:
            info = found.model_fields.get(part)
            found = None if info is None else _model_in(info.annotation)
    return [] if found is None else sorted(found.model_fields)


def _model_in(annotation: Any) -> type[Model] | None:
    """The model of a field, also where it is optional or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _letters(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())[:100]


def _found(value: object) -> str:
    """A short, safe picture of what was sent."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a number with more than 30 digits"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return ascii(value) if len(value) <= 60 else f"a text of {len(value)} characters"
    return _kind(value)


def _kind(value: object) -> str:
    """What sort of thing it is, without its content."""
    if value is None or isinstance(value, bool | int | float):
        return (
            "nothing"
            if value is None
            else "a number"
            if not isinstance(value, bool)
            else "true or false"
        )
    if isinstance(value, str):
        return f"a text of {len(value)} characters"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, Sequence) else f"a value of type {type(value).__name__}"
