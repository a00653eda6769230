"""When to try again: soon at first, then ever more rarely, for a day."""

from __future__ import annotations

FIRST_SECONDS = 10.0
LONGEST_SECONDS = 3600.0
GIVE_UP_SECONDS = 24 * 3600.0


def next_try(
    *, created_at: float, tries: int, now: float, chance: float, retry_after: float | None = None
) -> float | None:
    """The time of the next try after `tries` of them; None when its day is over.

    The pause doubles from 10 s to an hour and is shortened by up to half by `chance` (0 to 1), so that what failed at
    once does not come back at once. A receiver may ask for a longer one.
    """
    # Not 2**tries at once: after a thousand tries that is no float any more.
    pause = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(tries - 1, 16))
    pause = max(pause * (1 - chance / 2), retry_after or 0.0)
    due = now + pause
    return due if due < created_at + GIVE_UP_SECONDS else None
