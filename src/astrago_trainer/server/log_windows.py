"""A window on the lines of a job, by number: what a page shows of a log that is too long to be sent.

Lines are counted over the attempts of a run and, within one, over its ranks in the order of time. What was counted is
told as places (`until`): who sends them back counts the same lines, however much the logs have grown since.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.logs.layout import find_logs
from astrago_trainer.logs.numbered import LineIndexes, NumberedLogs
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.server.log_places import TRAINING_CONTAINER, Cursor, LogPlace

SEARCH_SECONDS = 10.0
_MOST_CONTAINERS = 50


class Group(NamedTuple):
    """The logs of one attempt."""

    attempt: int
    places: list[LogPlace]
    is_over: bool


@dataclass(frozen=True, slots=True)
class Search:
    text: str
    is_regex: bool
    ignore_case: bool
    max_hits: int


class _Counted(NamedTuple):
    group: Group
    logs: NumberedLogs
    first: int


def is_over(job: Any, run: int, attempt: int) -> bool:
    """Whether nobody writes to the logs of this attempt any more."""
    return run != job.run or attempt < job.attempt or is_terminal(Phase(job.phase))


def window(
    indexes: LineIndexes,
    groups: Sequence[Group],
    until: Sequence[Cursor],
    first: int,
    count: int,
    at: Cursor | None,
) -> dict[str, Any]:
    """Lines from a number on, from the end when it is negative, or around a place."""
    with _counted(indexes, groups, until) as counted:
        total = counted[-1].first + counted[-1].logs.total if counted else 0
        number = None if at is None else _number(counted, at)
        begin = first if first >= 0 else total + first
        begin = begin if number is None else number - count // 2
        begin = max(0, min(begin, total))
        return {
            "total": total,
            "first": begin,
            "at": number,
            "until": ",".join(map(str, _places(counted))),
            "is_over": not groups or groups[-1].is_over,
            "ranks": sorted({place.rank for group in groups for place in group.places}),
            "containers": _containers(groups),
            "attempts": [
                {"attempt": group.attempt, "first": start, "total": logs.total}
                for group, logs, start in counted
            ],
            "items": [each for part in counted for each in _items(part, begin, count)],
        }


def hits(
    indexes: LineIndexes, groups: Sequence[Group], until: Sequence[Cursor], what: Search
) -> dict[str, Any]:
    """Where a text or a regular expression is found; the earliest first."""
    found = []
    is_whole = True
    deadline = time.monotonic() + SEARCH_SECONDS
    with _counted(indexes, groups, until) as counted:
        for group, logs, first in counted:
            for log, place in enumerate(group.places):
                answer = LogFile(place.path).search(
                    what.text,
                    stop=logs.logs[log].stop,
                    max_hits=what.max_hits,
                    plain=not what.is_regex,
                    ignore_case=what.ignore_case,
                    budget=max(0.1, deadline - time.monotonic()),
                )
                is_whole = is_whole and answer.why == "end"
                found += [
                    {
                        "line": first + logs.number_of(log, hit.line.offset),
                        "attempt": group.attempt,
                        "rank": place.rank,
                        "offset": hit.line.offset,
                    }
                    for hit in answer.hits
                ]
    found.sort(key=lambda hit: hit["line"])
    is_whole = is_whole and len(found) <= what.max_hits
    return {"items": found[: what.max_hits], "is_whole": is_whole}


@contextmanager
def _counted(
    indexes: LineIndexes, groups: Sequence[Group], until: Sequence[Cursor]
) -> Iterator[list[_Counted]]:
    known = {(each.attempt, each.rank): each.offset for each in until}
    newest = max((each.attempt for each in until), default=None)
    with ExitStack() as stack:
        counted: list[_Counted] = []
        first = 0
        for group in groups:
            if newest is not None and group.attempt > newest:
                break  # it began after the counting
            stops = [known.get((place.attempt, place.rank)) for place in group.places]
            logs = stack.enter_context(
                NumberedLogs(
                    [place.path for place in group.places], indexes, stops, is_over=group.is_over
                )
            )
            counted.append(_Counted(group, logs, first))
            first += logs.total
        yield counted


def _places(counted: Sequence[_Counted]) -> list[Cursor]:
    """Of the newest attempt: those before it have ended, and cannot grow."""
    if not counted:
        return []
    group, logs, _ = counted[-1]
    pairs = zip(group.places, logs.logs, strict=True)
    return [Cursor(place.attempt, place.rank, log.stop) for place, log in pairs]


def _number(counted: Sequence[_Counted], at: Cursor) -> int | None:
    for group, logs, first in counted:
        for log, place in enumerate(group.places):
            if (place.attempt, place.rank) == at[:2] and logs.logs[log].total:
                return first + logs.number_of(log, at.offset)
    return None


def _items(part: _Counted, begin: int, count: int) -> Iterator[dict[str, Any]]:
    group, logs, first = part
    start, stop = max(begin, first), min(begin + count, first + logs.total)
    for log, line, when in logs.lines(start - first, stop - start):
        yield {
            "attempt": group.attempt,
            "rank": group.places[log].rank,
            "offset": line.offset,
            "next": line.resume,
            "time": round(when, 3),
            "text": line.text,
            "ended": line.ended,
            "cut": line.cut,
            "dropped": None if line.dropped is None else line.dropped._asdict(),
        }


def _containers(groups: Sequence[Group]) -> list[str]:
    if not groups or not groups[-1].places:
        return [TRAINING_CONTAINER]
    folder = groups[-1].places[0].path.parents[3]
    names = {each.container for each in find_logs(folder, groups[-1].attempt)}
    return sorted(names | {TRAINING_CONTAINER})[:_MOST_CONTAINERS]
