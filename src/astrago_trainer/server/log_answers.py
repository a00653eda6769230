"""Logs as answers: bytes, lines or events; what is there, and what comes. In constant memory, whatever the size.

A place in a log is `attempt:rank:offset`. Each event of a stream carries the places of all its ranks, so that a client
that comes back with the last one it saw gets neither a line twice nor one less.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Literal, Protocol

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.logs.follow_merged import follow_merged
from astrago_trainer.logs.lines import Line
from astrago_trainer.logs.merged import MergedLine, Past, Source
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.logs.search import Found
from astrago_trainer.server.context import Context
from astrago_trainer.server.log_places import Cursor, LogPlace, find_places
from astrago_trainer.server.problems import encoded
from astrago_trainer.server.sse import event
from astrago_trainer.service.board import Record
from astrago_trainer.service.effective import handle_of
from astrago_trainer.store.jobs import Job

Format = Literal["text", "ndjson", "sse"]
MEDIA_TYPES: dict[Format, str] = {
    "text": "text/plain; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "sse": "text/event-stream",
}
MOST_RANKS = 64
"""Of one stream: each event names the place of each of them."""
TURN_LINES = 100
"""Lines that one stream encodes before the next has its turn: less than a millisecond."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody wants to read."""

    ranks: tuple[int, ...]
    attempt: int
    run: int
    container: str
    tail: int | None = None
    offset: int | None = None
    limit: int | None = None
    since: float | None = None
    cursors: tuple[Cursor, ...] = ()


def places(context: Context, job: Job, wanted: Wanted, attempt: int) -> list[LogPlace]:
    """Raises NotFound, and InvalidRequest for more ranks than one answer may have."""
    folder = context.service.engine.logs(handle_of(job, wanted.run))
    found = find_places(job, folder, attempt, wanted.ranks, wanted.container)
    if len(found) > MOST_RANKS:
        problem = Problem(
            "rank",
            "FieldValueTooMany",
            f"at most {MOST_RANKS} ranks are read together; the job has {len(found)}.",
            "Name some of them: rank=0,1,2.",
        )
        raise InvalidRequest([problem])
    return found


def starts(wanted: Wanted, found: Sequence[LogPlace]) -> list[int]:
    """Where reading begins in each; touches the files, so it is for a thread."""
    known = {each.rank: each.offset for each in wanted.cursors if each.attempt == found[0].attempt}
    return [_start(wanted, place, known) for place in found] if found else []


def _start(wanted: Wanted, place: LogPlace, known: dict[int, int]) -> int:
    if place.rank in known:
        return known[place.rank]
    if wanted.offset is not None:
        return wanted.offset
    if wanted.tail is not None and not wanted.cursors:
        return LogFile(place.path).tail_offset(wanted.tail)
    if wanted.since is not None:
        return LogFile(place.path).offset_at(wanted.since)
    return 0


# --- how lines are written


class Encoder(Protocol):
    """Lines to bytes of one format."""

    def encode(self, lines: Iterable[MergedLine]) -> bytes: ...

    def finish(self) -> bytes:
        """What is left at the end of an attempt."""
        ...


class TextEncoder:
    """For people: whole lines, with the rank in front when there are several."""

    def __init__(self, ranks: dict[str, int]) -> None:
        self._prefixes = {
            pod: b"" if len(ranks) == 1 else b"[%d] " % rank for pod, rank in ranks.items()
        }
        self._open: dict[str, Line] = {}

    def encode(self, lines: Iterable[MergedLine]) -> bytes:
        parts = []
        for pod, _, line, _ in lines:
            if line.ended:
                self._open.pop(pod, None)
                parts.append(self._prefixes[pod] + _sound(line.data) + b"\n")
            else:  # it is shown when it has ended: text cannot be replaced
                self._open[pod] = line
        return b"".join(parts)

    def finish(self) -> bytes:
        rest = [self._prefixes[pod] + _sound(line.data) + b"\n" for pod, line in self._open.items()]
        self._open.clear()
        return b"".join(rest)


class JsonEncoder:
    """For programs: an object for each line."""

    def __init__(self, attempt: int, ranks: dict[str, int]) -> None:
        self._attempt = attempt
        self._ranks = ranks
        self._heads = {
            pod: f'{{"attempt":{attempt},"rank":{rank},"pod":{encode_basestring(pod)},"offset":'
            for pod, rank in ranks.items()
        }

    def encode(self, lines: Iterable[MergedLine]) -> bytes:
        return b"".join([self.object(each) + b"\n" for each in lines])

    def finish(self) -> bytes:
        return b""

    def object(self, each: MergedLine) -> bytes:
        """By hand, because two hundred readers of one busy log want this of every line."""
        line = each.line
        ended = "true" if line.ended else "false"
        return (
            f'{self._heads[each.pod]}{line.offset},"next":{line.resume},"time":{each.time:.3f},'
            f'"text":{encode_basestring(line.text)},"ended":{ended}{_dropped(line)}}}'
        ).encode()


def _dropped(line: Line) -> str:
    """Of the line that stands for a dropped part of the log."""
    if line.dropped is None:
        return ""
    return f',"dropped":{{"bytes":{line.dropped.bytes},"lines":{line.dropped.lines}}}'


class EventEncoder(JsonEncoder):
    """The same as events; their ids say where each rank is."""

    def __init__(self, attempt: int, ranks: dict[str, int], offsets: dict[str, int]) -> None:
        super().__init__(attempt, ranks)
        self._offsets = offsets

    def encode(self, lines: Iterable[MergedLine]) -> bytes:
        parts = []
        for each in lines:
            self._offsets[each.pod] = each.line.resume
            parts.append(event(self.object(each), id_=self._places()))
        return b"".join(parts)

    def _places(self) -> str:
        return ",".join(
            str(Cursor(self._attempt, self._ranks[pod], offset))
            for pod, offset in self._offsets.items()
        )


def _encoder(form: Format, found: Sequence[LogPlace], begin: Sequence[int]) -> Encoder:
    ranks = {place.pod: place.rank for place in found}
    attempt = found[0].attempt if found else 0
    if form == "text":
        return TextEncoder(ranks)
    if form == "ndjson":
        return JsonEncoder(attempt, ranks)
    offsets = {place.pod: start for place, start in zip(found, begin, strict=True)}
    return EventEncoder(attempt, ranks, offsets)


def _sound(data: bytes) -> bytes:
    """UTF-8, whatever the training wrote."""
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


# --- what is there


async def bytes_of(blocks: Iterator[bytes]) -> AsyncGenerator[bytes, None]:
    """As they were written; a thread waits for the disk."""
    while (block := await asyncio.to_thread(next, blocks, None)) is not None:
        yield block


async def lines_of(
    form: Format, found: Sequence[LogPlace], begin: Sequence[int], stop: int | None
) -> AsyncGenerator[bytes, None]:
    """The lines of all, by time; up to an offset, where there is one rank and a limit."""
    encoder = _encoder(form, found, begin)
    past = Past(_sources(found, begin), open_ends=True)

    def part() -> tuple[bytes, bool]:
        batch = past.batch()
        kept = [each for each in batch if stop is None or each.line.offset < stop]
        return encoder.encode(kept), not batch or len(kept) < len(batch)

    is_over = False
    while not is_over:
        data, is_over = await asyncio.to_thread(part)
        if data:
            yield data
    if rest := encoder.finish():
        yield rest
    if form == "sse":
        yield event(b"{}", name="end")


# --- what comes


async def followed(
    context: Context, record: Record, wanted: Wanted, form: Format
) -> AsyncGenerator[bytes, None]:
    """From where it was wanted to the end of the job, attempt after attempt."""
    number, attempt = record.job.number, wanted.attempt
    while True:
        current = context.service.board.find_number(number)
        found = places(context, (current or record).job, wanted, attempt)
        begin = await asyncio.to_thread(starts, wanted, found)
        is_first = attempt == wanted.attempt
        begin = begin if is_first else [0] * len(found)
        async with aclosing(_attempt(context, number, wanted, form, found, begin)) as parts:
            async for part in parts:
                yield part
        current = context.service.board.find_number(number)
        if current is None or current.job.run != wanted.run or current.job.attempt <= attempt:
            break
        attempt += 1
    if form == "sse":
        state = {} if current is None else {"phase": current.job.phase}
        yield event(encoded(state), name="end")


async def _attempt(
    context: Context,
    number: int,
    wanted: Wanted,
    form: Format,
    found: Sequence[LogPlace],
    begin: Sequence[int],
) -> AsyncGenerator[bytes, None]:
    attempt = found[0].attempt if found else wanted.attempt

    def is_over(record: Record | None) -> bool:
        if record is None:
            return True
        job = record.job
        return job.run != wanted.run or job.attempt > attempt or is_terminal(Phase(job.phase))

    with context.watch.over(number, is_over) as done:
        if form == "text" and len(found) == 1:
            async for chunk in context.hub.follow(found[0].path, begin[0], done=done):
                yield chunk.data
            return
        encoder = _encoder(form, found, begin)
        async for batch in follow_merged(context.hub, _sources(found, begin), done=done):
            for first in range(0, len(batch), TURN_LINES):
                if first:
                    await asyncio.sleep(0)  # the others' turn
                if data := encoder.encode(batch[first : first + TURN_LINES]):
                    yield data
        if rest := encoder.finish():
            yield rest


def _sources(found: Sequence[LogPlace], begin: Sequence[int]) -> list[Source]:
    return [
        Source(place.pod, place.container, place.path, start)
        for place, start in zip(found, begin, strict=True)
    ]


# --- what matches


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    ignore_case: bool
    before: int
    after: int
    max_hits: int


async def searched(
    context: Context,
    tenant: str,
    form: Format,
    found: Sequence[LogPlace],
    begin: Sequence[int],
    what: Pattern,
) -> list[bytes]:
    """The matching lines of each rank. Collected before it is answered, because a pattern may turn out to be none."""
    parts = []
    encoder = _encoder(form, found, begin)
    for place, start in zip(found, begin, strict=True):
        async with context.searches.slot(tenant):
            hits, timed = await asyncio.to_thread(_search, place, start, what)
        lines = [MergedLine(place.pod, place.container, line, when) for when, line in timed]
        parts.append(encoder.encode(lines) + encoder.finish())
        if form != "text":
            how_far = {
                "attempt": place.attempt,
                "rank": place.rank,
                "next": hits.end,
                "why": hits.why,
            }
            told = encoded(how_far)
            parts.append(event(told, name="searched") if form == "sse" else told + b"\n")
    return parts


def _search(
    place: LogPlace, start: int, what: Pattern
) -> tuple[Found, Sequence[tuple[float, Line]]]:
    """What was found, and its lines with their times: who asks for several ranks puts them in order."""
    log = LogFile(place.path)
    found = log.search(
        what.text,
        start=start,
        ignore_case=what.ignore_case,
        before=what.before,
        after=what.after,
        max_hits=what.max_hits,
    )
    return found, list(log.timed(_shown(found)))


def _shown(found: Found) -> Iterator[Line]:
    for hit in found.hits:
        yield from (*hit.before, hit.line, *hit.after)


# --- the first API


async def as_json_text(
    head: dict[str, object], place: LogPlace, start: int, stop: int
) -> AsyncGenerator[bytes, None]:
    """An object whose last field is the log, written as it is read: a gigabyte needs no gigabyte."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield encoded(head)[:-1] + b',"logs":"'
    blocks = await asyncio.to_thread(LogFile(place.path).iter_bytes, start, stop)
    async for block in bytes_of(blocks):
        yield _inside(decoder.decode(block))
    yield _inside(decoder.decode(b"", final=True)) + b'"}'


def _inside(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode()
