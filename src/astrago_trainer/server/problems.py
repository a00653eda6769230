"""What went wrong, as an answer: RFC 9457, everything at once, and never a traceback.

The first API (`/api/trainjob`) has the same fields as plain JSON; there, `detail` of a body that breaks rules is a
list, as the framework of its time had it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from astrago_trainer.core.errors import AstragoError, InvalidRequest, Problem, Unreadable, listed
from astrago_trainer.engines.base import EngineError
from astrago_trainer.service.errors import Conflict, NotFound, TooMany, Unsupported
from astrago_trainer.store import DataGone, DiskFull, StoreError

FIRST_API = "/api/trainjob/"
RETRY_SECONDS = 5
LIMIT_SECONDS = 60
"""Until a job of a namespace that has too many may have ended."""
_MOST_DETAIL = 4000


class ApiError(AstragoError):
    """Something that only HTTP knows: a header, a size, a rate."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers or {}
        self.extra = extra


def unauthenticated(detail: str) -> ApiError:
    return ApiError(401, "unauthenticated", detail, headers={"www-authenticate": "Bearer"})


def forbidden(detail: str) -> ApiError:
    return ApiError(403, "forbidden", detail)


@dataclass(frozen=True, slots=True)
class Answer:
    """A problem, ready to be sent."""

    status: int
    body: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


def answer_of(error: Exception, *, path: str, request_id: str) -> Answer:
    """How an error looks from outside; what is no error of ours says nothing of itself."""
    shape = _shape(error)
    is_first_api = path.startswith(FIRST_API)
    body: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(shape.status).phrase,
        "status": shape.status,
        "code": shape.code,
        "detail": shape.detail[:_MOST_DETAIL],
        "request_id": request_id,
        **shape.extra,
    }
    if shape.problems:
        body["errors"] = [_error(each) for each in shape.problems]
        if is_first_api:
            body["detail"] = [_framework_error(each) for each in shape.problems]
    media_type = "application/json" if is_first_api else "application/problem+json"
    return Answer(shape.status, encoded(body), media_type, shape.headers)


def encoded(value: object) -> bytes:
    """JSON; a lone surrogate that came with somebody's words becomes a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Shape:
    status: int
    code: str
    detail: str
    problems: tuple[Problem, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def _shape(error: Exception) -> _Shape:
    match error:
        case ApiError():
            return _Shape(
                error.status, error.code, str(error), headers=error.headers, extra=error.extra
            )
        case Unreadable():
            is_large = any(each.code == "too-large" for each in error.problems)
            status, code = (413, "too-large") if is_large else (400, "bad-request")
            problems = listed(error.problems)
            return _Shape(status, code, _together(problems), problems)
        case InvalidRequest():
            problems = listed(error.problems)
            return _Shape(422, "invalid-request", _together(problems), problems)
        case NotFound():
            return _Shape(404, "not-found", str(error))
        case TooMany():
            retry = {"retry-after": str(LIMIT_SECONDS)}
            return _Shape(429, "too-many", str(error), headers=retry)
        case Conflict():
            return _Shape(409, "conflict", str(error))
        case Unsupported():
            return _Shape(422, "unsupported", str(error), extra={"ability": error.ability})
        case StoreError() | EngineError():
            retry = {"retry-after": str(RETRY_SECONDS)}
            return _Shape(503, "unavailable", _without_places(error), headers=retry)
        case _:
            return _Shape(
                500,
                "internal",
                "this is a mistake of the server; its log has more under the request id.",
            )


def _without_places(error: AstragoError) -> str:
    """A caller is not told where the database lies."""
    if isinstance(error, DataGone):
        return (
            "the server's database file was removed or replaced while it ran; nothing was changed. An administrator "
            "brings it back and starts the server again."
        )
    if isinstance(error, DiskFull):
        return "the server's disk is full; nothing was changed. Deletion works: delete jobs, or free some space."
    what = "database" if isinstance(error, StoreError) else "engine"
    return f"the {what} is not available now; nothing was changed. Try again in {RETRY_SECONDS} s."


def _together(problems: Iterable[Problem]) -> str:
    return "\n".join(str(each) for each in problems)


def _error(problem: Problem) -> dict[str, str]:
    return {
        "path": problem.path,
        "code": problem.code,
        "message": problem.message,
        "remedy": problem.remedy,
    }


def _framework_error(problem: Problem) -> dict[str, Any]:
    steps: list[str | int] = ["body"]
    for part in problem.path.replace("[", ".").replace("]", "").split("."):
        if part:
            steps.append(int(part) if part.isdecimal() else part)
    message = f"{problem.message} {problem.remedy}".strip()
    return {"type": problem.code, "loc": steps, "msg": message}
