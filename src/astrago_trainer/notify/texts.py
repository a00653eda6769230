"""A notice in words: a title, what happened, and the command that shows more.

Words from tenants are made harmless for every medium first: one line, no control characters, no direction marks, and
short. What a medium needs beyond that is done in `formats`.
"""

from __future__ import annotations

import shlex
import unicodedata
from typing import NamedTuple

from astrago_trainer.notify.notices import Kind, Notice

MAX_NAME = 100
MAX_MESSAGE = 500


class Text(NamedTuple):
    """All of it plain, in one line each; empty where there is nothing to say."""

    title: str
    reason: str
    message: str
    """What the training or the engine said."""
    facts: str
    command: str
    url: str


_VERBS: dict[Kind, str] = {
    "complete": "completed",
    "failed": "failed",
    "restarted": "was restarted",
}


def notice_to_text(notice: Notice) -> Text:
    job, namespace = plain(notice.job, MAX_NAME), plain(notice.namespace, MAX_NAME)
    return Text(
        title=f"Job {job} in {namespace} {_VERBS[notice.kind]}",
        reason=plain(notice.reason, MAX_NAME),
        message=plain(notice.message, MAX_MESSAGE),
        facts=_facts(notice),
        command=_command(notice.kind, job, namespace),
        url=plain(notice.url, MAX_MESSAGE),
    )


def plain(text: str, limit: int) -> str:
    """One line of visible characters, at most `limit` of them."""
    start = text[: limit * 4]  # whatever the rest is, it is not shown; the input may be megabytes
    visible = "".join(" " if _is_hidden(char) else char for char in start)
    line = " ".join(visible.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _is_hidden(char: str) -> bool:
    """Control characters, marks that turn the direction of text, halves of characters, unassigned ones."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def _facts(notice: Notice) -> str:
    facts = []
    if notice.kind == "restarted":
        facts.append(f"restart {notice.attempt} of at most {notice.max_restarts}")
    elif notice.attempt:
        facts.append(f"after {notice.attempt} restart{'s' if notice.attempt > 1 else ''}")
    if notice.duration_seconds is not None:
        facts.append(f"ran {_duration(notice.duration_seconds)}")
    return ", ".join(facts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    shown = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(shown[:2]) or "0 s"


def _command(kind: Kind, job: str, namespace: str) -> str:
    verb = {"complete": "status", "failed": "explain", "restarted": "logs -f"}[kind]
    return f"astrago {verb} {shlex.quote(job)} --namespace {shlex.quote(namespace)}"
