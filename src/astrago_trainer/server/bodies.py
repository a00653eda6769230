"""From the bytes of a body to what they ask for, or to everything that is wrong with them.

Bodies are checked by the models of the core, not by the framework's: they tell all problems at once, in one spelling
for all doors, and never repeat a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from fastapi import Request
from pydantic_core import from_json

from astrago_trainer.core.errors import InvalidRequest, Problem, Unreadable
from astrago_trainer.core.spec import JobSpec, parse_job_spec
from astrago_trainer.core.spec.base import Model
from astrago_trainer.core.spec.parse import parse_model
from astrago_trainer.server.body_limits import check_structure
from astrago_trainer.server.problems import ApiError, forbidden
from astrago_trainer.service.identity import Identity

M = TypeVar("M", bound=Model)


MAX_SMALL_BYTES = 64 << 10
"""Of a body that describes no job: a sign-up, a token, a member."""


async def read_bytes(request: Request, *, may_be_empty: bool = False) -> bytes:
    """The body of a request with JSON, not decoded; one without a byte is an empty object where that is allowed."""
    data = await request.body()
    if not data and may_be_empty:
        return b"{}"
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        # A page of another site can send text or a form without asking; JSON it cannot.
        raise ApiError(
            415,
            "unsupported-media-type",
            f"bodies are JSON: Content-Type: application/json; found {kind[:60]!r}.",
        )
    return data


def decode(data: bytes) -> Any:
    """The body as data, its structure within the limits."""
    try:
        body = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        problem = Problem("", "bad-json", f"the body is no JSON: {error}.")
        raise Unreadable([problem]) from None
    check_structure(body)
    return body


async def read_model(request: Request, model: type[M], *, may_be_empty: bool = False) -> M:
    """A small body. It is read on the event loop, also for unauthenticated callers."""
    data = await read_bytes(request, may_be_empty=may_be_empty)
    if len(data) > MAX_SMALL_BYTES:
        message = f"this body may have at most {MAX_SMALL_BYTES:,} bytes; found {len(data):,}."
        raise Unreadable(
            [Problem("", "too-large", message, "Leave out fields that it does not have.")]
        )
    found, problems = parse_model(model, decode(data))
    if found is None:
        raise InvalidRequest(problems)
    return found


def read_job(data: bytes, caller: Identity, namespace: str) -> JobSpec:
    """`job_spec` of a body that is not decoded yet: all that takes long is done here, in a thread."""
    return job_spec(decode(data), caller, namespace)


def job_spec(body: Any, caller: Identity, namespace: str) -> JobSpec:
    """The request of a job for this namespace, by this caller."""
    if isinstance(body, Mapping):
        body = {"user": caller.name, "namespace": namespace, **body}
    spec = parse_job_spec(body)
    check_owner(spec.user, caller, namespace, "user")
    return spec


def check_owner(user: str, caller: Identity, namespace: str, field: str) -> None:
    """Raises unless the caller may submit jobs of this user in this namespace: one's own, or as a backend there."""
    if not caller.acts_for_others_in(namespace):
        check_user(user, caller, field)


def check_user(user: str, caller: Identity, field: str) -> None:
    """Nobody acts as somebody else; administrators of the installation may act for others."""
    if user != caller.name and not caller.is_administrator:
        raise forbidden(
            f"{field} must be {caller.name!r}, whose token this is; found {user[:60]!r}. Leave it out."
        )
