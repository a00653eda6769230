"""Patterns of users' own, for lines that `reader` does not understand.

A pattern is a regular expression with named groups: `epoch`, `epochs`, `step`, `steps`, `percent` and `remaining` (in
seconds) say how far the training is; `name` and `value` together give a value to the series that is named there; any
other group is a series of its name. They come from tenants, so they are run by RE2, whose time is linear in the line:
what would make it worse (references to groups, looking around) it does not know. What is linear can still be slow, so
the size of a pattern is limited, and one that costs too much is switched off.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.progress.names import series_name
from astrago_trainer.progress.reader import Reading, finite

MAX_PATTERNS = 8
MAX_PATTERN = 300
"""Characters."""
MAX_LINE = 500
"""Characters of a line that patterns are given: with the largest pattern, 3 ms."""

_MEMORY = 1 << 15
"""Bytes of a compiled pattern; RE2 refuses a larger one. Time grows with it: a{1,1000} is a thousand states."""
_FREE_SECONDS = 0.05
_SECONDS_PER_LINE = 1e-4
"""What a pattern may cost a line on average, beyond the free ones; usual is a tenth of it."""
_PLACES = frozenset({"epoch", "epochs", "step", "steps", "percent", "remaining"})
_NUMBER = re.compile(
    r"[-+]?(?:\d{1,24}(?:\.\d{0,24})?|\.\d{1,24})(?:[eE][-+]?\d{1,4})?|[-+]?(?:nan|inf)", re.I
)


class Patterns:
    """Compiled patterns and what they have cost; one object per log."""

    def __init__(self, expressions: Sequence[str]) -> None:
        """Raises InvalidRequest with everything that is wrong with them."""
        problems = check_patterns(expressions)
        if problems:
            raise InvalidRequest(problems)
        self._active = [_Pattern(expression, _compile(expression)) for expression in expressions]
        self.switched_off: list[str] = []
        """Patterns that cost too much on this log."""

    def __bool__(self) -> bool:
        return bool(self._active)

    def read_line(self, line: str) -> Reading | None:
        """What the first pattern that matches says; None when none does."""
        for pattern in self._active:
            reading = pattern.read(line[:MAX_LINE])
            if pattern.is_too_slow:
                self._active = [each for each in self._active if each is not pattern]
                self.switched_off.append(pattern.expression)
            if reading is not None and reading.says_something:
                return reading
        return None


def check_patterns(expressions: Sequence[str], path: str = "patterns") -> tuple[Problem, ...]:
    """Everything that is wrong with patterns somebody wants to use."""
    if len(expressions) > MAX_PATTERNS:
        message = f"at most {MAX_PATTERNS} patterns are used, {len(expressions)} were given."
        return (Problem(path, "too-many", message, "Join some of them with |."),)
    return tuple(
        problem
        for index, expression in enumerate(expressions)
        if (problem := _check(expression, f"{path}[{index}]")) is not None
    )


class _Pattern:
    def __init__(self, expression: str, compiled: Any) -> None:
        self.expression = expression
        self._search = compiled.search
        self._seconds = 0.0
        self._lines = 0

    @property
    def is_too_slow(self) -> bool:
        return self._seconds > _FREE_SECONDS + self._lines * _SECONDS_PER_LINE

    def read(self, line: str) -> Reading | None:
        start = time.thread_time()
        found = self._search(line)
        self._seconds += time.thread_time() - start
        self._lines += 1
        return None if found is None else _groups_to_reading(found.groupdict())


def _groups_to_reading(groups: dict[str, str | None]) -> Reading:
    numbers = {
        name: finite(text)
        for name, text in groups.items()
        if text is not None and name != "name" and _NUMBER.fullmatch(text)
    }
    reading = Reading(
        epoch=_whole(numbers.get("epoch")),
        epochs=_whole(numbers.get("epochs")),
        step=_whole(numbers.get("step")),
        steps=_whole(numbers.get("steps")),
        remaining_seconds=numbers.get("remaining"),
    )
    if (percent := numbers.get("percent")) is not None:
        reading.fraction = percent / 100
    for name, value in numbers.items():
        series = series_name((groups.get("name") or "") if name == "value" else name)
        if name not in _PLACES and series:
            reading.values[series] = value
    return reading


def _whole(number: float | None) -> int | None:
    return int(number) if number is not None and 0 <= number < 10**12 else None


def _check(expression: str, path: str) -> Problem | None:
    if len(expression) > MAX_PATTERN:
        message = f"a pattern has at most {MAX_PATTERN} characters, this one has {len(expression)}."
        return Problem(
            path, "too-long", message, "Match less: what stands around the numbers is enough."
        )
    try:
        compiled = _compile(expression)
    except ValueError as error:
        remedy = "Patterns are those of RE2: no references to groups, no looking ahead or behind, no large repetitions."
        return Problem(path, "bad-pattern", f"{expression!r} is no pattern: {error}.", remedy)
    names = set(compiled.groupindex)
    if not names:
        remedy = r"Name what is to be kept, as in: loss of (?P<loss>\S+)"
        return Problem(path, "no-group", f"{expression!r} has no named group.", remedy)
    if ("name" in names) != ("value" in names):
        remedy = r"Use both, as in: (?P<name>\w+) is (?P<value>\S+)"
        return Problem(path, "half-pair", f"{expression!r} has only one of name and value.", remedy)
    return None


def _compile(expression: str) -> Any:
    """Raises ValueError with RE2's reason."""
    import re2  # here, because only who has patterns of their own should pay for it

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason = error.args[0] if error.args else "unknown"
        raise ValueError(
            reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        ) from error
    except UnicodeEncodeError as error:  # a lone surrogate
        raise ValueError("it is no Unicode text") from error
