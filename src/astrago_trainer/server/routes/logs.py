"""Logs of a job: text, NDJSON or events; see `log_answers`."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.server import log_answers, rules
from astrago_trainer.server.context import Caller, Shared
from astrago_trainer.server.log_answers import MEDIA_TYPES, Format, Pattern, Wanted
from astrago_trainer.server.log_places import (
    TRAINING_CONTAINER,
    Cursor,
    LogPlace,
    read_cursors,
    read_ranks,
)
from astrago_trainer.server.sse import streamed
from astrago_trainer.service.errors import NotFound

router = APIRouter(tags=["logs"])

_BIG = 2**53
_CONTENT = {
    "text/plain; charset=utf-8": {
        "schema": {"type": "string"},
        "example": "Epoch 1/3\nEpoch 2/3\n",
    },
    "application/x-ndjson": {"schema": {"type": "string"}},
    "text/event-stream": {"schema": {"type": "string"}},
}


@router.get(
    rules.JOB + "/logs",
    responses={200: {"description": "The log, as wanted.", "content": _CONTENT}},
    response_class=Response,
    operation_id="getLogs",
)
async def logs(
    namespace: str,
    name: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    rank: Annotated[
        str, Query(description="One, or several with commas; default all.", examples=["0"])
    ] = "",
    attempt: Annotated[
        int | None, Query(ge=0, le=2**31 - 1, description="Default the newest.")
    ] = None,
    run: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Default the newest.")] = None,
    container: Annotated[
        str, Query(max_length=63, description="Default the one that trains.")
    ] = TRAINING_CONTAINER,
    tail: Annotated[
        int | None, Query(ge=0, le=10**6, description="The last lines of each rank.")
    ] = None,
    offset: Annotated[
        int | None, Query(ge=0, le=_BIG, description="From this byte, of one rank.")
    ] = None,
    limit: Annotated[
        int | None, Query(ge=1, le=_BIG, description="So many bytes, of one rank.")
    ] = None,
    since: Annotated[
        str, Query(max_length=40, description="RFC 3339, or seconds since 1970.")
    ] = "",
    grep: Annotated[
        str, Query(max_length=1000, description="Lines that match a regular expression.")
    ] = "",
    ignore_case: bool = False,
    before: Annotated[int, Query(ge=0, le=100, description="Lines before each match.")] = 0,
    after: Annotated[int, Query(ge=0, le=100, description="Lines after each match.")] = 0,
    max_hits: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    follow: Annotated[bool, Query(description="What comes, too, until the job is over.")] = False,
    cursor: Annotated[
        str, Query(max_length=4000, description="Where to go on: attempt:rank:offset, …")
    ] = "",
    format: Annotated[
        Literal["text", "ndjson", "sse"] | None, Query(description="Default: as Accept says.")
    ] = None,
    last_event_id: Annotated[str, Header(max_length=4000)] = "",
) -> Response:
    """The log of a job."""
    record = shared.service.get(namespace, name)
    form = format or _accepted(request.headers.get("accept", ""))
    cursors = read_cursors(cursor or last_event_id)
    wanted = Wanted(
        ranks=read_ranks(rank),
        attempt=_attempt(attempt, cursors, record.job.attempt),
        run=_run(run, record.job.run, name),
        container=container,
        tail=tail,
        offset=offset,
        limit=limit,
        since=_time(since),
        cursors=cursors,
    )
    found = log_answers.places(shared, record.job, wanted, wanted.attempt)
    if (offset is not None or limit is not None) and len(found) != 1:
        problem = Problem(
            "rank", "FieldValueRequired", "offset and limit are for one rank.", "Name it."
        )
        raise InvalidRequest([problem])
    if follow and not grep and limit is None:
        source = log_answers.followed(shared, record, wanted, form)
        return streamed(request, shared, caller.name, source, MEDIA_TYPES[form])
    begin = await asyncio.to_thread(log_answers.starts, wanted, found)
    if grep:
        what = Pattern(grep, ignore_case, before, after, max_hits)
        parts = await log_answers.searched(shared, form, found, begin, what)
        return Response(b"".join(parts), media_type=MEDIA_TYPES[form])
    stop = None if limit is None else begin[0] + limit
    if form == "text" and len(found) == 1:
        return await _bytes(found[0], begin[0], stop)
    source = log_answers.lines_of(form, found, begin, stop)
    return streamed(request, shared, caller.name, source, MEDIA_TYPES[form])


async def _bytes(place: LogPlace, start: int, stop: int | None) -> Response:
    size = await asyncio.to_thread(lambda: LogFile(place.path).size)
    end = max(start, size if stop is None else min(stop, size))
    headers = {
        "content-length": str(end - start),
        "x-log-cursor": str(Cursor(place.attempt, place.rank, end)),
    }
    content = log_answers.bytes_of(place, start, end)
    return StreamingResponse(content, media_type=MEDIA_TYPES["text"], headers=headers)


def _attempt(given: int | None, cursors: tuple[Cursor, ...], newest: int) -> int:
    if given is not None:
        return given
    return max((each.attempt for each in cursors), default=newest)


def _run(given: int | None, newest: int, name: str) -> int:
    if given is not None and given > newest:
        raise NotFound(f"the job {name!r} has no run {given}; it has 1 to {newest}.")
    return given or newest


def _accepted(accept: str) -> Format:
    for form in ("sse", "ndjson"):
        if MEDIA_TYPES[form] in accept:
            return form
    return "text"


def _time(text: str) -> float | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text).timestamp() if "-" in text[1:] else float(text)
    except (ValueError, OverflowError):
        found = float("nan")
    if not 0 <= found < 1e12:
        message = f"must be a time such as 2026-01-31T12:00:00Z, or seconds; found {text!r}."
        raise InvalidRequest([Problem("since", "FieldValueInvalid", message)])
    return found
