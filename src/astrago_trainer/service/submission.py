"""From a request to all that is stored of it: validated, rendered, previewed; nothing is written here."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic_core import to_json

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.names import check_namespace
from astrago_trainer.core.platform import Platform
from astrago_trainer.core.preview import (
    Outcome,
    Preview,
    ReadRuntime,
    outcome_of,
    preview_rendered,
    read_runtime,
)
from astrago_trainer.core.render import Rendered, render
from astrago_trainer.core.render.configmaps import code_digest
from astrago_trainer.core.render.runtime import name_limit
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.core.spec.check import CHECKPOINTS_LOST
from astrago_trainer.engines.base import Ability, Engine, IsLimited, KeepsClaims, Shortfall
from astrago_trainer.service.runtimes import Manifest

_NAMESPACES_KEPT = 256

T = TypeVar("T")


class Runner(Protocol):
    """Runs work that takes a while: a server gives it to a thread, in the caller's share."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


async def run_here(work: Callable[[], T], /) -> T:
    """For a process with one user."""
    return work()


@dataclass(frozen=True, slots=True)
class Plan:
    """A request that will run, and the texts to keep of it."""

    spec: JobSpec
    rendered: Rendered
    outcome: Outcome
    runtime: tuple[str, str]
    shared: tuple[str, str] | None
    objects: str
    """Without the shared one."""
    effective: str
    digest: str
    code_name: str | None
    code_digest: str | None
    max_restarts: int
    shortfall: Shortfall | None
    """What the engine has not; the job runs with less, or will be refused."""


class Planner:
    """Makes plans on one platform, in any thread; texts that many requests share are made once."""

    def __init__(
        self, platform: Platform, runtimes: Callable[[str], Manifest], engine: Engine
    ) -> None:
        """`runtimes` gives one by its name, and raises InvalidRequest for one that is not offered."""
        self.platform = platform
        self._load = runtimes
        self._engine = engine
        self._runtimes: dict[str, tuple[ReadRuntime, tuple[str, str]]] = {}
        self._shared: OrderedDict[tuple[str, str], tuple[str, str]] = OrderedDict()
        self._system = frozenset(each.name for each in platform.system_scripts)

    def runtime_of(self, spec: JobSpec) -> Mapping[str, Any]:
        has_git_code = spec.code is not None and spec.code.git is not None
        return self._load(
            self.platform.runtime_for(
                spec.framework, runtime=spec.runtime, has_git_code=has_git_code
            )
        )

    def name_limit(self, spec: JobSpec) -> int:
        """How long the job's name may be."""
        return name_limit(self.runtime_of(spec), spec.nodes)

    def rendered(self, spec: JobSpec) -> Rendered:
        """The objects that a submit would apply, before anything is merged."""
        return render(spec, self.runtime_of(spec), self.platform)

    def preview(self, namespace: str, spec: JobSpec) -> Preview:
        """What a submit would lead to, with all that would refuse it."""
        found = preview_rendered(self.rendered(spec), self.platform)
        problems = (*self._problems(namespace, spec), *self._here(found.problems))
        short = self.shortfall(found.objects[0]) if found.objects else None
        if short is not None:
            problems = (*problems, too_large(short))
        return Preview(found.version, found.objects, problems, found.provenance)

    def plan(self, namespace: str, spec: JobSpec, name: str, *, is_code_taken: bool) -> Plan:
        """Raises InvalidRequest with every error at once."""
        runtime = self.runtime_of(spec)
        rendered = render(spec, runtime, self.platform, name=name, is_code_name_taken=is_code_taken)
        known, text = self._read(runtime)
        is_own = rendered.runtime is not runtime
        outcome = outcome_of(
            rendered,
            read_runtime(rendered.runtime, self.platform.trainer_version) if is_own else known,
        )
        problems = (*self._problems(namespace, spec), *outcome.problems)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors or not outcome.objects:
            raise InvalidRequest(errors or problems)
        shared = next((each for each in rendered.objects if self._is_shared(each)), None)
        own = [each for each in rendered.objects if each is not shared]
        code = next((each for each in own if each["kind"] == "ConfigMap"), None)
        objects, effective = to_json(own).decode(), to_json(outcome.objects).decode()
        kept = None if shared is None else self._shared_text(shared, namespace)
        digest = hashlib.sha256(
            "\n".join((kept[0] if kept else "", objects, effective)).encode()
        ).hexdigest()
        return Plan(
            spec,
            rendered,
            outcome,
            text,
            kept,
            objects,
            effective,
            digest,
            None if code is None else code["metadata"]["name"],
            None if code is None or spec.code is None else code_digest(spec.code),
            _max_restarts(outcome.objects[0]),
            self.shortfall(outcome.objects[0]),
        )

    def shortfall(self, job_set: Mapping[str, Any]) -> Shortfall | None:
        """What the job asks for beyond all that the engine has; None when it fits, or that is not known."""
        engine = self._engine
        return engine.shortfall(job_set) if isinstance(engine, IsLimited) else None

    def origins(
        self, spec: JobSpec, runtime: Mapping[str, Any], name: str, effective: str
    ) -> dict[str, str]:
        """Who set each line of what runs; nothing when today's rules would not lead to the same any more."""
        for is_taken in (False, True):
            rendered = render(spec, runtime, self.platform, name=name, is_code_name_taken=is_taken)
            known = read_runtime(rendered.runtime, self.platform.trainer_version)
            outcome = outcome_of(rendered, known)
            if to_json(outcome.objects).decode() == effective:
                return outcome.provenance()
        return {}

    def _here(self, problems: Iterable[Problem]) -> list[Problem]:
        """Without what is true of other engines alone."""
        keeps = isinstance(self._engine, KeepsClaims)
        return [each for each in problems if not (keeps and each.code == CHECKPOINTS_LOST)]

    def _is_shared(self, each: Mapping[str, Any]) -> bool:
        return each["kind"] == "ConfigMap" and each["metadata"]["name"] in self._system

    def _problems(self, namespace: str, spec: JobSpec) -> list[Problem]:
        problems = check_namespace(namespace)
        if spec.namespace != namespace:
            problems.append(
                Problem(
                    "namespace",
                    "FieldValueInvalid",
                    f"must be {namespace}, where the request was sent; found {spec.namespace}.",
                    "Leave it out, or send the request to the other namespace.",
                )
            )
        if spec.suspend and Ability.SUSPEND not in self._engine.abilities:
            problems.append(
                Problem(
                    "suspend",
                    "FieldValueNotSupported",
                    f"the {self._engine.name} engine cannot suspend jobs.",
                    "Leave it out.",
                )
            )
        return problems

    def _read(self, runtime: Mapping[str, Any]) -> tuple[ReadRuntime, tuple[str, str]]:
        """Compiled, and its hash and JSON: made once for each runtime that is offered."""
        name = runtime["metadata"]["name"]
        known = self._runtimes.get(name)
        if known is None or known[0].manifest is not runtime:
            known = (read_runtime(runtime, self.platform.trainer_version), _hashed(runtime))
            self._runtimes[name] = known
        return known

    def _shared_text(self, scripts: Mapping[str, Any], namespace: str) -> tuple[str, str]:
        """The same of a System ConfigMap, which is long, and equal for all jobs of a namespace."""
        key = (scripts["metadata"]["name"], namespace)
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = _hashed(scripts)
            if len(self._shared) > _NAMESPACES_KEPT:
                self._shared.popitem(last=False)
        return found


def too_large(short: Shortfall) -> Problem:
    """A warning in any case: the job is accepted, and where it is refused, the engine says so."""
    return Problem(
        "resources",
        "job-refused-as-too-large" if short.is_refused else "job-larger-than-machine",
        f"{short}.",
        "Ask for less; all nodes count." if short.is_refused else "",
        severity="warning",
    )


def _hashed(value: Mapping[str, Any]) -> tuple[str, str]:
    text = to_json(value)
    return hashlib.sha256(text).hexdigest(), text.decode()


def _max_restarts(job_set: Mapping[str, Any]) -> int:
    found = job_set["spec"].get("failurePolicy") or {}
    return int(found.get("maxRestarts") or 0)
