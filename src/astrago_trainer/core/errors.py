"""What can be wrong, said in one shape everywhere.

A `Problem` names one place; an exception carries all problems of a request at once. Exceptions are cut by what the
caller does next, and only the edges (command line, API) turn them into text, exit codes or HTTP answers.

AstragoError
├─ InvalidRequest      the input is wrong: show every problem, nothing was done
└─ Unreadable          the input could not even be parsed (YAML, JSON, size, encoding)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong (`error`) or will surprise (`warning`), and what to do about it."""

    path: str
    """Where: `spec.trainer.env`, `resources.cpu.request`; empty when the whole input is meant."""
    code: str
    """A word for programs: `FieldValueInvalid` and its siblings as Kubernetes spells them, else kebab-case of ours."""
    message: str
    """What was expected and what was found, in one sentence."""
    remedy: str = ""
    """The next step, where there is one."""
    severity: Severity = "error"

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        remedy = f" {self.remedy}" if self.remedy else ""
        return f"{where}{self.message}{remedy}"


MAX_PROBLEMS = 100
"""Listed of one input. A person corrects no more at a time, and each costs time to describe."""
MORE_PROBLEMS = "more-problems"
"""Code of the last entry of a list that was cut."""


def listed(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """At most MAX_PROBLEMS of them; where there are more, one more entry at the end says so."""
    known = [each for each in problems if each.code != MORE_PROBLEMS]
    if len(known) == len(problems) <= MAX_PROBLEMS:
        return tuple(known)
    shown = known[:MAX_PROBLEMS]
    more = Problem(
        "",
        MORE_PROBLEMS,
        f"there are more problems; the first {len(shown)} are listed.",
        "Correct these, then try again.",
        severity=shown[-1].severity if shown else "error",
    )
    return (*shown, more)


class AstragoError(Exception):
    """Base of everything this package raises on purpose."""


class InvalidRequest(AstragoError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """The input breaks rules; carries every problem that was found, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(p) for p in self.problems))


class Unreadable(InvalidRequest):
    """The input could not be parsed at all."""
