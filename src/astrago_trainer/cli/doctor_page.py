"""What the doctor found, in lines that fit the terminal: what is wrong stands out, and how to mend it stands below."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from astrago_trainer.cli.terminal import Terminal, clean, padded
from astrago_trainer.doctor.findings import State

if TYPE_CHECKING:
    from astrago_trainer.doctor.findings import Finding

_TITLES = {"local": "This machine, for the local engine", "kubernetes": "The cluster"}
_COLOURS = {State.OK: "green", State.WARNING: "yellow", State.WRONG: "red"}
_LABEL = len("warning") + 2
_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def doctor_page(engine: str, findings: Sequence[Finding], terminal: Terminal) -> list[str]:
    subjects = max((len(each.subject) for each in findings), default=0) + 2
    lines = [terminal.paint(_TITLES.get(engine, engine), "bold"), ""]
    for each in findings:
        lines += _lines(each, subjects, terminal)
    return [*lines, "", _summary(findings)]


def _lines(finding: Finding, subjects: int, terminal: Terminal) -> list[str]:
    from textwrap import wrap

    indent = _LABEL + subjects
    room = max(terminal.width - indent, 20)
    text = wrap(clean(finding.text), room, break_long_words=False, break_on_hyphens=False) or [""]
    label = terminal.paint(padded(finding.state.value, _LABEL), _COLOURS[finding.state])
    lines = [f"{label}{padded(finding.subject, subjects)}{text[0]}"]
    lines += [f"{'':{indent}}{line}" for line in text[1:]]
    for command in finding.mend:
        # One that has no room beside the text begins further left, and goes on as a shell would have it.
        start = indent if indent + 2 + len(command) <= terminal.width else _LABEL
        first, *rest = _continued(clean(command), terminal.width - start - 4)
        lines.append(f"{'':{start}}→ {terminal.paint(first, 'bold')}")
        lines += [f"{'':{start}}    {terminal.paint(each, 'bold')}" for each in rest]
    return lines


def _continued(command: str, room: int) -> list[str]:
    """Lines that can be copied together: broken between words, and never inside quotes."""
    lines = [""]
    for word in _WORD.findall(command):
        if lines[-1] and len(lines[-1]) + len(word) + 3 > room:
            lines[-1] += " \\"
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip()
    return lines


def _summary(findings: Sequence[Finding]) -> str:
    counts = Counter(each.state for each in findings)
    if not counts[State.WRONG] and not counts[State.WARNING]:
        return "All is well."
    warnings = counts[State.WARNING]
    told = [
        f"{counts[State.WRONG]} wrong" if counts[State.WRONG] else "Nothing is wrong",
        *([f"{warnings} warning{'s' * (warnings != 1)}"] if warnings else []),
        f"{counts[State.OK]} ok",
    ]
    return f"{', '.join(told)}."
