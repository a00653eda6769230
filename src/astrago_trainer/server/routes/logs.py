"""Logs of a job: text, NDJSON or events; see `log_answers`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.logs.gap import read_gap
from astrago_trainer.logs.layout import find_logs
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.server import log_answers, log_windows, rules, schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.context import Caller, Context, Shared
from astrago_trainer.server.log_answers import MEDIA_TYPES, Format, Pattern, Wanted
from astrago_trainer.server.log_places import (
    TRAINING_CONTAINER,
    Cursor,
    LogPlace,
    read_cursors,
    read_ranks,
)
from astrago_trainer.server.sse import streamed, while_welcome
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.errors import NotFound
from astrago_trainer.store.jobs import Job

router = APIRouter(tags=["logs"])

_BIG = 2**53
_MOST_ATTEMPTS = 100
"""Of one window; a job that restarted more often shows its newest."""
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
    cursors = read_cursors(last_event_id or cursor)  # who comes back knows more than the address
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
        return streamed(request, shared, caller, source, MEDIA_TYPES[form])
    begin = await asyncio.to_thread(log_answers.starts, wanted, found)
    if grep:
        what = Pattern(grep, ignore_case, before, after, max_hits)
        parts = await log_answers.searched(shared, namespace, form, found, begin, what)
        return Response(b"".join(parts), media_type=MEDIA_TYPES[form])
    stop = None if limit is None else begin[0] + limit
    if form == "text" and len(found) == 1:
        guard = partial(while_welcome, request, shared, caller)
        return await _bytes(found[0], begin[0], stop, guard)
    source = log_answers.lines_of(form, found, begin, stop)
    return streamed(request, shared, caller, source, MEDIA_TYPES[form])


Rank = Annotated[str, Query(description="One, or several with commas; default all.")]
Attempt = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Default all of the run.")]
Run = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="Default the newest.")]
Container = Annotated[str, Query(max_length=63, description="Default the one that trains.")]
Until = Annotated[
    str, Query(max_length=4000, description="Count as then: `until` of an earlier answer.")
]


@router.get(
    rules.JOB + "/logs/lines",
    responses={200: said(schemas.LogWindow)},
    operation_id="getLogLines",
)
async def lines(
    namespace: str,
    name: str,
    shared: Shared,
    rank: Rank = "",
    attempt: Attempt = None,
    run: Run = None,
    container: Container = TRAINING_CONTAINER,
    first: Annotated[
        int, Query(ge=-_BIG, le=_BIG, description="Number of a line; negative: from the end.")
    ] = -500,
    count: Annotated[int, Query(ge=1, le=2000)] = 500,
    at: Annotated[
        str, Query(max_length=80, description="Around this line: attempt:rank:offset.")
    ] = "",
    until: Until = "",
) -> Response:
    """Lines by number, over all attempts and ranks in the order of time."""
    job = shared.service.get(namespace, name).job
    chosen = _run(run, job.run, name)
    groups = _groups(shared, job, read_ranks(rank), attempt, chosen, container)
    places = read_cursors(at)
    found = await asyncio.to_thread(
        log_windows.window,
        shared.line_indexes,
        groups,
        read_cursors(until),
        first,
        count,
        places[0] if places else None,
    )
    return json_answer({"run": chosen, **found})


@router.get(
    rules.JOB + "/logs/hits", responses={200: said(schemas.LogHits)}, operation_id="findLogLines"
)
async def hits(
    namespace: str,
    name: str,
    shared: Shared,
    q: Annotated[str, Query(max_length=1000, description="What to look for.")] = "",
    regex: Annotated[bool, Query(description="It is a regular expression.")] = False,
    ignore_case: bool = False,
    rank: Rank = "",
    attempt: Attempt = None,
    run: Run = None,
    container: Container = TRAINING_CONTAINER,
    max_hits: Annotated[int, Query(ge=1, le=10_000)] = 1000,
    until: Until = "",
) -> Response:
    """The numbers of the lines in which something is found."""
    job = shared.service.get(namespace, name).job
    groups = _groups(shared, job, read_ranks(rank), attempt, _run(run, job.run, name), container)
    if not q:
        return json_answer({"items": [], "is_whole": True})
    what = log_windows.Search(q, regex, ignore_case, max_hits)
    async with shared.searches.slot(namespace):
        found = await asyncio.to_thread(
            log_windows.hits, shared.line_indexes, groups, read_cursors(until), what
        )
    return json_answer(found)


def _groups(
    shared: Context, job: Job, ranks: tuple[int, ...], attempt: int | None, run: int, container: str
) -> list[log_windows.Group]:
    """The attempts of a run that have logs, in their order; the newest of them always."""
    folder = shared.service.engine.logs(handle_of(job, run))
    there = sorted({each.attempt for each in find_logs(folder)})
    newest = job.attempt if run == job.run else (there[-1] if there else 0)
    wanted = [attempt] if attempt is not None else sorted({*there[-_MOST_ATTEMPTS:], newest})
    groups = []
    for each in wanted:
        asked = Wanted(ranks=ranks, attempt=each, run=run, container=container)
        found = log_answers.places(shared, job, asked, each)
        groups.append(log_windows.Group(each, found, log_windows.is_over(job, run, each)))
    return groups


async def _bytes(
    place: LogPlace,
    start: int,
    stop: int | None,
    guard: Callable[[AsyncIterator[bytes]], AsyncIterator[bytes]],
) -> Response:
    log = LogFile(place.path)
    size = await asyncio.to_thread(lambda: log.size)
    end = max(start, size if stop is None else min(stop, size))
    length, blocks = await asyncio.to_thread(log.download, start, end)
    headers = {
        "content-length": str(length),
        "x-log-cursor": str(Cursor(place.attempt, place.rank, end)),
    }
    if (gap := await asyncio.to_thread(read_gap, place.path)) is not None:
        headers |= {"x-log-dropped-bytes": str(gap.bytes), "x-log-dropped-lines": str(gap.lines)}
    content = guard(log_answers.bytes_of(blocks))
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
