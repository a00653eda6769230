"""JobSpec, runtime and platform in; the objects to apply out, with the origin of every line.

Pure and deterministic: the same input gives the same bytes. A request with problems is rendered as
far as possible, so that a preview can show both; whoever applies the objects looks at `problems`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.names import code_configmap_name, job_name
from astrago_trainer.core.platform import Platform
from astrago_trainer.core.render.command import build_command
from astrago_trainer.core.render.configmaps import (
    MANAGED_BY,
    USER_LABEL,
    code_configmap,
    code_digest,
    system_configmap,
)
from astrago_trainer.core.render.draft import Draft, Path
from astrago_trainer.core.render.owned import find_own_runtime
from astrago_trainer.core.render.pods import put_pod_changes
from astrago_trainer.core.render.problems import check_rendered
from astrago_trainer.core.render.runtime import API_VERSION, GROUP, name_limit, view_runtime
from astrago_trainer.core.render.trainer import put_trainer
from astrago_trainer.core.spec import JobSpec, check_job_spec

Json = dict[str, Any]

TTL_ANNOTATION = "trainer.astrago.io/ttl-seconds-after-finished"
HASH_ANNOTATION = "trainer.astrago.io/spec-hash"


@dataclass(frozen=True, slots=True)
class Rendered:
    """What a request becomes."""

    objects: tuple[Json, ...]
    """In the order to apply them; the TrainJob is last."""
    trainjob: Json
    runtime: Mapping[str, Any]
    """The runtime the TrainJob refers to: the very one that was given, or the copy that the job owns."""
    sources: Mapping[str, str]
    """Path in the TrainJob -> field of the request; what the platform adds is absent."""
    runtime_sources: Mapping[str, str]
    """The same for the copy of the runtime."""
    problems: tuple[Problem, ...]


def render(
    spec: JobSpec,
    runtime: Mapping[str, Any],
    platform: Platform,
    *,
    name: str | None = None,
    code_name: str | None = None,
    is_code_name_taken: bool = False,
) -> Rendered:
    """The objects for `spec` on this runtime.

    `name` is the job's, else the request's, else a placeholder of the right length. `code_name` is
    the code ConfigMap's, else `{user}-train-script`, with a hash where that name is taken (X4).
    """
    view = view_runtime(runtime)
    job = name or spec.name or _placeholder(spec, runtime)
    scripts = platform.scripts_for(view.name, spec.framework)
    own, runtime_sources = find_own_runtime(spec, runtime, platform, job=job)
    command = build_command(spec, platform, runtime=view.name, scripts=scripts)
    code = _code_configmap(spec, code_name=code_name, is_taken=is_code_name_taken)

    draft = Draft()
    _put_metadata(draft, spec, platform, job=job)
    _put_runtime_ref(draft, own or runtime)
    put_trainer(draft, spec, view, platform, command=command)
    put_pod_changes(
        draft,
        spec,
        view,
        platform,
        scripts=scripts,
        code_name=code["metadata"]["name"] if code else "",
    )
    _put_life(draft, spec, platform)

    system = system_configmap(scripts, spec.namespace) if scripts is not None else None
    problems = (
        *check_job_spec(spec, platform),
        *check_rendered(
            spec,
            view,
            platform,
            trainjob=draft.value,
            is_own=own is not None,
            starts_processes=command.starts_processes,
            scripts=scripts,
        ),
    )
    return Rendered(
        objects=tuple(each for each in (system, code, own, draft.value) if each is not None),
        trainjob=draft.value,
        runtime=own if own is not None else runtime,
        sources=draft.sources,
        runtime_sources=runtime_sources,
        problems=problems,
    )


def spec_hash(spec: JobSpec) -> str:
    """A hash of what was asked for; fields left at their default do not count."""
    data = spec.model_dump(mode="json", exclude_defaults=True)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def owner_reference(trainjob_name: str, uid: str) -> Json:
    """Makes an object go with its TrainJob, once that exists.

    Never a controller, for several jobs may own one ConfigMap, and never blocking: up to Trainer
    2.2 a runtime waits for its TrainJob to go, and each would wait for the other.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainJob",
        "name": trainjob_name,
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _placeholder(spec: JobSpec, runtime: Mapping[str, Any]) -> str:
    return job_name(spec.user, "0" * 14, limit=name_limit(runtime, spec.nodes))


def _code_configmap(spec: JobSpec, *, code_name: str | None, is_taken: bool) -> Json | None:
    if spec.code is None or spec.code.git is not None:
        return None
    digest = code_digest(spec.code) if is_taken else None
    return code_configmap(
        spec.code,
        name=code_name or code_configmap_name(spec.user, digest),
        namespace=spec.namespace,
        user=spec.user,
        is_named_by_content=code_name is None and is_taken,
    )


def _put_metadata(draft: Draft, spec: JobSpec, platform: Platform, *, job: str) -> None:
    draft.put(("apiVersion",), API_VERSION)
    draft.put(("kind",), "TrainJob")
    draft.put(("metadata", "name"), job, "name")
    draft.put(("metadata", "namespace"), spec.namespace, "namespace")
    draft.put(("metadata", "labels"), dict(MANAGED_BY))
    draft.put(("metadata", "labels", USER_LABEL), spec.user, "user")
    for key, value in sorted(spec.labels.items()):
        draft.put(("metadata", "labels", key), value, f"labels.{key}")
    ttl, source = platform.default_ttl_seconds, ""
    if spec.ttl_seconds is not None:
        ttl, source = spec.ttl_seconds, "ttl_seconds"
    draft.put(("metadata", "annotations", TTL_ANNOTATION), str(ttl), source)
    draft.put(("metadata", "annotations", HASH_ANNOTATION), spec_hash(spec))
    for key, value in sorted(spec.annotations.items()):
        draft.put(("metadata", "annotations", key), value, f"annotations.{key}")


def _put_runtime_ref(draft: Draft, runtime: Mapping[str, Any]) -> None:
    """The cluster's runtimes go by name alone (M18); one in the namespace must say its kind."""
    view = view_runtime(runtime)
    draft.put(("spec", "runtimeRef", "name"), view.name, "runtime")
    if view.kind != "ClusterTrainingRuntime":
        draft.put(("spec", "runtimeRef", "apiGroup"), GROUP)
        draft.put(("spec", "runtimeRef", "kind"), view.kind)


def _put_life(draft: Draft, spec: JobSpec, platform: Platform) -> None:
    if spec.suspend:
        draft.put(("spec", "suspend"), True, "suspend")
    if spec.active_deadline_seconds is not None and platform.trainer_version != "2.1":
        place: Path = ("spec", "activeDeadlineSeconds")
        draft.put(place, spec.active_deadline_seconds, "active_deadline_seconds")
