"""A file in blocks, forwards and backwards, by offset. Never by mmap: training code that cuts its own log would then
kill the server with SIGBUS."""

from __future__ import annotations

import os
from collections.abc import Iterator

BLOCK = 1 << 16


def blocks(fd: int, start: int, stop: int, size: int = BLOCK) -> Iterator[bytes]:
    """The bytes from start to stop, less when the file became shorter."""
    start = max(0, start)
    while start < stop:
        data = os.pread(fd, min(size, stop - start), start)
        if not data:
            return
        start += len(data)
        yield data


def lines_back(fd: int, end: int, lines: int, *, floor: int = 0) -> int:
    """Where the last `lines` lines before `end` begin, not before `floor`. Reads no more than these."""
    if lines <= 0 or end <= floor:
        return end
    stop = end - 1  # its last byte belongs to the last line, newline or not
    while stop > floor:
        begin = max(floor, stop - BLOCK)
        data = os.pread(fd, stop - begin, begin)
        found = data.count(b"\n")
        if found >= lines:
            at = len(data)
            for _ in range(lines):
                at = data.rfind(b"\n", 0, at)
            return begin + at + 1
        lines -= found
        stop = begin
    return floor
