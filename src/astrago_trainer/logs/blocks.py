"""A log in blocks, forwards and backwards, by place (see `view`).

Never by mmap: training code that cuts its own log would then kill the server with SIGBUS.
"""

from __future__ import annotations

from collections.abc import Iterator

from astrago_trainer.logs.view import View

BLOCK = 1 << 16


def blocks(log: View, start: int, stop: int, size: int = BLOCK) -> Iterator[bytes]:
    """The bytes from one place to another, less when the file became shorter."""
    start = max(0, start)
    while start < stop:
        data = log.pread(min(size, stop - start), start)
        if not data:
            return
        start += len(data)
        yield data


def lines_back(log: View, end: int, lines: int, *, floor: int = 0) -> int:
    """Where the last `lines` lines before `end` begin, not before `floor`. Reads no more than these."""
    if lines <= 0 or end <= floor:
        return end
    stop = end - 1  # its last byte belongs to the last line, newline or not
    while stop > floor:
        begin = max(floor, stop - BLOCK)
        data = log.pread(stop - begin, begin)
        if not data:
            return stop  # dropped or cut off meanwhile: only what lies behind it is there
        found = data.count(b"\n")
        if found >= lines:
            at = len(data)
            for _ in range(lines):
                at = data.rfind(b"\n", 0, at)
            return begin + at + 1
        lines -= found
        stop = begin
    return floor
