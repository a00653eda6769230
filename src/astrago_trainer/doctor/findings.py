"""What was found: one line each, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """Jobs run, but not as well as they could; or nobody could look."""
    WRONG = "wrong"
    """Jobs do not run."""


@dataclass(frozen=True, slots=True)
class Finding:
    subject: str
    state: State
    text: str
    """What is there, or what is missing and what it means."""
    mend: tuple[str, ...] = ()
    """Commands, one of which mends it; empty where nothing is to be done."""


def ok(subject: str, text: str) -> Finding:
    return Finding(subject, State.OK, text)


def warning(subject: str, text: str, *mend: str) -> Finding:
    return Finding(subject, State.WARNING, text, mend)


def wrong(subject: str, text: str, *mend: str) -> Finding:
    return Finding(subject, State.WRONG, text, mend)


def counted(number: int, noun: str) -> str:
    """`1 node`, `3 nodes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Some of them by name, the others by number."""
    found = list(names)
    rest = len(found) - most
    return ", ".join(found[:most]) + (f" and {rest} more" if rest > 0 else "")


def shortened(path: str, most: int = 40) -> str:
    """The end of a path, which says most."""
    return path if len(path) <= most else f"…{path[1 - most :]}"
