"""Finds the exceptions that ended processes in their output.

Lines of several ranks may be mixed: torch, torchrun, mpirun and our launcher write the rank before each line. What
libraries print after an exception, and what torchrun reports about its processes, is read past. Standard library only:
the supervisor of a local job uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_MESSAGE = 600
"""Characters of a message that are kept, from its beginning."""
_MOST_MESSAGE_LINES = 8
MOST_LINE = 4000
"""Characters of a line that are read: hostile ones must not take long."""

_PREFIX = re.compile(r"\[(?:rank ?|default)(\d{1,6})\]:? ?|\[\d+,(\d{1,6})\]<std(?:err|out)>: ?")
_BEGIN = re.compile(r"(?:Exception Group )?Traceback \(most recent call last\):")
_FRAME = re.compile(r'  File "(?P<file>[^"]+)", line (?P<line>\d+)(?:, in (?P<function>.+))?')
_EXCEPTION = re.compile(r"(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?")
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_LIBRARY = re.compile(
    r"/site-packages/|/dist-packages/|/lib/python\d|^<frozen |/shared/(?:launch|forward)\.py$"
)
NOISE = re.compile(
    r"\[?[WIE]\d{4} |\[W|.*Warning: |  warnings\.warn|.*destroy_process_group\(\) was not called"
    r"|\*{10}|={10}|-{10}|\{\"rank\": "
)
"""Lines of libraries, and the launcher's line for programs, that say nothing about the cause."""
_LAUNCHER_ERRORS = frozenset({"ChildFailedError", "SignalException"})
"""What torchrun raises itself after a process of it has failed."""
_VICTIMS = re.compile(
    r"Connection (?:closed by|reset by) peer|Broken pipe|Connection refused|Socket Timeout"
    r"|Watchdog caught collective operation timeout|remote process exited|NCCL communicator was aborted"
    r"|Timed out waiting \d+ms for (?:recv|send)|wait timeout after|failed to recv, got 0 bytes"
    r"|Horovod has been shut down|HorovodInternalError|UnavailableError",
    re.IGNORECASE,
)
"""What ranks say that lost another one: consequences, not causes."""


class Frame(NamedTuple):
    file: str
    line: int
    function: str


class RaisedError(NamedTuple):
    """An exception that a traceback ends with."""

    type: str
    message: str
    frame: Frame | None
    """The last one in the user's own files, else the last one."""
    rank: int | None
    """As its lines were marked; None for lines without a mark."""
    caused_by: str
    """Type and message of the exception that it was raised from, or while handling; empty for none."""
    ended_at: int
    """The number of its last line in the text."""

    @property
    def headline(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @property
    def is_consequence(self) -> bool:
        """Whether it only says that another rank was lost."""
        return _VICTIMS.search(self.headline) is not None

    @property
    def name(self) -> str:
        """The type without its module."""
        return self.type.rpartition(".")[2]


def split_rank(line: str) -> tuple[int | None, str]:
    """The rank that is written before a line, and the line without it."""
    found = _PREFIX.match(line)
    if found is None:
        return None, line
    return int(found[1] or found[2]), line[found.end() :]


def find_errors(text: str) -> list[RaisedError]:
    """The exceptions of all tracebacks, in the order in which they end; of a chain the last one."""
    by_rank: dict[int | None, list[tuple[int, str]]] = {}
    for number, line in enumerate(text.splitlines()):
        rank, rest = split_rank(line[:MOST_LINE].rstrip())
        by_rank.setdefault(rank, []).append((number, rest))
    found = [error for rank, lines in by_rank.items() for error in _errors(lines, rank)]
    return sorted(found, key=lambda error: error.ended_at)


def decisive_error(errors: list[RaisedError]) -> RaisedError | None:
    """The one that ended the training.

    Of each rank the last one counts: earlier ones were handled. Among ranks it is the first that does not merely say
    that another one was lost.
    """
    last: dict[int | None, RaisedError] = {}
    for error in errors:
        if error.name not in _LAUNCHER_ERRORS:
            last[error.rank] = error
    ends = sorted(last.values(), key=lambda error: error.ended_at)
    return next((error for error in ends if not error.is_consequence), ends[0] if ends else None)


def _errors(lines: list[tuple[int, str]], rank: int | None) -> Iterator[RaisedError]:
    """Of the lines of one rank."""
    place, before = 0, ""
    while place < len(lines):
        if _BEGIN.fullmatch(lines[place][1].strip()) is None:
            place += 1
            continue
        error, place = _read(lines, place, rank, before)
        before = ""
        if error is None:
            continue
        after = _skip_blank(lines, place)
        if after < len(lines) and lines[after][1].strip() in _CHAINED:
            before, place = error.headline, after + 1
            continue
        yield error


def _read(
    lines: list[tuple[int, str]], begin: int, rank: int | None, caused_by: str
) -> tuple[RaisedError | None, int]:
    """The traceback that begins there, and the place behind it; None for one that is cut off."""
    frames: list[Frame] = []
    place = begin + 1
    while place < len(lines):
        line = lines[place][1]
        if (frame := _FRAME.match(line)) is not None:
            frames.append(Frame(frame["file"], int(frame["line"]), frame["function"] or ""))
        elif line and not line.startswith(" "):
            break
        place += 1
    if place == len(lines):
        return None, place
    found = _EXCEPTION.fullmatch(lines[place][1])
    if found is None:
        return None, place
    number, parts = lines[place][0], [found["message"] or ""]
    place += 1
    while place < len(lines) and len(parts) < _MOST_MESSAGE_LINES:
        line = lines[place][1]
        # A message may have several lines; what comes later, or from elsewhere, is none of it.
        if not line.strip() or (rank is None and lines[place][0] > number + 1):
            break
        if NOISE.match(line) or _BEGIN.fullmatch(line.strip()):
            break
        number = lines[place][0]
        parts.append(line.strip())
        place += 1
    message = " ".join(filter(None, parts))[:MOST_MESSAGE]
    return RaisedError(found["type"], message, _own(frames), rank, caused_by, number), place


def _skip_blank(lines: list[tuple[int, str]], place: int) -> int:
    while place < len(lines) and not lines[place][1].strip():
        place += 1
    return place


def _own(frames: list[Frame]) -> Frame | None:
    own = [frame for frame in frames if _LIBRARY.search(frame.file) is None]
    return (own or frames)[-1] if frames else None
