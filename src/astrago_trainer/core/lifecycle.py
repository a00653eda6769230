"""The life of a job as a table: phases, legal moves, and when it is over.

Engines report what they see; `next_phase` decides what that means for a job whose past is known.
Nothing in here knows Kubernetes or processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

SeedState = Literal["Running", "Complete", "Failed"]


class Phase(StrEnum):
    """Where a job stands."""

    QUEUED = "Queued"
    PENDING = "Pending"
    PULLING = "Pulling"
    INITIALIZING = "Initializing"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"
    DELETING = "Deleting"


MEANINGS: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.QUEUED: "waits for quota or for its turn in a queue",
        Phase.PENDING: "waits for nodes that have room for its pods",
        Phase.PULLING: "the nodes fetch the container image",
        Phase.INITIALIZING: "init containers run: code, data or settings are being prepared",
        Phase.RUNNING: "the training runs on all nodes",
        Phase.RESTARTING: "something failed; all nodes start again",
        Phase.SUSPENDED: "stopped on request; resume starts its pods anew",
        Phase.COMPLETE: "every node ended with success",
        Phase.FAILED: "ended without success; it will not be tried again",
        Phase.DELETING: "its objects are being removed",
    }
)

TERMINAL = frozenset({Phase.COMPLETE, Phase.FAILED})
"""The training is over; only deletion may follow."""

STARTING = frozenset({Phase.PENDING, Phase.PULLING, Phase.INITIALIZING})
"""Before the first step of an attempt; many pods share one phase, so the order varies."""

_ENDINGS = TERMINAL | {Phase.SUSPENDED, Phase.DELETING}
_EARLY = STARTING | {Phase.QUEUED}

MOVES: Mapping[Phase, frozenset[Phase]] = MappingProxyType(
    {
        **{
            phase: (_EARLY | _ENDINGS | {Phase.RUNNING, Phase.RESTARTING}) - {phase}
            for phase in _EARLY
        },
        # A queue may take its place back (Queued); pods that start again are Restarting.
        Phase.RUNNING: _ENDINGS | {Phase.RESTARTING, Phase.QUEUED},
        Phase.RESTARTING: _ENDINGS | {Phase.RUNNING, Phase.QUEUED},
        Phase.SUSPENDED: (_EARLY | _ENDINGS | {Phase.RUNNING, Phase.RESTARTING})
        - {Phase.SUSPENDED},
        Phase.COMPLETE: frozenset({Phase.DELETING}),
        Phase.FAILED: frozenset({Phase.DELETING}),
        Phase.DELETING: frozenset(),
    }
)
"""Legal moves between two observations; steps in between may have been missed."""


def can_move(before: Phase, after: Phase) -> bool:
    """Whether `after` may follow `before`; staying where one is is always legal."""
    return before == after or after in MOVES[before]


def next_phase(current: Phase | None, observed: Phase) -> Phase:
    """The phase of a job in `current`, now that `observed` was seen; always a legal move.

    A job that has run and whose pods are starting again is Restarting, not Pending. What
    contradicts the past (a finished job that seems to run: a stale answer) changes nothing.
    """
    if current is None or can_move(current, observed):
        return observed
    if current is Phase.RUNNING and observed in STARTING:
        return Phase.RESTARTING
    return current


def is_terminal(phase: Phase) -> bool:
    """Whether the training is over."""
    return phase in TERMINAL


def seed_state(phase: Phase, *, outcome: Phase | None = None) -> SeedState:
    """The summary of M24; `outcome` is how a job that is being deleted had ended."""
    decisive = outcome if phase is Phase.DELETING else phase
    if decisive is Phase.COMPLETE:
        return "Complete"
    return "Failed" if decisive is Phase.FAILED else "Running"


def is_expired(finished_at: float | None, ttl_seconds: int | None, now: float) -> bool:
    """Whether a job that ended at `finished_at` has outlived its time; times are seconds of one
    clock.

    A job that has not ended, or has no limit, never expires. A clock that went backwards only waits
    longer.
    """
    if finished_at is None or ttl_seconds is None:
        return False
    return now - finished_at >= ttl_seconds
