"""One job on one page: what it means first, then nodes and the last events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.cli.terminal import Terminal, clean, cut
from astrago_trainer.cli.words import (
    brief,
    clock,
    columns,
    duration,
    facts,
    folded,
    next_commands,
    phase_colour,
    seconds_since,
    shape,
    time_of_day,
    took,
    why,
)
from astrago_trainer.client.models import ENDED

Json = Mapping[str, Any]

_LAST_EVENTS = 5
_NEVER_STARTED = ("TooLarge", "Rejected")
"""Reasons of jobs that have no output."""
_MOST_PODS = 16
_NARROW = (12, 15, 15)
"""Columns of rank, node and address: with them the longest phase and some words fit a line of 80."""


def job_page(
    job: Json,
    pods: Sequence[Json],
    events: Sequence[Json],
    terminal: Terminal,
    *,
    flags: str,
    is_wide: bool,
) -> list[str]:
    name = clean(job["name"])
    phase = terminal.paint(job["phase"], "bold", phase_colour(job["phase"]))
    lines = [f"{terminal.paint(name, 'bold')}  {phase}", *facts(_facts(job, events), terminal)]
    if pods:
        lines += ["", *_pods(pods, terminal, is_wide=is_wide)]
    if events:
        shown = events if is_wide else events[-_LAST_EVENTS:]
        lines += ["", *event_table(shown, terminal)]
    is_over = job["phase"] in ENDED
    logs = (f"astrago logs {'' if is_over else '-f '}{name}{flags}", "its output")
    commands = [
        *([] if job["reason"] in _NEVER_STARTED else [logs]),
        (f"astrago explain {name}{flags}", "why, and what to do")
        if job["phase"] not in ("Complete", "Running")
        else (f"astrago metrics {name}{flags}", "loss and other numbers"),
    ]
    return [*lines, "", *next_commands(commands, terminal)]


def event_table(events: Sequence[Json], terminal: Terminal) -> list[str]:
    """Oldest first; the words give way."""
    rows = [
        [time_of_day(each["time"]), each["actor"], each["reason"], brief(each["message"])]
        for each in events
    ]
    return columns([["TIME", "WHO", "WHAT", "WORDS"], *rows], terminal)


def _facts(job: Json, events: Sequence[Json]) -> list[tuple[str, str]]:
    reason = clean(job["reason"])
    because = f"{reason}: {why(job)}" if reason else why(job)
    restarts = f"{job['restarts']} of {job['max_restarts']}"
    spent = duration(took(job))
    age = duration(seconds_since(job["created_at"]))
    original = job.get("cloned_from")  # a server of an earlier release does not tell
    ends = f"{clock(job['finished_at'])}, after {spent}" if job["finished_at"] else ""
    return [
        ("why", because),
        ("asked for", f"{job['framework']}, {shape(job)}, runtime {clean(job['runtime'])}"),
        ("got", _squeezed(events)),
        ("by", f"{clean(job['owner'])} in {clean(job['namespace'])}, {job['engine']} engine"),
        ("cloned from", clean(original["name"]) if original else ""),
        ("restarts", restarts if job["max_restarts"] or job["restarts"] else ""),
        ("run", str(job["run"]) if job["run"] > 1 else ""),
        ("accepted", f"{clock(job['created_at'])}, {age} ago"),
        ("started", clock(job["started_at"]) if job["started_at"] else ""),
        ("ended", ends),
    ]


def _squeezed(events: Sequence[Json]) -> str:
    """What the job did not get of what it asked for, in the engine's sentence; empty where it got all."""
    found = [each["message"] for each in events if each["reason"] == "Squeezed"]
    return f"less: {clean(str(found[-1]))}" if found else ""


def _pods(pods: Sequence[Json], terminal: Terminal, *, is_wide: bool) -> list[str]:
    """Those that failed first, where not all can be shown."""
    listed = sorted(pods, key=lambda each: (each["phase"] != "Failed", each["rank"]))
    shown = listed if is_wide else listed[:_MOST_PODS]
    heads = ["RANK", *(["POD"] if is_wide else []), "NODE", "ADDRESS", "PHASE", "EXIT", "WHY"]
    rows = [
        _pod_cells(each, is_wide=is_wide) for each in sorted(shown, key=lambda each: each["rank"])
    ]
    phase = heads.index("PHASE")
    colours = [{phase: "red"} if each[phase] == "Failed" else {} for each in rows]
    lines = columns([heads, *rows], terminal, colours=colours)
    rest = len(listed) - len(shown)
    return [*lines, *([f"… and {rest} more; -o wide shows all"] if rest else [])]


def _pod_cells(pod: Json, *, is_wide: bool) -> list[str]:
    """As `heads` of `_pods`; in a narrow page the place is cut, and the rank stands for the pod's name."""
    role = "" if pod["replicated_job"] == "node" else f" {pod['replicated_job']}"
    place = (f"{pod['rank']}{role}", pod.get("node") or "-", pod.get("address") or "-")
    rank, node, address = (
        place if is_wide else (cut(each, most) for each, most in zip(place, _NARROW, strict=True))
    )
    return [
        rank,
        *([pod["name"]] if is_wide else []),
        node,
        address,
        pod["phase"],
        "-" if pod["exit_code"] is None else str(pod["exit_code"]),
        pod["reason"].strip().replace("\n", "; "),
    ]


def event_list(events: Sequence[Json], terminal: Terminal) -> list[str]:
    """All of them with all of their words."""
    lines = []
    for each in events:
        head = f"{clock(each['time'])}  {terminal.paint(clean(each['reason']), 'bold')}"
        lines.append(f"{head}  {terminal.paint('by ' + clean(each['actor']), 'dim')}")
        text = clean(str(each["message"]).strip().replace("\n", "; "))
        lines += [f"    {line}" for line in folded(text, terminal, indent=4) if line]
    return lines
