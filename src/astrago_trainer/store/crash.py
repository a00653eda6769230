"""Named points between the steps that a crash may separate.

Every write and every call of an engine has one before and one after it. In production nobody listens, and a point costs
one comparison; a test sets `listener` in a process of its own and kills that one there.
"""

from __future__ import annotations

from collections.abc import Callable

listener: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Tells whoever listens that this point is reached."""
    if listener is not None:
        listener(name)
