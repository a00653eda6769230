"""A job that is larger than the machine: it runs with what there is, or is refused where a setting says so.

Pure. What merely does not fit now is the ledger's: it waits for its turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.engines.base import Amounts, Shortfall
from astrago_trainer.engines.local.plan import amounts_of

Json = dict[str, Any]

Oversize = Literal["squeeze", "refuse"]
OVERSIZES: tuple[Oversize, ...] = get_args(Oversize)
VARIABLE = "ASTRAGO_LOCAL_OVERSIZE"


def read_oversize(environment: Mapping[str, str]) -> Oversize:
    """Squeeze unless the setting says otherwise; raises InvalidRequest for an unknown value."""
    value = environment.get(VARIABLE) or "squeeze"
    for known in OVERSIZES:
        if value == known:
            return known
    text = f"must be one of {', '.join(OVERSIZES)}; found {value!r}."
    raise InvalidRequest([Problem(VARIABLE, "FieldValueNotSupported", text)])


def needs_of(job_set: Mapping[str, Any]) -> Json:
    """What all pods request together, which is counted: CPU in thousandths, memory in bytes, GPUs."""
    return _sum(job_set, {"cpu": ("cpu",), "memory": ("memory",), "gpus": ("gpus",)})


def _sum(job_set: Mapping[str, Any], sources: Mapping[str, tuple[str, ...]]) -> Json:
    """Over all containers, of each resource the largest of its amounts."""
    total = dict.fromkeys(sources, 0)
    for job in job_set["spec"].get("replicatedJobs", ()):
        spec = job["template"]["spec"]
        for container in spec["template"]["spec"].get("containers", ()):
            amounts = amounts_of(container)
            for key, names in sources.items():
                total[key] += spec.get("completions", 1) * max(amounts[name] for name in names)
    return total


def shortfall(
    job_set: Mapping[str, Any], needs: Json, machine: Json, oversize: Oversize
) -> Shortfall | None:
    """What the job asks for beyond this machine; None when it fits an empty machine."""
    has = {**machine, "gpus": len(machine["gpus"])}
    if all(needs[key] <= has[key] for key in needs):
        return None
    counts = [
        each["template"]["spec"].get("completions", 1) for each in job_set["spec"]["replicatedJobs"]
    ]
    # Groups of different pods have no amount "per node": they are added up.
    nodes = counts[0] if len(counts) == 1 else 1
    sizes = {"cpu": ("cpu", "cpu_limit"), "memory": ("memory", "memory_limit"), "gpus": ("gpus",)}
    asked = {key: value // nodes for key, value in _sum(job_set, sizes).items()}
    return Shortfall(
        asked=Amounts(asked["cpu"] / 1000, asked["memory"], asked["gpus"]),
        nodes=nodes,
        has=Amounts(has["cpu"] / 1000, has["memory"], has["gpus"]),
        is_refused=oversize == "refuse",
    )


def squeezed(needs: Json, machine: Json) -> Json:
    """What is counted of such a job: all of the machine, where it asks for more."""
    return {
        "cpu": min(needs["cpu"], machine["cpu"]),
        "memory": min(needs["memory"], machine["memory"]),
        "gpus": min(needs["gpus"], len(machine["gpus"])),
    }
