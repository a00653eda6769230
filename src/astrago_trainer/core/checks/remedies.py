"""What to do about a refusal. The controller's words say what is wrong; these say where the value belongs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.model import OVERRIDES

Json = Mapping[str, Any]

_RESERVED_CONTAINERS = ("dataset-initializer", "model-initializer", "node")


def with_remedy(problem: Problem, trainjob: Json, runtime: Json, version: str) -> Problem:
    """The same problem with the next step, where we know one."""
    if problem.remedy:
        return problem
    remedy = _remedy(problem, trainjob, runtime, version)
    return replace(problem, remedy=remedy) if remedy else problem


def _remedy(problem: Problem, trainjob: Json, runtime: Json, version: str) -> str:
    text = problem.message
    if "must not have envs for" in text:
        return _move_env(trainjob, version)
    if "must not have targetJob" in text or "must not have replicated job" in text:
        return f"The runtime has these jobs: {', '.join(_job_names(runtime)) or 'none'}."
    if "must not have reserved envs" in text or "is reserved for" in text:
        return "The operator sets these itself; remove them, and use numNodes or numProcPerNode instead."
    if "must be created before the TrainJob" in text:
        name = (runtime.get("metadata") or {}).get("name")
        return f"The given runtime is called {name!r}; spec.runtimeRef must name it, and it must be installed first."
    if "must have an int value" in text:
        return "Give a number of processes."
    if "when trainJob is configured with input" in text:
        return "Choose a runtime with that job (the torchtune ones have it), or remove spec.initializer."
    return ""


def _move_env(trainjob: Json, version: str) -> str:
    found = list(_override_envs(trainjob, version))
    names = ", ".join(name for _, name in found)
    places = ", ".join(dict.fromkeys(path for path, _ in found))
    return f"Move {names} from {places} to spec.trainer.env." if found else "Use spec.trainer.env."


def _override_envs(trainjob: Json, version: str) -> Iterator[tuple[str, str]]:
    field = OVERRIDES[version]
    for index, override in enumerate((trainjob.get("spec") or {}).get(field) or ()):
        for path, pod in _override_pods(override, f"spec.{field}[{index}]"):
            for nth, container in enumerate(pod.get("containers") or ()):
                if container.get("name") in _RESERVED_CONTAINERS:
                    for entry in container.get("env") or ():
                        yield f"{path}.containers[{nth}].env", str(entry.get("name"))


def _override_pods(override: Json, path: str) -> Iterator[tuple[str, Json]]:
    if override.get("spec"):
        yield f"{path}.spec", override["spec"]
    template = (override.get("trainingRuntimeSpec") or {}).get("template") or {}
    for index, job in enumerate((template.get("spec") or {}).get("replicatedJobs") or ()):
        pod = ((job.get("template") or {}).get("spec") or {}).get("template") or {}
        if pod.get("spec"):
            where = f"{path}.trainingRuntimeSpec.template.spec.replicatedJobs[{index}].template.spec.template.spec"
            yield where, pod["spec"]


def _job_names(runtime: Json) -> list[str]:
    template = (runtime.get("spec") or {}).get("template") or {}
    return [
        str(job.get("name")) for job in (template.get("spec") or {}).get("replicatedJobs") or ()
    ]
