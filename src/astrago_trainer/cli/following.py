"""Follows a job to its end: why it waits, its lines, what became of it, and what to type next."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from astrago_trainer.cli import exits, words
from astrago_trainer.cli.screen import Screen
from astrago_trainer.cli.show import is_for_programs, show_value
from astrago_trainer.cli.terminal import Terminal, clean
from astrago_trainer.client.errors import NotFound
from astrago_trainer.client.models import LogQuery

if TYPE_CHECKING:
    from astrago_trainer.cli.doors import Door

Json = Mapping[str, Any]

_MOST_FAILURE_LINES = 6
_STEP = re.compile(r"\d %$")
_TOLD = ("Suspended", "Deleting")
_DOES = {
    "logs": "its output again",
    "restart": "try again from the beginning",
    "environments": "what is installed here",
    "clone": "begin a new job like it",
    "events": "what happened to it",
    "up": "a server that runs larger jobs with what there is",
}
"""What a command of `explain` does."""


def follow_job(
    door: Door, job: Json, *, query: LogQuery | None = None, output: str = "table"
) -> int:
    """The exit code: that of the job, or 101 when the user has seen enough; the job goes on then.

    With `json` or `yaml` there are no lines: the job goes to standard output, as it ended.
    """
    if is_for_programs(output):
        return _wait_quietly(door, job, output)
    query = query or LogQuery()
    screen = Screen(ranks=job["nodes"] if query.rank is None else 1)
    name = job["name"]
    seen: Json = job
    told = ""
    try:
        screen.status(_live(job))
        for news in door.follow(name, query):
            if isinstance(news, Mapping):
                _tell_change(screen, seen, news)
                seen = news
            elif news is None:
                told = _tell_waiting(screen, seen, told)
            else:
                screen.lines(news)
            screen.status(_live(seen))
        screen.finish()
    except KeyboardInterrupt:
        screen.finish()
        return detach(door, seen, screen)
    except NotFound:
        screen.finish()
        screen.say(f"{name} was deleted.")
        return exits.CANCELLED
    screen.say(*_result(door, seen, screen.err))
    return exits.of_phase(seen["phase"])


def _wait_quietly(door: Door, job: Json, output: str) -> int:
    seen = job
    try:
        for news in door.watch(job["name"]):
            seen = seen if news is None else news
    except NotFound:
        return exits.CANCELLED
    except KeyboardInterrupt:
        show_value(seen, output)
        return exits.NOT_FINISHED
    show_value(seen, output)
    return exits.of_phase(seen["phase"])


def wait_for(door: Door, name: str, reached: Callable[[Json], bool]) -> Json | None:
    """Until the job is as wished, with a living line meanwhile; None when it is gone."""
    screen = Screen()
    seen: Json | None = None
    try:
        for news in door.watch(name):
            seen = seen if news is None else news
            if seen is not None and reached(seen):
                break
            if seen is not None:
                screen.status(_live(seen))
        return seen
    except NotFound:
        return None
    finally:
        screen.finish()


def detach(door: Door, job: Json, screen: Screen) -> int:
    """Says that the job continues, and how to come back.

    Without its phase: the last one seen may be older than the lines on the screen.
    """
    name = clean(job["name"])
    screen.say(
        "",
        f"{name} continues without you.",
        *words.next_commands(
            [
                (f"astrago logs -f {name}{door.flags}", "come back"),
                (f"astrago delete {name}{door.flags}", "end it"),
            ],
            screen.err,
        ),
    )
    return exits.NOT_FINISHED


def accepted(door: Door, job: Json, terminal: Terminal) -> list[str]:
    """A job that begins, in one line; in another one what it asked for and will not get."""
    name = terminal.paint(clean(job["name"]), "bold")
    lines = [f"{name}: {job['framework']}, {words.shape(job)}, {job['engine']} engine"]
    if job["reason"] == "Squeezed":
        lines += words.folded(clean(str(job["message"])), terminal)
    return lines


def _tell_change(screen: Screen, before: Json, after: Json) -> None:
    """What a reader of the lines must know: they begin anew, or stop."""
    text = ""
    if (after["run"], after["attempt"]) != (before["run"], before["attempt"]):
        # Why is known only where it was seen between the two: a restart may be quicker than a look.
        seen = [each for each in (before, after) if each["phase"] == "Restarting"]
        reason = f": {words.why(seen[0])}" if seen else ""
        text = f"── attempt {after['attempt'] + 1} of {after['max_restarts'] + 1}{reason}"
    elif after["phase"] != before["phase"] and after["phase"] in _TOLD:
        text = f"── {after['phase']}: {words.why(after)}"
    if text:
        lines = words.folded(text, screen.err)
        screen.say(*(screen.err.paint(line, "yellow") for line in lines))


def _tell_waiting(screen: Screen, job: Json, told: str) -> str:
    """Where no line lives, why it waits is told once it does: after a second without news."""
    text = f"── {job['phase']}: {words.why(job)}"
    step = _STEP.sub("", text)  # of a progress in percent, each tenth is enough
    if screen.err.is_interactive or job["phase"] == "Running" or step == told:
        return told
    screen.say(*words.wrapped(text, screen.err.width))
    return step


def _live(job: Json) -> str:
    spent = words.seconds_since(job["started_at"] or job["created_at"])
    minutes, seconds = divmod(int(spent or 0), 60)
    return f"{job['phase']} {minutes}:{seconds:02}  {words.why(job)}"


def _result(door: Door, job: Json, terminal: Terminal) -> list[str]:
    name, phase = clean(job["name"]), job["phase"]
    time = words.duration(words.took(job))
    after = f" after {time}" if time else ""
    restarts = job["restarts"]
    again = f", with {restarts} restart{'s' * (restarts != 1)}" if restarts else ""
    if phase == "Complete":
        mark = terminal.paint("✓ Complete", "bold", "green")
        lines = [f"{mark}{after}{again}: {name}"]
        commands = [
            (f"astrago status {name}{door.flags}", "nodes, times, events"),
            (f"astrago metrics {name}{door.flags}", "loss and other numbers"),
            (f"astrago delete {name}{door.flags}", "remove it and its logs"),
        ]
    else:
        mark = terminal.paint(f"✗ {phase}", "bold", "red")
        lines = [f"{mark}{after}{again}: {name}"]
        headline, said = words.cause(str(job["message"]) or str(job["meaning"]))
        lines += _indented(": ".join(filter(None, (clean(job["reason"]), headline))), 2, terminal)
        for line in said[-_MOST_FAILURE_LINES:]:
            lines += _indented(line, 4, terminal)
        commands = [
            (f"astrago explain {name}{door.flags}", "why, and what to do"),
            *_next_steps(door, job),
        ]
    return [*lines, *words.next_commands(commands, terminal)]


def _next_steps(door: Door, job: Json) -> list[tuple[str, str]]:
    """What `explain` advises, each with what it does; nothing when the job is gone meanwhile."""
    try:
        steps = door.explain(job["name"])["next_steps"]
    except NotFound:
        return []
    named = f" --namespace {job['namespace']}"
    found = []
    for step in map(clean, steps):
        verb = next((each for each in step.split() if each in _DOES), "")
        found.append((step.replace(named, door.flags), _DOES.get(verb, "")))
    return found


def _indented(text: str, indent: int, terminal: Terminal) -> list[str]:
    return [f"{'':{indent}}{each}" for each in words.folded(text, terminal, indent=indent)]
