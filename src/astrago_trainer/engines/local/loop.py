"""Where the supervisor waits: for signals, for handles, for times. Nothing in here asks again and again."""

from __future__ import annotations

import heapq
import os
import select
import signal
import time
from collections.abc import Callable

Call = Callable[[], None]


class Loop:
    """One thread, one wait."""

    def __init__(self) -> None:
        self._timers: list[tuple[float, int, Call]] = []
        self._number = 0
        self._poll = select.epoll()
        self._calls: dict[int, Call] = {}

    def later(self, seconds: float, call: Call) -> None:
        """Calls it once, after so long."""
        self._number += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._number, call))

    def on_signals(self, calls: dict[int, Call]) -> None:
        """Calls what belongs to a signal, outside of any handler. Signals that would end us otherwise are ignored."""
        heard, told = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        for number in calls:
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)

        def hear() -> None:
            numbers = set(os.read(heard, 4096))
            for number, call in calls.items():
                if number in numbers:
                    call()

        self._calls[heard] = hear
        self._poll.register(heard, select.EPOLLIN)

    def wait(self) -> None:
        """Until something happens, and does what belongs to it."""
        timeout = -1.0
        if self._timers:
            timeout = max(0.0, self._timers[0][0] - time.monotonic())
        for handle, _ in self._poll.poll(timeout):
            self._calls[handle]()
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
