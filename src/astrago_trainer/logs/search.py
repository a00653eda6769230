"""Search in a log: finds the matching lines and shows them with the lines around.

A text without special characters is looked for right here, at the speed of memory. A regular expression runs in a
process of its own, with a deadline: `(a+)+$` of one tenant costs him his ten seconds, and nobody else a moment.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal, NamedTuple

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.logs.blocks import blocks, lines_back
from astrago_trainer.logs.lines import Line, LineCutter
from astrago_trainer.logs.matching import (
    BAD_PATTERN,
    FRAME,
    SEARCHED,
    Span,
    matching_lines,
    plain_finder,
)
from astrago_trainer.logs.view import View

MAX_PATTERN = 1000
MAX_HITS = 10_000
MAX_AROUND = 100
AROUND_LINE = 1 << 14
"""Bytes of a line that stands around a hit; the hit itself is shown as any line."""
RESULT_BYTES = 8 << 20
"""What an answer may hold; a page of hits with their surroundings is some kilobytes."""
_SPECIAL = re.compile(r"[\\.^$*+?{}\[\]|()]")
_PACKAGES = str(Path(__file__).parents[2])
# Isolated and without site: 12 ms instead of 25 to start, and no code of the environment's.
_WORKER = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from astrago_trainer.logs.matching import main; main()"
)

Why = Literal["end", "hits", "time"]


class Hit(NamedTuple):
    """One matching line. All lines of all hits in a row are what `grep -C` shows: none comes twice."""

    line: Line
    before: tuple[Line, ...] = ()
    after: tuple[Line, ...] = ()


class Found(NamedTuple):
    """What a search found, and how far it came."""

    hits: tuple[Hit, ...]
    end: int
    """Everything before has been looked at; a further search starts here."""
    why: Why
    """It ended because the end was reached, there are enough hits, or the time was over."""


def search(
    log: View,
    pattern: str,
    *,
    span: Span,
    max_hits: int,
    around: tuple[int, int],
    plain: bool,
    ignore_case: bool,
    raw: bool,
    budget: float,
    max_line: int,
) -> Found:
    """The lines between two places of a log in which the pattern is found; of a longer line its first `max_line` bytes.

    Raises InvalidRequest for a pattern that is none. `budget` is in seconds and holds for both ways.
    """
    check_pattern(pattern)
    span = (max(0, span[0]), max(0, *span))
    max_hits = min(max(1, max_hits), MAX_HITS)
    deadline = time.monotonic() + budget
    if not ignore_case and (plain or not _SPECIAL.search(pattern)):
        find = plain_finder(pattern.encode("utf-8", "surrogateescape"), raw=raw)
        frames = matching_lines(log, span, find, raw=raw, max_line=max_line)
    else:
        expression = re.escape(pattern) if plain else pattern
        numbers = (*span, max_hits, max_line, int(raw), int(ignore_case), int(budget) + 1)
        frames = _frames_of_worker(log, expression, numbers, deadline)
    with closing(frames):
        spans, end, why = _collect(frames, span, max_hits, deadline)
    found = _show(log, spans, end, why, around=around, raw=raw, max_line=max_line, start=span[0])
    return found if log.gap is None else _by_offsets(log, found)


def _by_offsets(log: View, found: Found) -> Found:
    def shown(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(map(log.shown, lines))

    hits = (Hit(log.shown(hit.line), shown(hit.before), shown(hit.after)) for hit in found.hits)
    return Found(tuple(hits), log.offset(found.end), found.why)


def check_pattern(pattern: str) -> None:
    """What can be said without looking at the log; whether it is an expression shows when it is used."""
    if not pattern or len(pattern) > MAX_PATTERN:
        message = f"1 to {MAX_PATTERN} characters are searched for, not {len(pattern)}."
        raise InvalidRequest([Problem("pattern", "bad-pattern", message)])


def _collect(
    frames: Iterator[tuple[int, int]], span: Span, max_hits: int, deadline: float
) -> tuple[list[Span], int, Why]:
    spans: list[Span] = []
    end, stop = span
    for begin, line_end in frames:
        if line_end != SEARCHED:
            spans.append((begin, line_end))
            if len(spans) >= max_hits:
                return spans, min(line_end + 1, stop), "hits"
            continue
        end = begin
        if time.monotonic() > deadline and end < stop:
            return spans, end, "time"
    return spans, end, "end" if end >= stop else "time"


def _frames_of_worker(
    log: View, pattern: str, numbers: tuple[int, ...], deadline: float
) -> Generator[tuple[int, int], None, None]:
    """What the worker says until the deadline; then it is killed."""
    gap = (0, 0) if log.gap is None else log.gap[:2]
    words = " ".join(map(str, (log.fd, *gap, *numbers)))
    request = f"{words}\n{pattern}".encode("utf-8", "surrogatepass")
    with subprocess.Popen(  # noqa: S603 - our own interpreter and code; the pattern goes in by stdin
        [sys.executable, "-I", "-S", "-c", _WORKER, _PACKAGES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=(log.fd,),
    ) as worker:
        try:
            yield from _exchange(worker, request, deadline)
        finally:
            worker.kill()


def _exchange(
    worker: subprocess.Popen[bytes], request: bytes, deadline: float
) -> Iterator[tuple[int, int]]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stderr is not None
    worker.stdin.write(request)  # at most some kilobytes: they fit into the pipe
    worker.stdin.close()
    output = worker.stdout.fileno()
    waiting = select.poll()
    waiting.register(output, select.POLLIN)
    kept = b""
    while waiting.poll(max(0.0, (deadline - time.monotonic()) * 1000)):
        data = os.read(output, 65536)
        if not data:
            _check_end(worker, worker.stderr.read())
            return
        kept += data
        whole = len(kept) - len(kept) % FRAME.size
        yield from FRAME.iter_unpack(kept[:whole])
        kept = kept[whole:]


def _check_end(worker: subprocess.Popen[bytes], said: bytes) -> None:
    code = worker.wait()
    text = said.decode("utf-8", "replace")
    if code == BAD_PATTERN:
        raise InvalidRequest([Problem("pattern", "bad-pattern", f"no regular expression: {text}.")])
    if code == 1 and text.rstrip().endswith("MemoryError"):
        message = "it needs too much memory on these lines."
        raise InvalidRequest([Problem("pattern", "pattern-too-hard", message)])
    if code > 0:
        raise RuntimeError(f"the search process ended with {code}: {text[-2000:]}")
    # Below 0 the kernel ended it: its time was over, and what was found so far counts.


def _show(
    log: View,
    spans: list[Span],
    end: int,
    why: Why,
    *,
    around: tuple[int, int],
    raw: bool,
    max_line: int,
    start: int,
) -> Found:
    """Reads the lines to be shown, as many as an answer may hold."""
    before, after = (min(lines, MAX_AROUND) for lines in around)
    hits: list[Hit] = []
    shown_to = start
    room = RESULT_BYTES

    def cut(begin: int, stop: int, count: int, most: int) -> tuple[Line, ...]:
        return tuple(_lines(log, begin, stop, count, raw=raw, max_line=min(most, max_line)))

    size = log.length
    for number, (begin, line_end) in enumerate(spans):
        following = spans[number + 1][0] if number + 1 < len(spans) else size
        first = lines_back(log, begin, before, floor=min(shown_to, begin))
        (line,) = cut(begin, min(line_end + 1, size), 1, max_line) or (Line(begin, line_end, b""),)
        earlier = cut(first, begin, before, AROUND_LINE)
        hit = Hit(line, earlier, cut(line.end, following, after, AROUND_LINE))
        room -= sum(len(each.data) for each in (hit.line, *hit.before, *hit.after))
        if room < 0 and hits:
            return Found(tuple(hits), begin, "hits")
        hits.append(hit)
        shown_to = hit.after[-1].end if hit.after else line.end
    return Found(tuple(hits), end, why)


def _lines(
    log: View, start: int, stop: int, count: int, *, raw: bool, max_line: int
) -> Iterator[Line]:
    if count <= 0:
        return
    cutter = LineCutter(start, raw=raw, max_line=max_line)
    for data in blocks(log, start, stop):
        for line in cutter.feed(data):
            yield line
            count -= 1
            if not count:
                return
    if (rest := cutter.rest()) is not None:
        yield rest
