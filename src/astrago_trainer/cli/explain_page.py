"""Why a job is as it is: the summary, what failed, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from astrago_trainer.cli.terminal import Terminal, clean
from astrago_trainer.cli.words import cause, folded, phase_colour, readable

_MOST_CAUSES = 8
_MOST_LINES = 12


def explain_page(name: str, found: Mapping[str, Any], terminal: Terminal) -> list[str]:
    phase = terminal.paint(found["phase"], "bold", phase_colour(found["phase"]))
    lines = [f"{terminal.paint(clean(name), 'bold')}  {phase}"]
    headline, said = cause(str(found["message"]))
    reason = ": ".join(filter(None, (clean(found["reason"]), headline)))
    meaning = str(found["meaning"])
    for text in (f"{meaning[:1].upper()}{meaning[1:]}.", reason):
        lines += [f"  {each}" for each in folded(clean(text), terminal, indent=2) if each]
    for text in said[-_MOST_LINES:]:
        lines += [f"    {each}" for each in folded(text, terminal, indent=4)]
    short = found.get("shortfall")  # a server of an earlier release does not say
    if short and not short["is_refused"] and found["reason"] != "TooLarge":  # it never ran
        text = clean(short["message"])
        lines += [
            f"  {each}" for each in folded(f"{text[:1].upper()}{text[1:]}.", terminal, indent=2)
        ]
    causes = sorted(found["causes"], key=lambda each: (each["exit_code"] is None, each["rank"]))
    if causes:
        lines += ["", "What ended badly"]
        for each in causes[:_MOST_CAUSES]:
            code = "" if each["exit_code"] is None else f" with exit code {each['exit_code']}"
            why = readable(str(each["reason"]).strip().replace("\n", "; "))
            lines.append(
                f"  rank {each['rank']} ({clean(each['pod'])}) ended{code}"
                + (f": {why}" if why else "")
            )
        if len(causes) > _MOST_CAUSES:
            lines.append(f"  … and {len(causes) - _MOST_CAUSES} more")
    if found["next_steps"]:
        lines += ["", "What to do"]
        lines += [f"  {terminal.paint(clean(each), 'bold')}" for each in found["next_steps"]]
    return lines
