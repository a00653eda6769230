"""What the API server refuses before any webhook sees it: types, unknown fields, and the rules inside the CRDs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from astrago_trainer.core.errors import Problem, Severity
from astrago_trainer.core.merge.model import OVERRIDES
from astrago_trainer.core.merge.schema import check, fitting, struct

Json = Mapping[str, Any]
_Listed = tuple[str, str, list[Any]]

_TRAINJOB = "struct:trainer.v1alpha1.TrainJob"
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.DOTALL)
_MANAGERS = ("trainer.kubeflow.org/trainjob-controller", "kueue.x-k8s.io/multikueue")
_MOVED = {
    "spec.numNodes": "spec.trainer.numNodes",
    "spec.image": "spec.trainer.image",
    "spec.command": "spec.trainer.command",
    "spec.args": "spec.trainer.args",
    "spec.env": "spec.trainer.env",
    "spec.resources": "spec.trainer.resourcesPerNode",
    "spec.resourcesPerNode": "spec.trainer.resourcesPerNode",
    "spec.trainer.resources": "spec.trainer.resourcesPerNode",
    "spec.numProcPerNode": "spec.trainer.numProcPerNode",
}
"""Fields that people write one level off."""


def check_trainjob(trainjob: Json, version: str) -> list[Problem]:
    """Every reason for the API server to refuse this TrainJob on that Trainer version."""
    problems = _check_kind(trainjob, ("TrainJob",), "TrainJob")
    misfits, unknown = check(_known_top(trainjob), _TRAINJOB, version)
    problems += misfits
    problems += [_unknown_field(path, version, "error") for path in unknown]
    problems += _check_rules(
        fitting(trainjob, _TRAINJOB, version), version, {p.path for p in misfits}
    )
    return problems


def check_runtime(runtime: Json, version: str) -> list[Problem]:
    """The same for a runtime, which its administrator may have applied long ago: unknown fields only warn."""
    problems = _check_kind(runtime, ("ClusterTrainingRuntime", "TrainingRuntime"), "runtime")
    misfits, unknown = check(
        _known_top(runtime), "struct:trainer.v1alpha1.ClusterTrainingRuntime", version
    )
    problems += [_at_runtime(problem) for problem in misfits]
    problems += [_at_runtime(_unknown_field(path, version, "warning")) for path in unknown]
    if misfits:
        return problems
    policy = (runtime.get("spec") or {}).get("mlPolicy") or {}
    frameworks = [
        name for name in ("torch", "mpi", "jax", "xgboost", "flux") if policy.get(name) is not None
    ]
    if len(frameworks) > 1:
        text = f"only one framework can be configured, found {', '.join(frameworks)}."
        problems.append(
            Problem("runtime.spec.mlPolicy", "FieldValueInvalid", text, "Keep one of them.")
        )
    return problems


def _known_top(manifest: Json) -> dict[str, Any]:
    return {key: value for key, value in manifest.items() if key != "status"}


def _at_runtime(problem: Problem) -> Problem:
    path = f"runtime.{problem.path}" if problem.path else "runtime"
    return Problem(path, problem.code, problem.message, problem.remedy, problem.severity)


def _check_kind(manifest: Json, kinds: tuple[str, ...], what: str) -> list[Problem]:
    problems = []
    if manifest.get("kind") not in kinds:
        text = f"{' or '.join(kinds)} is expected, found {manifest.get('kind')!r}."
        problems.append(Problem("kind", "FieldValueNotSupported", text, f"Give a {what}."))
    version = manifest.get("apiVersion")
    if version != "trainer.kubeflow.org/v1alpha1":
        text = f"'trainer.kubeflow.org/v1alpha1' is expected, found {version!r}."
        problems.append(Problem("apiVersion", "FieldValueNotSupported", text))
    return problems


def _unknown_field(path: str, version: str, severity: Severity) -> Problem:
    text = f"Trainer {version} has no such field; without strict validation it would be dropped without a word."
    return Problem(path, "UnknownField", text, _remedy_for_unknown(path, version), severity)


def _remedy_for_unknown(path: str, version: str) -> str:
    if path in _MOVED:
        return f"It belongs to {_MOVED[path]}."
    if path == "spec.podTemplateOverrides":
        return "From 2.2 on it is spec.runtimePatches; `--trainer-version 2.1` shows it as 2.1 would run it."
    if path in ("spec.runtimePatches", "spec.activeDeadlineSeconds"):
        return "It exists from 2.2 on; 2.1 has spec.podTemplateOverrides and no deadline."
    if path in ("spec.labels", "spec.annotations"):
        return "From 2.2 on: spec.runtimePatches[].trainingRuntimeSpec.template.metadata."
    if path == "spec.mlPolicy.torch.numProcPerNode":
        return "From 2.2 on only spec.trainer.numProcPerNode of the TrainJob sets it; write `torch: {}`."
    if re.search(r"spec\.containers\[\d+\]\.(image|command|args|resources)$", path):
        return "An override cannot set it; use spec.trainer, or a runtime of your own."
    known = _fields_beside(path, version)
    close = get_close_matches(path.rpartition(".")[2], known, n=1)
    if close:
        return f"Did you mean {close[0]}?"
    return f"Known here: {', '.join(sorted(known))}." if 0 < len(known) <= 12 else "Remove it."


def _fields_beside(path: str, version: str) -> list[str]:
    for root in ("trainer.v1alpha1.TrainJob", "trainer.v1alpha1.ClusterTrainingRuntime"):
        kind = f"struct:{root}"
        for step in re.findall(r"[^.\[\]]+|\[[^\]]*\]", path)[:-1]:
            outer, _, inner = kind.partition(":")
            if step.startswith("["):
                kind = inner
            elif outer == "struct" and step in struct(inner, version):
                kind = struct(inner, version)[step].kind
            else:
                kind = ""
                break
        if kind.startswith("struct:"):
            return list(struct(kind.partition(":")[2], version))
    return []


def _check_rules(trainjob: Json, version: str, told: set[str]) -> list[Problem]:
    """Rules on what fits; a place that was told of already is not told of again for being empty."""
    return [problem for problem in _broken_rules(trainjob, version) if problem.path not in told]


def _broken_rules(trainjob: Json, version: str) -> list[Problem]:
    spec: Json = trainjob.get("spec") or {}
    trainer: Json = spec.get("trainer") or {}
    problems = _check_name((trainjob.get("metadata") or {}).get("name"))
    if not (spec.get("runtimeRef") or {}).get("name"):
        text = "the name of a runtime is expected, found none."
        problems.append(
            Problem(
                "spec.runtimeRef.name", "FieldValueRequired", text, "`astrago runtimes` lists them."
            )
        )
    nodes = trainer.get("numNodes")
    if nodes is not None and nodes < 1:
        text = f"at least 1 is expected, found {nodes}; Trainer {version} accepts it and then trains nothing."
        problems.append(
            Problem("spec.trainer.numNodes", "FieldValueInvalid", text, "Ask for 1 node or more.")
        )
    manager = spec.get("managedBy")
    if manager is not None and manager not in _MANAGERS:
        text = f"{_MANAGERS[0]} or {_MANAGERS[1]} is expected, found {manager!r}."
        problems.append(Problem("spec.managedBy", "FieldValueInvalid", text))
    elif manager == _MANAGERS[1] and version == "2.3":
        text = "the Trainer leaves this job to Kueue; on a cluster without it, nothing runs."
        problems.append(
            Problem("spec.managedBy", "ManagedElsewhere", text, "Leave it out.", "warning")
        )
    lists = list(_lists(trainjob.get("spec"), "spec"))
    problems += _check_repeats(lists)
    problems += _check_env_names(lists)
    if version != "2.1":
        problems += list(_check_sizes(spec, trainer, version))
    return problems


def _check_name(name: Any) -> list[Problem]:
    path = "metadata.name"
    if not name:
        return [Problem(path, "FieldValueRequired", "a name is expected, found none.")]
    problems = []
    if not _NAME.fullmatch(name):
        text = f"{_shorten(name)} is no RFC 1035 label."
        remedy = "Use lower-case letters, digits and '-', beginning with a letter and not ending with '-'."
        problems.append(Problem(path, "FieldValueInvalid", text, remedy))
    if len(name) > 63:
        text = f"at most 63 characters are allowed, found {len(name)}."
        problems.append(
            Problem(path, "FieldValueTooLong", text, "Shorten it; 48 always fit the pod names too.")
        )
    return problems


def _lists(value: Any, path: str) -> Iterator[_Listed]:
    """Every list of mappings below, with its path and field name; `value` is what `fitting` has made."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from _lists(item, f"{path}.{key}")
    elif isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            yield path, path.rpartition(".")[2], value
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _lists(item, f"{path}[{index}]")


_KEYED = {
    "env": "name",
    "volumes": "name",
    "volumeMounts": "name",
    "containers": "name",
    "initContainers": "name",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
    "replicatedJobs": "name",
    "runtimePatches": "manager",
}
"""Lists that the CRD keeps as maps; volumeMounts are keyed by volume here, though pods may mount one twice."""


def _check_repeats(lists: list[_Listed]) -> list[Problem]:
    problems = []
    for path, field, items in lists:
        key = _KEYED.get(field)
        seen: dict[Any, int] = {}
        for index, item in enumerate(items if key else ()):
            value = item.get(key)
            if value in seen:
                text = f"{key} {value!r} is already used by [{seen[value]}] of this list."
                remedy = (
                    "Mount the second path in another override."
                    if field == "volumeMounts"
                    else "Keep one of them."
                )
                problems.append(Problem(f"{path}[{index}]", "FieldValueDuplicate", text, remedy))
            seen.setdefault(value, index)
    return problems


def _check_env_names(lists: list[_Listed]) -> list[Problem]:
    problems = []
    for path, field, items in lists:
        for index, item in enumerate(items if field == "env" else ()):
            name = item.get("name") or ""
            if not name or "=" in name or "\0" in name or not name.isprintable():
                text = f"a variable name without '=' is expected, found {_shorten(name)}."
                remedy = (
                    f"Write name: {name.split('=')[0]}, value: …"
                    if "=" in name
                    else "Name the variable."
                )
                problems.append(Problem(f"{path}[{index}].name", "FieldValueInvalid", text, remedy))
            elif item.get("value") is not None and item.get("valueFrom") is not None:
                text = "value and valueFrom cannot both be set; the pod would be refused."
                problems.append(
                    Problem(f"{path}[{index}]", "FieldValueInvalid", text, "Keep one of them.")
                )
    return problems


def _check_sizes(spec: Json, trainer: Json, version: str) -> Iterator[Problem]:
    def too_many(path: str, found: int, most: int, what: str) -> Problem:
        code = "FieldValueTooMany" if what == "items" else "FieldValueTooLong"
        return Problem(path, code, f"at most {most:,} {what} are allowed, found {found:,}.")

    if len(trainer.get("image") or "") > 500:
        yield too_many("spec.trainer.image", len(trainer["image"]), 500, "characters")
    longest = 65_536 if version == "2.2" else 1_048_576
    for field in ("command", "args"):
        words = trainer.get(field) or []
        if len(words) > 128:
            yield too_many(f"spec.trainer.{field}", len(words), 128, "items")
        for index, word in enumerate(words):
            if len(word) > longest:
                yield too_many(f"spec.trainer.{field}[{index}]", len(word), longest, "characters")
    if len(trainer.get("env") or []) > 128:
        yield too_many("spec.trainer.env", len(trainer["env"]), 128, "items")
    patches = spec.get(OVERRIDES[version]) or []
    if len(patches) > 16:
        yield too_many("spec.runtimePatches", len(patches), 16, "items")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and deadline < 1:
        text = f"at least 1 second is expected, found {deadline}."
        yield Problem("spec.activeDeadlineSeconds", "FieldValueInvalid", text)
    for part in ("dataset", "model"):
        uri = ((spec.get("initializer") or {}).get(part) or {}).get("storageUri")
        if version == "2.3" and uri and not _URI.fullmatch(uri):
            text = f"scheme://… is expected, found {_shorten(uri)}."
            yield Problem(f"spec.initializer.{part}.storageUri", "FieldValueInvalid", text)


def _shorten(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 70 else f"{shown[:67]}…"
