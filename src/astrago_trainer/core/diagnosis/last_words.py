"""What a failed process said about its end, in a few lines: the exception if there is one, else its last lines.

The last line of the answer is the most telling one. Standard library only: the supervisor of a local job uses it.
"""

from __future__ import annotations

import re

from astrago_trainer.core.diagnosis.tracebacks import (
    MOST_LINE,
    MOST_MESSAGE,
    NOISE,
    decisive_error,
    find_errors,
    split_rank,
)

READ_BYTES = 64 * 1024
"""Of the end of a log that are looked at: a thousand calls deep is 80 KiB of traceback, most are far below."""
_MOST_TAIL = 400
_TELLING = tuple(
    re.compile(pattern)
    for pattern in (
        r".*Watchdog caught collective operation timeout: .*",
        r"  what\(\):  .*",
        r"Fatal Python error: .*",
        r"fatal: .*",
        r"\S*python[0-9.]*: (?:can't open file|No module named|can't find) .*",
        r"\S{1,200}: (?:line \d+: )?\S{1,200}: (?:command )?not found",
        r"(?:bash: line \d+: +\d+ )?(?:Segmentation fault|Bus error|Killed|Aborted).*",
    )
)
"""Lines that name a cause without a traceback, the most telling kind first."""


def last_words(text: str) -> str:
    """Of the end of an output; empty when it says nothing."""
    error = decisive_error(find_errors(text))
    if error is not None:
        lines = []
        if error.caused_by:
            lines.append(f"caused by {error.caused_by}")
        if error.frame is not None:
            place = f'File "{error.frame.file}", line {error.frame.line}'
            lines.append(f"{place}, in {error.frame.function}" if error.frame.function else place)
        return "\n".join([*lines, error.headline])
    lines = [split_rank(line[:MOST_LINE].rstrip())[1] for line in text.splitlines()]
    lines = [line for line in lines if line.strip()]
    for pattern in _TELLING:
        for line in reversed(lines):
            if pattern.fullmatch(line):
                return line.strip()[:MOST_MESSAGE]
    return _tail([line for line in lines if not NOISE.match(line)] or lines)


def _tail(lines: list[str]) -> str:
    """The last lines, as many as fit; of one that alone is too long the beginning, where errors are named."""
    kept: list[str] = []
    size = 0
    for line in reversed(lines):
        size += len(line) + 1
        if kept and size > _MOST_TAIL:
            break
        kept.append(line[:_MOST_TAIL])
    return "\n".join(reversed(kept)).strip()
