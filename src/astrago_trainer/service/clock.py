"""What time it is, and how much has passed: two questions, because somebody may set the clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """`time` is for people; `steady` is the time at the start plus what has passed since, whatever the clock did."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        elapsed: Callable[[], float] | None = None,
    ) -> None:
        self._wall = wall
        self._elapsed = elapsed or _elapsed
        self._offset = wall() - self._elapsed()

    def time(self) -> float:
        """Seconds since 1970, as the machine has it now."""
        return self._wall()

    def steady(self) -> float:
        """Seconds since 1970 as of the start, counted on; sleep of the machine included."""
        return self._offset + self._elapsed()


def _elapsed() -> float:
    boot = getattr(
        time, "CLOCK_BOOTTIME", None
    )  # Linux; elsewhere a sleeping machine stops the count
    return time.monotonic() if boot is None else time.clock_gettime(boot)
