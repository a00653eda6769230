"""The preview: what will run, who set each line of it, and everything that will refuse or surprise.

It stands where the API server stands: it starts from what people write, checks it, fills in defaults, merges as the
controller does, and looks at the outcome as JobSet and the kubelet would.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.checks.api_server import check_runtime, check_trainjob
from astrago_trainer.core.checks.job_set import check_job_set
from astrago_trainer.core.checks.pods import check_pods
from astrago_trainer.core.checks.remedies import with_remedy
from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge import Merged, compile_runtime, merge
from astrago_trainer.core.merge.defaults import job_set_with_defaults, with_defaults
from astrago_trainer.core.merge.order import in_api_order
from astrago_trainer.core.merge.origins import Origin, Origins

if TYPE_CHECKING:
    from astrago_trainer.core.platform import Platform
    from astrago_trainer.core.render import Rendered
    from astrago_trainer.core.spec import JobSpec

Json = dict[str, Any]

NOTHING: Mapping[str, str] = MappingProxyType({})


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
    return _preview(runtime, trainjob, version)


def preview_job(spec: JobSpec, runtime: Mapping[str, Any], platform: Platform) -> Preview:
    """The preview of a job as a user asks for it; origins name the field of the request where there is one."""
    from astrago_trainer.core.render import render

    return preview_rendered(render(spec, runtime, platform), platform)


def preview_rendered(rendered: Rendered, platform: Platform) -> Preview:
    """The preview of exactly these objects: what is applied is what was shown."""
    preview = _preview(
        rendered.runtime,
        rendered.trainjob,
        platform.trainer_version,
        sources=rendered.sources,
        runtime_sources=rendered.runtime_sources,
    )
    return replace(preview, problems=_sorted([*rendered.problems, *preview.problems]))


def _preview(
    runtime: Mapping[str, Any],
    trainjob: Mapping[str, Any],
    version: str,
    *,
    sources: Mapping[str, str] = NOTHING,
    runtime_sources: Mapping[str, str] = NOTHING,
) -> Preview:
    problems = [*check_trainjob(trainjob, version), *check_runtime(runtime, version)]
    merged = Merged((), ())
    if not any(problem.code == "FieldValueTypeInvalid" for problem in problems):
        compiled = compile_runtime(runtime, version, defaults=True)
        merged = merge(compiled, _defaulted(trainjob, version), version, priority_classes=_Any())
        problems += [
            with_remedy(problem, trainjob, runtime, version) for problem in merged.problems
        ]
    if not merged.objects:
        return Preview(version, (), _sorted(problems), {})
    job_set = job_set_with_defaults(merged.objects[0], version, merged.origins)
    objects = (job_set, *merged.objects[1:])
    problems += check_job_set(job_set, version)
    problems += check_pods(job_set, runtime)
    is_suspend_written = (trainjob.get("spec") or {}).get("suspend") is not None
    provenance = {
        pointer: _form_field(origin.path, sources)
        or _form_field(_runtime_path(pointer, origin), runtime_sources)
        or (origin.layer if is_suspend_written or origin.path != "spec.suspend" else "default")
        for pointer, origin in merged.origins.leaves(objects).items()
    }
    shown = tuple(in_api_order(made, version) for made in objects)
    return Preview(version, shown, _sorted(problems), dict(sorted(provenance.items())))


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
            return f"form: {sources[path]}"
        cut = max(path.rfind("."), path.rfind("["))
        path = path[:cut] if cut > 0 else ""
    return ""


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    unique = dict.fromkeys(problems)
    return tuple(sorted(unique, key=lambda problem: problem.severity != "error"))
