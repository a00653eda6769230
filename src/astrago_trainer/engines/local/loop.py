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

    def on_readable(self, handle: int, call: Call) -> None:
        """Calls it whenever there is something to read."""
        self._calls[handle] = call
        self._poll.register(handle, select.EPOLLIN)

    def pause(self, handle: int, seconds: float) -> None:
        """Not before so long."""
        call = self._calls.get(handle)
        if call is None:
            return
        self._poll.modify(handle, 0)

        def go_on() -> None:
            if self._calls.get(handle) is call:
                self._poll.modify(handle, select.EPOLLIN)

        self.later(seconds, go_on)

    def close(self) -> None:
        """In a fork that has no use for it."""
        self._poll.close()

    def forget(self, handle: int) -> None:
        if self._calls.pop(handle, None) is not None:
            self._poll.unregister(handle)

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

        self.on_readable(heard, hear)

    def wait(self) -> None:
        """Until something happens, and does what belongs to it."""
        timeout = -1.0
        if self._timers:
            timeout = max(0.0, self._timers[0][0] - time.monotonic())
        for handle, _ in self._poll.poll(timeout):
            call = self._calls.get(handle)  # one that was called before may have forgotten this one
            if call is not None:
                call()
        while self._timers and self._timers[0][0] <= time.monotonic():
            heapq.heappop(self._timers)[2]()
