"""Numbers out of a log at full speed, beside one regular expression per line as Katib's collector has it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from astrago_trainer.progress.picker import Picker
from bench.measure import comparison, interleaved

ROUNDS = 15
_LINES = 100_000
_RATE = 10_000
"""Lines a second that a log may bring; followers see it in ticks of 20 ms."""
_TICKS = 50
# Katib's default filter for `name=value` in text, with the space that our log has in its place.
_PEER = re.compile(r"([\w|-]+)\s*[= ]\s*([+-]?\d*(?:\.\d+)?(?:[Ee][+-]?\d+)?)")


def _loss(number: int) -> str:
    return f"2026-11-15 12:00:00 rank 0 step {number:08d} loss {number / 1e5:.6f} lr 0.001000\n"


def _words(number: int) -> str:
    return f"2026-11-15 12:00:00 worker {number} took request {chr(97 + number % 26)}{number} of somebody\n"


def _bar(number: int) -> str:
    return (
        f"\rTraining: {number % 100:3d}%|{'#' * (number % 10):<10}| {number}/{_LINES} "
        f"[00:{number % 60:02d}<00:04, 12.1it/s, loss=0.{number:06d}]"
    )


def run() -> Iterator[dict[str, Any]]:
    losses = _blocks(_loss)
    mine, theirs = interleaved(
        lambda: _LINES / _seconds(_pick, losses), lambda: _LINES / _seconds(_find, losses), ROUNDS
    )
    share = {
        name: round(sorted(_seconds(_pick, blocks) for _ in range(ROUNDS))[ROUNDS // 2] / _LINES * _RATE * 100, 2)
        for name, blocks in (("loss", losses), ("words", _blocks(_words)), ("bar", _blocks(_bar)))
    }  # fmt: skip
    yield {
        "id": "progress picker, a loss in every line",
        "unit": "lines/s",
        "goal": ">= 200,000: 5 % of a core at 10,000 lines/s",
        **comparison(mine, theirs),
        "peer_command": "re.findall on every line, as Katib's collector",
        "core_percent_at_10000_lines_s": share,
    }


def _blocks(line: Callable[[int], str]) -> list[bytes]:
    """A log in the pieces in which it is followed."""
    tick = _RATE // _TICKS
    return [
        "".join(map(line, range(first, first + tick))).encode() for first in range(0, _LINES, tick)
    ]


def _seconds(use: Callable[[list[bytes]], None], blocks: list[bytes]) -> float:
    start = time.process_time()
    use(blocks)
    return time.process_time() - start


def _pick(blocks: list[bytes]) -> None:
    picker, offset, last = Picker(attempt=0, rank=0), 0, None
    for block in blocks:
        points = picker.feed(offset, block, time=0.0).points
        last = points[-1] if points else last
        offset += len(block)
    if b"loss" in blocks[0] and last is None:
        raise RuntimeError("nothing was picked")


def _find(blocks: list[bytes]) -> None:
    found = 0
    for block in blocks:
        for line in block.decode().split("\n"):
            found += len(_PEER.findall(line))
    if not found:
        raise RuntimeError("nothing was found")
