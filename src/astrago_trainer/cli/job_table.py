"""Jobs as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.cli.words import brief, columns, phase_colour, seconds_since, short, took

Json = Mapping[str, Any]


def job_table(
    jobs: Sequence[Json], terminal: Terminal, *, is_wide: bool, has_namespaces: bool
) -> list[str]:
    """Name, phase and why; the last column gives way."""
    heading = ["NAME", "PHASE", "NODES", "AGE", "TOOK", "WHY"]
    rows = [_row(job) for job in jobs]
    if is_wide:
        heading = [*heading[:5], "GPUS", "RESTARTS", "FRAMEWORK", "RUNTIME", "OWNER", "WHY"]
        rows = [
            [
                *row[:5],
                str(job["gpus_per_node"]),
                f"{job['restarts']}/{job['max_restarts']}",
                job["framework"],
                job["runtime"],
                job["owner"],
                row[5],
            ]
            for row, job in zip(rows, jobs, strict=True)
        ]
    shift = 0
    if has_namespaces:
        heading = ["NAMESPACE", *heading]
        rows = [[job["namespace"], *row] for row, job in zip(rows, jobs, strict=True)]
        shift = 1
    colours = [{1 + shift: phase_colour(job["phase"])} for job in jobs]
    return columns([heading, *rows], terminal, colours=colours)


def empty_list(namespace: str | None, is_filtered: bool) -> list[str]:
    place = "anywhere" if namespace is None else f"in the namespace {namespace}"
    if is_filtered:
        return [f"No such job {place}."]
    return [f"No jobs {place} yet. Begin one: astrago run train.py --nodes 2"]


def _row(job: Json) -> list[str]:
    return [
        job["name"],
        job["phase"],
        str(job["nodes"]),
        short(seconds_since(job["created_at"])),
        short(took(job)),
        _remark(job),
    ]


def _remark(job: Json) -> str:
    """Why, where that is not plain from the phase."""
    if job["phase"] in ("Running", "Complete"):
        restarts = job["restarts"]
        return f"{restarts} restart{'s' * (restarts != 1)}" if restarts else ""
    return brief(str(job["message"])) or str(job["meaning"])
