"""Answers of the server to values, and to errors that say what to do; without I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.client.errors import (
    ClientError,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from astrago_trainer.client.models import Event, Job, LogLine, Point, job_from_view
from astrago_trainer.client.sse import ServerEvent
from astrago_trainer.core.errors import Problem

_KINDS: Mapping[int, type[ClientError]] = {
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    429: Unavailable,
    503: Unavailable,
}
_MOST_SHOWN = 200


def value_of(status: int, body: bytes, where: str) -> Any:
    """The JSON of a good answer; raises a ClientError for any other."""
    if not 200 <= status < 300:
        raise error_of(status, body, where)
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        raise Unexpected(_no_server_of_ours(where, status, body)) from None


def error_of(status: int, body: bytes, where: str) -> ClientError:
    """What a refusal means for the caller; `where` names the server."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or "status" not in problem:
        if status in (502, 503, 504):  # a proxy before the server
            return Unavailable(f"{where} does not answer now ({status}). Try again later.")
        return Unexpected(_no_server_of_ours(where, status, body))
    error = _error(status, problem)
    error.request_id = str(problem.get("request_id", ""))
    return error


def _error(status: int, problem: Mapping[str, Any]) -> ClientError:
    detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
    if status in (400, 413, 415, 422):
        found = problem.get("errors")
        listed = [_problem(each) for each in found] if isinstance(found, list) else []
        return Refused(listed or [Problem("", str(problem.get("code", "")), detail)])
    kind = _KINDS.get(status)
    if kind is Unauthenticated:
        return Unauthenticated(f"{detail} Get a token and run: astrago login URL")
    if kind is not None:
        return kind(detail)
    return Unexpected(
        f"the server failed ({status}): {detail} Its log has more under request id "
        f"{problem.get('request_id', 'unknown')}."
    )


def _problem(each: Any) -> Problem:
    found = each if isinstance(each, dict) else {}
    return Problem(
        str(found.get("path", "")),
        str(found.get("code", "")),
        str(found.get("message", each)),
        str(found.get("remedy", "")),
        "warning" if found.get("severity") == "warning" else "error",
    )


def _no_server_of_ours(where: str, status: int, body: bytes) -> str:
    shown = body[:_MOST_SHOWN].decode("utf-8", "replace").strip()
    return (
        f"{where} answers as no Astrago server does ({status}: {shown!r}). Check its address, and that nothing "
        "stands before it."
    )


def line_of(found: Mapping[str, Any], container: str = "") -> LogLine:
    """A line as NDJSON and SSE have it."""
    dropped = found.get("dropped") or {}
    return LogLine(
        int(found["attempt"]),
        int(found["rank"]),
        str(found["pod"]),
        str(found.get("container", container)),
        int(found["offset"]),
        str(found["text"]),
        bool(found.get("ended", True)),
        found.get("time"),
        int(dropped.get("bytes", 0)),
        int(dropped.get("lines", 0)),
    )


def event_of(found: Mapping[str, Any]) -> Event:
    return Event(*(found[field] for field in Event._fields))


def metrics_of(found: Mapping[str, Any]) -> Mapping[str, Sequence[Point]]:
    return {name: [Point(*each) for each in points] for name, points in found["series"].items()}


def news_of(name: str, event: ServerEvent) -> Job | None:
    """The job, where the event tells of a change of it; raises NotFound where it tells of its end."""
    if event.name not in ("changed", "removed") or (view := json.loads(event.data))["name"] != name:
        return None
    if event.name == "removed":
        raise NotFound(f"the job {name!r} was deleted.")
    return job_from_view(view)


def not_over(name: str, seconds: float | None) -> str:
    return f"the job {name!r} has not ended after {seconds} s; it goes on."
