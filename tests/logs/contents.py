"""What may be in a log: generated contents, and the plain meaning of lines to compare with."""

from __future__ import annotations

import re

from hypothesis import settings
from hypothesis import strategies as st

untimed = settings(deadline=None)
"""Disks are shared: how long one example takes says nothing."""


class Content(bytes):
    """Bytes that are printed by their pieces."""

    pieces: list[bytes]

    def __new__(cls, pieces: list[bytes]) -> Content:
        content = super().__new__(cls, b"".join(pieces))
        content.pieces = pieces
        return content

    def __repr__(self) -> str:
        shown = [
            repr(piece) if len(piece) < 200 else f"{piece[:10]!r}…{len(piece)}"
            for piece in self.pieces
        ]
        return f"Content([{', '.join(shown)}])"


PIECES = (
    b"\n", b"\n", b"\n\n", b"\r", b"\r\n", b"\r\r", b"a", b"loss 0.5", b" 10%\r 20%", b"\x1b[K", b"\0",
    "é".encode(), "한국".encode(), "🙂".encode(), b"\xff", b"\xe0", b"\xf0\x9f", b"\x80",
)  # fmt: skip
small = st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join)
fillers = st.builds(
    lambda unit, length: (unit * length)[:length],
    st.sampled_from([b"x", b"word word\n", b"bar\r", b"\n"]),
    st.integers(65536 - 6, 65536 + 6),
)
big = st.lists(st.one_of(small, small, fillers), max_size=5).map(Content)
"""Interesting places around the borders of the 64 KiB blocks in which files are read, from both ends."""


def lines_of(content: bytes) -> list[bytes]:
    lines = content.split(b"\n")
    return lines if lines[-1] else lines[:-1]


def ends_of(content: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", content)


def as_shown(line: bytes) -> bytes:
    return re.sub(rb"\r+\Z", b"", line).split(b"\r")[-1]


# The pauses are the load, not a wait for anything: 10,000 lines a second, each written by itself.
WRITER = """
import os, sys, time
start, lines = time.monotonic(), int(sys.argv[1])
for number in range(lines):
    ahead = start + number / 10_000 - time.monotonic()
    if ahead > 0:
        time.sleep(ahead)
    os.write(1, b"%d line %d of a training that says much\\n" % (time.time_ns(), number))
"""
