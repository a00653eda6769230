"""The file of ASTRAGO_PLATFORM: what it decides, or every problem in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.platform import FRAMEWORKS
from astrago_trainer.core.platform_settings import PlatformSettings
from astrago_trainer.doctor.findings import Finding, counted, ok, wrong
from astrago_trainer.platform_file import VARIABLE, named_file, read_platform_file

SUBJECT = "platform"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformFacts:
    """What was found in the file; without one everything is empty."""

    path: Path | None = None
    settings: PlatformSettings | None = None
    problems: tuple[Problem, ...] = ()


def read_platform(runtimes: Sequence[str] | None) -> PlatformFacts:
    """`runtimes`: of an engine that has no others."""
    path = named_file()
    if path is None:
        return PlatformFacts()
    try:
        return PlatformFacts(path=path, settings=read_platform_file(path, runtimes=runtimes))
    except InvalidRequest as error:
        return PlatformFacts(path=path, problems=error.problems)


def check_platform(facts: PlatformFacts) -> list[Finding]:
    if facts.problems:
        return [wrong(SUBJECT, str(each)) for each in facts.problems]
    if facts.settings is None:
        return [ok(SUBJECT, f"built-in defaults; {VARIABLE} names no file")]
    return [ok(SUBJECT, f"{facts.path}: {', '.join(_decided(facts.settings)) or 'no settings'}")]


def _decided(settings: PlatformSettings) -> Iterator[str]:
    for framework in FRAMEWORKS:
        given = settings.of(framework)
        for name in (given.runtime, given.git_runtime, given.image):
            if name:
                yield f"{framework} on {name}"
        if given.images:
            yield f"{counted(len(given.images), 'image')} for {framework}"
    if settings.presets is not None:
        yield counted(len(settings.presets), "preset")
    if settings.allowed_host_paths:
        yield f"host paths {', '.join(settings.allowed_host_paths)}"
    for name in sorted(settings.limits.model_fields_set):
        yield f"limit of {name} {getattr(settings.limits, name)}"
    for name in sorted(settings.defaults.model_fields_set):
        yield f"{name} {getattr(settings.defaults, name)}"
