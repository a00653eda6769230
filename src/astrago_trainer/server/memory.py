"""Memory that is free inside the process, given back to the machine now and then.

A server that starts on a large cluster reads long lists and thousands of logs once. What that took is free afterwards,
but in pieces between others: glibc keeps those until it is asked, here up to a fifth of the process.
"""

from __future__ import annotations

import asyncio
import ctypes
from collections.abc import Callable

SECONDS = 10.0
"""Between two times: where nothing is to be given back one costs less than a millisecond, in a thread."""


async def give_back() -> None:
    """For ever; returns at once where the C library has no such call."""
    trim = _trim()
    while trim is not None:
        await asyncio.sleep(SECONDS)
        await asyncio.to_thread(trim, 0)


def _trim() -> Callable[[int], int] | None:
    try:
        found: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "malloc_trim", None)
    except OSError:
        return None
    return found
