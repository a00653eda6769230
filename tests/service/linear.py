"""Whether the answers of several servers could have come from one job that changes in one step after the other.

A history has the requests of clients and their answers, with the moments of both. It is right if every request can be
given a moment between its question and its answer at which the model gives that answer (Wing and Gong, 1993). A request
without an answer may have been carried out at any later moment, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple


class State(NamedTuple):
    """A job that is there."""

    uid: str
    is_suspended: bool
    is_deleting: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of one client."""

    kind: str
    """create, suspend, resume, delete, get"""
    asked: int
    answered_at: int | None
    """Numbers of moments; None where no answer came."""
    answer: str | State | None = None
    """The job, or `missing`, `taken`, `refused`."""


def is_linearizable(history: list[Operation]) -> bool:
    """Looks for an order of the requests that explains all answers."""
    uids = _unexplained(history)
    answered = sum(1 << place for place, each in enumerate(history) if each.answered_at is not None)
    seen: set[tuple[int, State | None]] = set()
    open_ends: list[tuple[int, State | None]] = [(0, None)]
    while open_ends:
        done, state = open_ends.pop()
        if done & answered == answered:
            return True
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if state is not None and state.is_deleting:
            open_ends.append((done, None))  # the servers remove it at some moment
        for place in _possible(history, done):
            open_ends += [
                (done | 1 << place, after) for after in _steps(history[place], state, uids)
            ]
    return False


def _possible(history: list[Operation], done: int) -> Iterator[int]:
    """Requests that may come next: none is left that was answered before they were asked."""
    left = [place for place in range(len(history)) if not done >> place & 1]
    first_answer = min(
        (answered_at for place in left if (answered_at := history[place].answered_at) is not None),
        default=None,
    )
    for place in left:
        if first_answer is None or history[place].asked <= first_answer:
            yield place


def _unexplained(history: list[Operation]) -> list[str]:
    """Jobs that were seen, and made by a request without an answer."""
    made: set[str] = set()
    seen: set[str] = set()
    for each in history:
        if isinstance(each.answer, State):
            (made if each.kind == "create" else seen).add(each.answer.uid)
    return sorted(seen - made) or ["never seen"]


def _steps(operation: Operation, state: State | None, uids: list[str]) -> list[State | None]:
    """States after this request, if the model gives its answer; all answers are possible where none came."""
    return [
        after
        for answer, after in _outcomes(operation, state, uids)
        if operation.answered_at is None or answer == operation.answer
    ]


def _outcomes(
    operation: Operation, state: State | None, uids: list[str]
) -> list[tuple[str | State | None, State | None]]:
    if operation.kind == "get":
        return [(state or "missing", state)]
    if operation.kind == "create":
        if state is not None:
            return [("taken", state)]
        made = [operation.answer.uid] if isinstance(operation.answer, State) else uids
        return [(new, new) for new in (State(uid, False, False) for uid in made)]
    if state is None:
        return [("missing", None)]
    if operation.kind == "delete":
        gone = state._replace(is_deleting=True)
        return [(gone, gone)]
    if state.is_deleting:
        return [("refused", state)]
    after = state._replace(is_suspended=operation.kind == "suspend")
    return [(after, after)]
