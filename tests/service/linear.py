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


Keys = frozenset[tuple[str, str]]
"""Idempotency-Keys that were used, each with the uid of its job."""
Node = tuple[int, State | None, Keys]
"""Which requests were carried out, as bits; the job after them; the keys."""

NEVER_SEEN = "never seen"
"""The uid of a job that no answer has."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One request of one client."""

    kind: str
    """create, suspend, resume, restart, delete, get, list"""
    asked: int
    answered_at: int | None
    """Numbers of moments; None where no answer came."""
    answer: str | State | None = None
    """The job, or `missing`, `taken`, `refused`."""
    key: str = ""
    """Of a create: with the same key it gets the first answer again."""


def is_linearizable(history: list[Operation]) -> bool:
    """Looks for an order of the requests that explains all answers."""
    uids = _unexplained(history)
    answered = sum(1 << place for place, each in enumerate(history) if each.answered_at is not None)
    seen: set[Node] = set()
    open_ends: list[Node] = [(0, None, frozenset())]
    while open_ends:
        node = open_ends.pop()
        done, state, keys = node
        if done & answered == answered:
            return True
        if node in seen:
            continue
        seen.add(node)
        if state is not None and state.is_deleting:
            open_ends.append((done, None, keys))  # the servers remove it at some moment
        for place in _possible(history, done):
            operation = history[place]
            open_ends += [
                (done | 1 << place, after, after_keys)
                for answer, after, after_keys in _outcomes(operation, state, keys, uids)
                # All answers are possible where none came.
                if operation.answered_at is None or answer == operation.answer
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
    """Uids of jobs that a request without an answer may have made."""
    made: set[str] = set()
    seen: set[str] = set()
    for each in history:
        if isinstance(each.answer, State):
            is_first = each.kind == "create" and not each.key
            (made if is_first else seen).add(each.answer.uid)
    return [*sorted(seen - made), NEVER_SEEN]


def _outcomes(
    operation: Operation, state: State | None, keys: Keys, uids: list[str]
) -> list[tuple[str | State | None, State | None, Keys]]:
    """Answers that the model may give, each with what is true after it."""
    if operation.kind in ("get", "list"):
        return [(state or "missing", state, keys)]
    if operation.kind == "create":
        return _creations(operation, state, keys, uids)
    if state is None:
        return [("missing", None, keys)]
    if operation.kind == "delete":
        gone = state._replace(is_deleting=True)
        return [(gone, gone, keys)]
    if state.is_deleting:
        return [("refused", state, keys)]
    after = state._replace(is_suspended=operation.kind == "suspend")
    found: list[tuple[str | State | None, State | None, Keys]] = [(after, after, keys)]
    if operation.kind == "restart":  # one that was asked for before may not have begun
        found.append((state, state, keys))
    return found


def _creations(
    operation: Operation, state: State | None, keys: Keys, uids: list[str]
) -> list[tuple[str | State | None, State | None, Keys]]:
    for key, uid in keys:
        if key == operation.key:
            return [(State(uid, False, False), state, keys)]
    if state is not None:
        return [("taken", state, keys)]
    made = [operation.answer.uid] if isinstance(operation.answer, State) else uids
    news = [State(uid, False, False) for uid in made]
    return [
        (new, new, keys | {(operation.key, new.uid)} if operation.key else keys) for new in news
    ]
