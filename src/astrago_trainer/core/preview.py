"""The preview: what will run, who set each line of it, and everything that will refuse or surprise.

It stands where the API server stands: it starts from what people write, checks it, fills in defaults, merges as the
controller does, and looks at the outcome as JobSet and the kubelet would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.checks.api_server import check_runtime, check_trainjob
from astrago_trainer.core.checks.job_set import check_job_set
from astrago_trainer.core.checks.pods import check_pods
from astrago_trainer.core.checks.remedies import with_remedy
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge import CompiledRuntime, Merged, compile_runtime, merge
from astrago_trainer.core.merge.defaults import job_set_with_defaults, with_defaults
from astrago_trainer.core.merge.order import in_api_order
from astrago_trainer.core.merge.origins import Origin, Origins
from astrago_trainer.core.platform import PLATFORM

if TYPE_CHECKING:
    from astrago_trainer.core.platform import Platform
    from astrago_trainer.core.render import Rendered
    from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]

_MISFIT = "FieldValueTypeInvalid"

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ReadRuntime:
    """A runtime that was checked and compiled: what all its jobs share is done once for all of them."""

    manifest: Mapping[str, Any]
    version: str
    problems: tuple[Problem, ...]
    compiled: CompiledRuntime | None
    """None when it does not fit the types of the API."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What will run, and what stands against it: a preview without the origins of its lines."""

    objects: tuple[Json, ...]
    """The JobSet first, with the defaults it will be stored with; then what the operator makes beside it."""
    problems: tuple[Problem, ...]
    """Errors first."""
    provenance: Callable[[], dict[str, str]]
    """Reckons who set each leaf; a submit does not ask, and so does not pay for it."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a submit would lead to. No objects means that it would be refused."""

    version: str
    objects: tuple[Json, ...]
    """The JobSet first, with the defaults it will be stored with; then what the operator makes beside it."""
    problems: tuple[Problem, ...]
    """Errors first."""
    provenance: dict[str, str]
    """JSON pointer of each leaf (`/0/spec/…`) -> who set it."""

    @property
    def is_refused(self) -> bool:
        """Whether anything here keeps the job from running."""
        return any(problem.severity == "error" for problem in self.problems)


class _Any:
    """Holds every priority class: without a cluster nobody knows which exist."""

    def __contains__(self, _: object) -> bool:
        return True

    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


def preview_pair(
    runtime: Mapping[str, Any], trainjob: Mapping[str, Any], version: str = "2.1"
) -> Preview:
    """The preview of two manifests as people write them. Neither is changed."""
    return _shown(_outcome(read_runtime(runtime, version), trainjob), version)


def preview_job(spec: JobSpec, runtime: Mapping[str, Any], platform: Platform) -> Preview:
    """The preview of a job as a user asks for it; origins name the field of the request where there is one."""
    from astrago_trainer.core.render import render

    return preview_rendered(render(spec, runtime, platform), platform)


def preview_rendered(rendered: Rendered, platform: Platform) -> Preview:
    """The preview of exactly these objects: what is applied is what was shown."""
    version = platform.trainer_version
    return _shown(outcome_of(rendered, read_runtime(rendered.runtime, version)), version)


def read_runtime(runtime: Mapping[str, Any], version: str) -> ReadRuntime:
    """Checks the runtime as the API server would, and compiles it. It must not be changed afterwards."""
    problems = tuple(check_runtime(runtime, version))
    is_misfit = any(problem.code == _MISFIT for problem in problems)
    compiled = None if is_misfit else compile_runtime(runtime, version, defaults=True)
    return ReadRuntime(runtime, version, problems, compiled)


def outcome_of(rendered: Rendered, runtime: ReadRuntime) -> Outcome:
    """What these objects lead to on the runtime they refer to."""
    found = _outcome(
        runtime,
        rendered.trainjob,
        sources=rendered.sources,
        runtime_sources=rendered.runtime_sources,
    )
    return replace(found, problems=_sorted([*rendered.problems, *found.problems]))


def _shown(outcome: Outcome, version: str) -> Preview:
    return Preview(version, outcome.objects, outcome.problems, outcome.provenance())


def _outcome(
    runtime: ReadRuntime,
    trainjob: Mapping[str, Any],
    *,
    sources: Mapping[str, str] = NOTHING,
    runtime_sources: Mapping[str, str] = NOTHING,
) -> Outcome:
    version = runtime.version
    problems = [*check_trainjob(trainjob, version), *runtime.problems]
    merged = Merged((), ())
    is_misfit = any(problem.code == _MISFIT for problem in problems)
    if runtime.compiled is not None and not is_misfit:
        defaulted = _defaulted(trainjob, version)
        merged = merge(runtime.compiled, defaulted, version, priority_classes=_Any())
        problems += [
            with_remedy(problem, trainjob, runtime.manifest, version) for problem in merged.problems
        ]
    if not merged.objects:
        return Outcome((), _sorted(problems), dict)
    job_set = job_set_with_defaults(merged.objects[0], version, merged.origins)
    objects = (job_set, *merged.objects[1:])
    problems += check_job_set(job_set, version)
    problems += check_pods(job_set, runtime.manifest)
    is_suspend_written = (trainjob.get("spec") or {}).get("suspend") is not None

    def provenance() -> dict[str, str]:
        found = {
            pointer: _form_field(origin.path, sources)
            or _form_field(_runtime_path(pointer, origin), runtime_sources)
            or (origin.layer if is_suspend_written or origin.path != "spec.suspend" else "default")
            for pointer, origin in merged.origins.leaves(objects).items()
        }
        return dict(sorted(found.items()))

    shown = tuple(in_api_order(made, version) for made in objects)
    return Outcome(shown, _sorted(problems), provenance)


def _defaulted(trainjob: Mapping[str, Any], version: str) -> Json:
    return {
        **trainjob,
        "spec": with_defaults(
            trainjob.get("spec") or {}, "struct:trainer.v1alpha1.TrainJobSpec", version, Origins()
        ),
    }


def _runtime_path(pointer: str, origin: Origin) -> str:
    """The place in the runtime behind a leaf that came from there; positions are those of the result."""
    if origin.layer != "runtime":
        return ""
    steps = pointer.split("/")[2:]
    return "spec.template." + "".join(f"[{s}]" if s.isdigit() else f".{s}" for s in steps).lstrip(
        "."
    )


def _form_field(path: str, sources: Mapping[str, str]) -> str:
    """The field of the request behind a TrainJob path: its own, else that of the nearest part around it."""
    while path and sources:
        if path in sources:
            return "platform" if sources[path] == PLATFORM else f"form: {sources[path]}"
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return ""


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda problem: problem.severity != "error"))
