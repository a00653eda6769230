"""Ends that come again however often a process is started: a missing module or file, a syntax error, a refusal.

Read from the exit code and the last lines of the output. Strict on purpose: what is not surely the error that ended the
process is no reason to give up a restart. Standard library only: the supervisor's.
"""

from __future__ import annotations

import re

_ERRORS = (
    "ModuleNotFoundError|ImportError|SyntaxError|IndentationError|TabError"
    "|FileNotFoundError|PermissionError"
)
_RAISED = re.compile(rf"({_ERRORS})(:.*)?")
_REFUSED_START = re.compile(
    r"\S*python[0-9.]*: (can't open file|No module named|can't find '__main__' module) .*"
)
_RANK = re.compile(r"\[rank ?\d+\]:? ?")
"""What torch, and our launcher when asked, write before each line of a rank."""
_TORCHRUN_NOTICE = re.compile(
    r"(?:E\d{4} \S+ .*elastic/multiprocessing/api\.py.*|ERROR:torch\.distributed\.elastic.*)"
    r"failed \(exitcode: (-?\d+)\)"
)
_TORCHRUN_LINE = re.compile(r"[WEI]\d{4} |(?:WARNING|INFO|ERROR):torch\.distributed")
_PASSING = ("temporarily unavailable", "Cannot allocate memory", "No space left", "Too many open")
"""Why a start can fail today and succeed tomorrow."""
_SHOWN_LINES = 20
_NOT_STARTED = (126, 127)
"""As shells have them: it may not be run, it is not there."""


def permanent_error(code: int, said: str) -> str:
    """The last lines of the output, which end with the error that would come again; empty where there is none."""
    lines = [_RANK.sub("", line, count=1).rstrip() for line in said.splitlines()]
    code, lines = _before_torchrun(code, [line for line in lines if line])
    last = lines[-1] if lines else ""
    if code in _NOT_STARTED:
        is_permanent = not any(each in last for each in _PASSING)
    elif _REFUSED_START.fullmatch(last):
        is_permanent = code in (1, 2)
    else:
        # An error that ended a process follows the lines of its traceback; one that is only reported does not.
        is_raised = _RAISED.fullmatch(last) and len(lines) > 1 and lines[-2].startswith("  ")
        is_permanent = code == 1 and bool(is_raised)
    shown = "\n".join(lines[-_SHOWN_LINES:]) or f"exit code {code}"
    return shown if is_permanent else ""


def _before_torchrun(code: int, lines: list[str]) -> tuple[int, list[str]]:
    """torchrun says which process failed, and then raises an error of its own: what counts is before that."""
    found = [(at, each) for at, line in enumerate(lines) if (each := _TORCHRUN_NOTICE.match(line))]
    if not found or not any("ChildFailedError" in line for line in lines):
        return code, lines
    at, notice = found[-1]
    before = lines[:at]
    while before and _TORCHRUN_LINE.match(before[-1]):
        before.pop()
    return int(notice[1]), before
