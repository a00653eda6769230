"""The base of everything a user can send: frozen, strict, and reporting all that is wrong at once.

pydantic stops before the rules between fields when one field is wrong. `Model` runs those that do
not need a wrong field all the same, so that a person corrects a form once and not five times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from astrago_trainer.core.errors import MAX_PROBLEMS

Broken = tuple[tuple[str | int, ...], str, str, str]
"""A broken rule between fields: where (relative to the model), code, message, remedy."""

Rules = tuple[tuple[frozenset[str], Callable[[Any], Iterable[Broken]]], ...]
"""Each rule with the fields it reads; it runs only when all of them are sound."""

ModelT = TypeVar("ModelT", bound="Model")

_KEPT_PROBLEMS = MAX_PROBLEMS + 1
"""Of each model: one more than is shown tells that there are more."""


class Model(BaseModel):
    """Frozen; unknown fields are refused; `RULES` hold between its fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    RULES: ClassVar[Rules] = ()

    @model_validator(mode="wrap")
    @classmethod
    def _report_everything(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        lines: list[InitErrorDetails] = []
        if isinstance(data, Mapping):
            bad = (_bad_key(key) for key in data if not _is_sound_key(key))
            lines = list(islice(bad, _KEPT_PROBLEMS))
            data = {key: value for key, value in data.items() if _is_sound_key(key)}
        try:
            model, broken = handler(data), set[int | str]()
        except ValidationError as error:
            if not isinstance(data, Mapping):
                raise
            found = error.errors(include_url=False)
            lines += map(_kept, found[:_KEPT_PROBLEMS])
            model, broken = _sound_part(
                cls, data, {each["loc"][0] for each in found if each["loc"]}
            )
        lines += islice(_rule_lines(cls, model, broken), _KEPT_PROBLEMS)
        if lines:
            raise ValidationError.from_exception_data(cls.__name__, lines[:_KEPT_PROBLEMS])
        return model


def _is_sound_key(key: object) -> bool:
    """pydantic gives up on a whole object for one key that is no Unicode text."""
    if not isinstance(key, str):
        return False
    return key.isascii() or key.encode("utf-8", "replace").decode() == key


def _bad_key(key: object) -> InitErrorDetails:
    message = f"a field's name must be Unicode text; found {ascii(key)[:60]}."
    error = PydanticCustomError(
        "FieldValueInvalid", "{message}", {"message": message, "remedy": ""}
    )
    return InitErrorDetails(type=error, loc=(), input=None)


def _sound_part(
    cls: type[ModelT], data: Mapping[str, Any], wrong: set[int | str]
) -> tuple[ModelT, set[int | str]]:
    """A model of the fields that are right alone, and the names of those that must not be read.

    `wrong` are known to be so: checking them again would double the work at each level of nesting.
    """
    values, broken = {}, set(wrong)
    for name, info in cls.model_fields.items():
        if name in wrong:
            continue
        try:
            if name in data:
                values[name] = _adapter(cls, name).validate_python(data[name])
            elif info.is_required():
                broken.add(name)
        except ValidationError:
            broken.add(name)
    partial: Any = cls.model_construct(**values)
    return partial, broken


@cache
def _adapter(cls: type[Model], name: str) -> TypeAdapter[Any]:
    info = cls.model_fields[name]
    annotation: Any = info.annotation
    for extra in info.metadata:
        annotation = Annotated[annotation, extra]
    return TypeAdapter(annotation)


def _rule_lines(
    cls: type[Model], model: Model, broken: set[int | str]
) -> Iterator[InitErrorDetails]:
    return (
        InitErrorDetails(
            type=PydanticCustomError(code, "{message}", {"message": message, "remedy": remedy}),
            loc=where,
            input=None,
        )
        for fields, rule in cls.RULES
        if not fields & broken
        for where, code, message, remedy in rule(model)
    )


def _kept(details: ErrorDetails) -> InitErrorDetails:
    """The same error, ready to be raised again."""
    context = details.get("ctx", {})
    if "message" in context:
        kind: Any = PydanticCustomError(details["type"], "{message}", context)
    else:
        kind = details["type"]
    return InitErrorDetails(type=kind, loc=details["loc"], input=details["input"], ctx=context)
