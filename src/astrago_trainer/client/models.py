"""What the server tells, as plain data. Fields that a newer server adds are in `raw` and disturb nobody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

Json = dict[str, Any]

ENDED = ("Complete", "Failed")
"""Phases after which nothing happens by itself."""


class Job(NamedTuple):
    """A job at one moment."""

    name: str
    namespace: str
    uid: str
    owner: str
    framework: str
    runtime: str
    nodes: int
    gpus_per_node: int
    phase: str
    """Queued, Pending, Pulling, Initializing, Running, Restarting, Suspended, Complete, Failed or Deleting."""
    meaning: str
    """The phase in words."""
    reason: str
    """A word for programs: why it is in this phase."""
    message: str
    """The same in words."""
    run: int
    attempt: int
    restarts: int
    max_restarts: int
    created_at: str
    """RFC 3339, UTC; so are the others."""
    started_at: str | None
    finished_at: str | None
    raw: Mapping[str, Any]
    """The whole answer."""

    @property
    def is_over(self) -> bool:
        """It has ended, well or not."""
        return self.phase in ENDED

    @property
    def has_succeeded(self) -> bool:
        return self.phase == "Complete"

    @property
    def cloned_from(self) -> str | None:
        """The name of the job it was made of, which may be gone."""
        original = self.raw.get("cloned_from")
        return original["name"] if original else None


class LogLine(NamedTuple):
    """One line of one rank."""

    attempt: int
    rank: int
    pod: str
    container: str
    offset: int
    """Of its first byte in its log: with attempt and rank the place to go on from."""
    text: str
    """Without the newline; exactly what the training wrote, so escape it before a terminal sees it."""
    is_ended: bool = True
    """False: a line still being written, such as a progress bar; a later one with this offset replaces it."""
    time: float | None = None
    """Seconds since 1970, about."""
    dropped_bytes: int = 0
    """Of the line that stands for a part of the log that was dropped, because the log was over its limit."""
    dropped_lines: int = 0


class LogQuery(NamedTuple):
    """Which lines; None is no condition."""

    rank: int | None = None
    attempt: int | None = None
    """Counted from 0, of the present run; the newest one when None, all while a job is followed."""
    tail: int | None = None
    """So many of the last lines of each rank."""
    grep: str | None = None
    """A regular expression; the server looks for it, and while a job is followed this side does."""

    def matcher(self) -> Callable[[str], object]:
        return re.compile(self.grep).search if self.grep else lambda _: True

    def batches(self, lines: Iterable[LogLine], most: int = 500) -> Iterator[list[LogLine]]:
        """Those that match, some hundreds at a time: a terminal is written to once for each."""
        matches = self.matcher()
        found = (line for line in lines if matches(line.text))
        while batch := list(islice(found, most)):
            yield batch


class Event(NamedTuple):
    """Something that happened to a job."""

    number: int
    time: str
    actor: str
    reason: str
    message: str


class Point(NamedTuple):
    """One value of a metric."""

    step: int | None
    time: float
    """Seconds since 1970."""
    value: float | None
    """None where the training said NaN or infinity."""


def job_from_view(view: Mapping[str, Any]) -> Job:
    return Job(**{name: view.get(name) for name in Job._fields[:-1]}, raw=view)  # type: ignore[arg-type]
