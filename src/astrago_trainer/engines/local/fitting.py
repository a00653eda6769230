"""A job that is larger than the whole machine: it would wait for ever, so it is refused, or runs with what there is.

Pure. What merely does not fit now is the ledger's: it waits for its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from astrago_trainer.core.errors import InvalidRequest, Problem

Json = dict[str, Any]

Oversize = Literal["refuse", "squeeze"]
OVERSIZES: tuple[Oversize, ...] = get_args(Oversize)
VARIABLE = "ASTRAGO_LOCAL_OVERSIZE"


def read_oversize(environment: Mapping[str, str]) -> Oversize:
    """Raises InvalidRequest for a word that it does not know."""
    word = environment.get(VARIABLE) or "refuse"
    for known in OVERSIZES:
        if word == known:
            return known
    text = f"must be one of {', '.join(OVERSIZES)}; found {word!r}."
    raise InvalidRequest([Problem(VARIABLE, "FieldValueNotSupported", text)])


def needs_of(plan: Json) -> Json:
    """What all pods ask for together: CPU in thousandths, memory in bytes, GPUs."""
    return {
        key: sum(
            group["count"] * container[key]
            for group in plan["groups"]
            for container in group["pod"]["containers"]
        )
        for key in ("cpu", "memory", "gpus")
    }


def excess(needs: Json, machine: Json) -> list[str]:
    """What this machine will never have, in numbers; empty when the job fits an empty machine."""
    told = []
    for key, unit, what in (("cpu", 1000, "CPU"), ("memory", 2**30, "GiB of memory")):
        if needs[key] > machine[key]:
            told.append(
                f"{needs[key] / unit:.4g} {what} asked for, {machine[key] / unit:.4g} there"
            )
    if needs["gpus"] > len(machine["gpus"]):
        told.append(f"{needs['gpus']} GPU asked for, {len(machine['gpus'])} there")
    return told


def refusal(told: list[str]) -> str:
    return (
        f"this machine is too small for the job: {'; '.join(told)}. Ask for less (nodes count too), or set "
        f"{VARIABLE}=squeeze where astrago runs: then such jobs run with what there is."
    )


def squeezed(needs: Json, machine: Json) -> Json:
    """What is counted of such a job: all of the machine, where it asks for more."""
    return {
        "cpu": min(needs["cpu"], machine["cpu"]),
        "memory": min(needs["memory"], machine["memory"]),
        "gpus": min(needs["gpus"], len(machine["gpus"])),
    }


def note(told: list[str]) -> str:
    return f"it runs with what this machine has: {'; '.join(told)}"
