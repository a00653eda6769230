"""The two request bodies of the first API (M21 nested, M52 flat), read into a JobSpec.

A body is read leniently (see `leniency`), moved field by field into the JobSpec's shape and checked
there, so that one set of rules serves all doors; problems come back under the names the body uses.
The models describe the bodies for OpenAPI and say which fields each form requires.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, WithJsonSchema

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.leniency import LenientModel, lenient
from astrago_trainer.core.quantity import Quantity, QuantityError
from astrago_trainer.core.spec.models import JobSpec
from astrago_trainer.core.spec.parse import parse_job_spec, parse_model
from astrago_trainer.core.spec.text import Count, QuantityText, Text

_NUMBER = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
_Number = Annotated[Count, WithJsonSchema(_NUMBER)]
_Flag = Annotated[
    bool,
    Field(strict=True),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string"}, {"type": "integer"}]}),
]
_TextOrNumber = Annotated[Text, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]})]


class SeedConfig(LenientModel):
    """Size of the job, first form. CPU and memory are limits; of them 2 CPU and 8Gi at most are reserved."""

    num_nodes: _Number = Field(description="Number of nodes.", examples=[2])
    gpu_per_node: _Number = Field(description="GPUs per node.", examples=[1])
    cpu_per_node: QuantityText = Field(description="CPU cores per node.", examples=[4])
    memory_per_node: QuantityText = Field(description="Memory per node.", examples=["16Gi"])


class _SeedBody(LenientModel):
    user_id: Text = Field(description="Who asks.", examples=["user123"])
    namespace: Text = Field(description="The user's namespace.", examples=["user-123"])
    framework: Literal["pytorch", "tensorflow"] = Field(description="pytorch or tensorflow.")
    training_code: Text = Field(description="Python source, stored as train.py.")


class NestedBody(_SeedBody):
    """`POST /api/trainjob/create`, first form (M21)."""

    config: SeedConfig = Field(description="Size of the job.")


class SeedEnvVar(LenientModel):
    """A variable of the flat form."""

    TEXT_FROM_NUMBERS: ClassVar[frozenset[str]] = frozenset({"value"})

    name: Text = Field(description="Name of the variable.", examples=["EPOCHS"])
    value: _TextOrNumber = Field(description="Its value.", examples=["10"])


class SeedVolume(LenientModel):
    """A claim and where it is mounted (M53)."""

    name: Text = Field(description="Name of the volume.", examples=["dataset"])
    pvc: Text = Field(description="Name of the claim.", examples=["user123-dataset-pvc"])
    mountPath: Text = Field(description="Where it is seen.", examples=["/data"])  # noqa: N815
    readOnly: _Flag = Field(False, description="Nothing is written.")  # noqa: N815


class FlatBody(_SeedBody):
    """`POST /api/trainjob/create`, second form (M52)."""

    image: Text = Field(description="Container image.")
    num_nodes: _Number = Field(description="Number of nodes.", examples=[2])
    cpu_request: QuantityText = Field(description="CPU reserved per node.", examples=["2"])
    cpu_limit: QuantityText = Field(description="CPU limit per node.", examples=["4"])
    memory_request: QuantityText = Field(description="Memory reserved.", examples=["8Gi"])
    memory_limit: QuantityText = Field(description="Memory limit per node.", examples=["16Gi"])
    gpu_count: _Number = Field(description="GPUs per node.", examples=[1])
    command: Text = Field(description="Shell text, run as it is after the set-up.")
    env_vars: tuple[SeedEnvVar, ...] = Field((), description="Environment variables.")
    volumes: tuple[SeedVolume, ...] = Field((), description="Claims to mount.")


_COMMON = {
    "user_id": ("user",),
    "namespace": ("namespace",),
    "framework": ("framework",),
    "training_code": ("code", "inline"),
}
_NESTED = {
    "config.num_nodes": ("nodes",),
    "config.gpu_per_node": ("resources", "gpus"),
    "config.cpu_per_node": ("resources", "cpu", "limit"),
    "config.memory_per_node": ("resources", "memory", "limit"),
}
_TEMPLATE_REQUESTS = {"cpu": "2", "memory": "8Gi"}
"""Of the nested form: what the template of the TrainJob requests (M18). GPU requests equal limits (X8)."""
_FLAT = {
    "image": ("image",),
    "num_nodes": ("nodes",),
    "cpu_request": ("resources", "cpu", "request"),
    "cpu_limit": ("resources", "cpu", "limit"),
    "memory_request": ("resources", "memory", "request"),
    "memory_limit": ("resources", "memory", "limit"),
    "gpu_count": ("resources", "gpus"),
    "command": ("command",),
    "env_vars": ("env",),
    "volumes": ("volumes",),
}
_VOLUME = {"name": "name", "pvc": "claim", "mountPath": "mount_path", "readOnly": "read_only"}
_VOLUME_BACK = {new: old for old, new in _VOLUME.items()}


def seed_body_to_job_spec(body: Mapping[str, Any]) -> JobSpec:
    """The JobSpec a body of either form means; raises InvalidRequest with the body's own paths."""
    return read_seed_body(body)[0]


def read_seed_body(body: Mapping[str, Any]) -> tuple[JobSpec, tuple[Problem, ...]]:
    """The same with a warning for every field that was ignored or converted.

    A body with `config` is of the first form, every other of the second (X3).
    """
    is_nested = isinstance(body, Mapping) and "config" in body
    model: type[LenientModel] = NestedBody if is_nested else FlatBody
    if not isinstance(body, Mapping):
        raise InvalidRequest(parse_model(model, body)[1])
    body, warnings = lenient(model, body)
    _, problems = parse_model(model, body)
    moves = _COMMON | (_NESTED if is_nested else _FLAT)
    data = _moved(body, moves)
    if is_nested:
        _add_requests(data)
    try:
        spec = parse_job_spec(data)
    except InvalidRequest as error:
        raise InvalidRequest(_united(problems, error.problems, moves)) from None
    if problems:
        raise InvalidRequest(problems)
    return spec, warnings


def _add_requests(data: dict[str, Any]) -> None:
    """The template's, where the limit is larger; else what is asked for is reserved."""
    for name, request in _TEMPLATE_REQUESTS.items():
        amount = data.get("resources", {}).get(name, {})
        try:
            limit = Quantity.parse(str(amount.get("limit", "")))
        except (QuantityError, ValueError):  # a number with thousands of digits is the latter
            continue  # the rules say what is wrong with it
        if limit > Quantity.parse(request):
            amount["request"] = request


def _moved(body: Mapping[str, Any], moves: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
    """The body's values in the JobSpec's places; what is missing or of another shape stays out."""
    data: dict[str, Any] = {}
    for source, target in moves.items():
        holder: Any = body
        *parents, last = source.split(".")
        for parent in parents:
            holder = holder.get(parent) if isinstance(holder, Mapping) else None
        if not isinstance(holder, Mapping) or last not in holder:
            continue
        place = data
        for step in target[:-1]:
            place = place.setdefault(step, {})
        place[target[-1]] = holder[last]
    if isinstance(data.get("volumes"), list | tuple):
        data["volumes"] = [_moved_volume(volume) for volume in data["volumes"]]
    return data


def _moved_volume(volume: Any) -> Any:
    if not isinstance(volume, Mapping):
        return volume
    return {_VOLUME[key]: value for key, value in volume.items() if key in _VOLUME}


def _united(
    of_body: tuple[Problem, ...],
    of_spec: tuple[Problem, ...],
    moves: Mapping[str, tuple[str, ...]],
) -> tuple[Problem, ...]:
    """All problems under the body's names; what the body's model complained of is not told twice.

    A field the body does not have can only be wrong because of one that it has.
    """
    told = tuple(problem.path for problem in of_body)
    renamed = [replace(each, path=_body_path(each.path, moves)) for each in of_spec]
    return of_body + tuple(
        each for each in renamed if not told or (each.path and not _is_told(each.path, told))
    )


def _is_told(path: str, told: tuple[str, ...]) -> bool:
    return any(_is_below(path, each) for each in told)


def _body_path(path: str, moves: Mapping[str, tuple[str, ...]]) -> str:
    """The body's name for a place in the JobSpec; empty where the body has none."""
    for source, target in moves.items():
        prefix = ".".join(target)
        if _is_below(path, prefix):
            path = source + path[len(prefix) :]
            if source == "volumes":
                head, dot, tail = path.partition(".")
                path = head + dot + _VOLUME_BACK.get(tail, tail)
            return path
    return ""


def _is_below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith((f"{prefix}.", f"{prefix}["))
