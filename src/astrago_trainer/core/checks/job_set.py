"""What JobSet refuses, by CRD or webhook. The Trainer tells nobody: it leaves an event, and the job never starts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from astrago_trainer.core.errors import Problem
from astrago_trainer.core.merge.schema import struct

Json = dict[str, Any]

_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_QUALIFIED = re.compile(
    r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_MANAGER = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[^/]+.*")
_CODE = "JobSetRefused"
_SPEC = "jobset.v1alpha2.JobSetSpec"
_POD_SUFFIX = 6  # "-" and five random characters
_KEYS = {
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "env": ("name",),
}
"""Lists of a container that the CRD keeps as maps: no two entries may have the same key."""


def check_job_set(job_set: Json, version: str) -> list[Problem]:
    """Every refusal of the JobSet, which must have its defaults."""
    return [
        *_check_metadata(job_set["metadata"]),
        *_check_jobs(job_set, version),
        *_check_references(job_set["spec"]),
        *_check_values(job_set["spec"]),
        *_check_nulls(job_set["spec"], version),
    ]


def _check_metadata(metadata: Json) -> Iterator[Problem]:
    for kind in ("labels", "annotations"):
        for key, value in metadata.get(kind, {}).items():
            place = f"JobSet.metadata.{kind}[{key}]"
            if not _QUALIFIED.fullmatch(key):
                yield Problem(place, _CODE, f"{key!r} is no name for one of the {kind}.")
            if kind == "labels" and (not _LABEL_VALUE.fullmatch(value) or len(value) > 63):
                text = f"{value!r} is no value for a label."
                remedy = "Use at most 63 letters, digits, '-', '_' and '.', or an annotation."
                yield Problem(place, _CODE, text, remedy)


def _check_jobs(job_set: Json, version: str) -> Iterator[Problem]:
    jobs = job_set["spec"].get("replicatedJobs", [])
    if not jobs:
        yield Problem("runtime…replicatedJobs", _CODE, "at least one job is expected, found none.")
    elif jobs[0].get("dependsOn"):
        text = "the first replicated job cannot depend on another one."
        yield Problem("runtime…replicatedJobs[0].dependsOn", _CODE, text)
    seen: set[str] = set()
    for index, job in enumerate(jobs):
        seen.add(job["name"])
        yield from _check_names(job_set["metadata"]["name"], job)
        group = job.get("groupName", "default")
        if not _LABEL.fullmatch(group):
            text = f"{group!r} is no RFC 1035 label."
            yield Problem(f"runtime…replicatedJobs[{index}].groupName", _CODE, text)
        for other in job.get("dependsOn", ()):
            if other.get("name") not in seen:
                text = f"{job['name']} cannot depend on {other.get('name')!r}, which does not come before it."
                yield Problem(f"runtime…replicatedJobs[{index}].dependsOn", _CODE, text)
        yield from _check_repeats(job)
        pod = job["template"]["spec"]["template"]["spec"]
        if (
            version == "2.2" and "schedulingGroup" in pod
        ):  # Trainer 2.2.1 knows it, JobSet 0.11.1 does not
            text = "JobSet of this release has no such field, and refuses the job."
            yield Problem(f"{job['name']}.schedulingGroup", _CODE, text, "Leave it out.")


def _check_names(job_set_name: str, job: Json) -> list[Problem]:
    """The longest pod name of this job, with its random end, must still be a DNS label."""
    replicas = job.get("replicas", 1)
    pods = job["template"]["spec"].get("completions", 1)
    fixed = f"-{job['name']}-{max(replicas - 1, 0)}-{max(pods - 1, 0)}"
    room = 63 - len(fixed) - _POD_SUFFIX
    if len(job_set_name) <= room:
        return []
    text = (
        f"{len(job_set_name)} characters are too many for {pods} pods of job {job['name']!r}: "
        f"their names ({{name}}{fixed}-xxxxx) may have 63; JobSet refuses the job and it never starts."
    )
    return [Problem("metadata.name", _CODE, text, f"Use at most {room} characters.")]


def _check_repeats(job: Json) -> Iterator[Problem]:
    pod = job["template"]["spec"]["template"]["spec"]
    for kind in ("initContainers", "containers"):
        for container in pod.get(kind, ()):
            for field, keys in _KEYS.items():
                found = Counter(
                    tuple(item.get(key) for key in keys) for item in container.get(field) or ()
                )
                for twice in sorted((key for key, count in found.items() if count > 1), key=str):
                    told = ", ".join(
                        f"{name} {value}" for name, value in zip(keys, twice, strict=True)
                    )
                    path = f"{job['name']}.{kind}[{container.get('name')}].{field}"
                    text = f"{told} is there twice; JobSet refuses the job and it never starts."
                    yield Problem(path, _CODE, text, "Keep one of them.")


def _check_nulls(spec: Json, version: str) -> Iterator[Problem]:
    """Some lists and references the operator always writes, as null when there is nothing in them."""
    for path in _written_as_null(spec, f"struct:{_SPEC}", version, "runtime…"):
        text = "a value is expected, found none; JobSet refuses the job and it never starts."
        yield Problem(path, _CODE, text, "Give it a value, or leave out what it is in.")


def _written_as_null(value: Any, kind: str, version: str, path: str) -> Iterator[str]:
    outer, _, inner = kind.partition(":")
    if outer == "list" and isinstance(value, list):
        if inner.startswith("struct:"):
            for index, item in enumerate(value):
                yield from _written_as_null(item, inner, version, f"{path}[{index}]")
    elif outer == "struct" and isinstance(value, dict):
        for name in _always_written(inner, version):
            if name not in value:
                yield f"{path}.{name}"
        fields = struct(inner, version)
        for name, item in value.items():
            if isinstance(item, dict | list) and name in fields:
                yield from _written_as_null(item, fields[name].kind, version, f"{path}.{name}")


@cache
def _always_written(name: str, version: str) -> tuple[str, ...]:
    """The fields that are written as null when nobody set them."""
    return tuple(
        each
        for each, field in struct(name, version).items()
        if not field.omit and (field.pointer or field.kind.startswith(("list:", "map:")))
    )


def _check_references(spec: Json) -> Iterator[Problem]:
    names = {job["name"] for job in spec.get("replicatedJobs", [])}
    failure = spec.get("failurePolicy") or {}
    targets = {
        "successPolicy.targetReplicatedJobs": spec.get("successPolicy", {}).get(
            "targetReplicatedJobs", ()
        ),
        "failurePolicy.rules.targetReplicatedJobs": [
            name
            for rule in failure.get("rules", ())
            for name in rule.get("targetReplicatedJobs", ())
        ],
        "coordinator.replicatedJob": [
            job["replicatedJob"]
            for job in [spec.get("coordinator") or {}]
            if job.get("replicatedJob")
        ],
    }
    for place, wanted in targets.items():
        for name in wanted:
            if name not in names:
                text = f"there is no replicated job {name!r}."
                yield Problem(f"runtime…{place}", _CODE, text)


def _check_values(spec: Json) -> Iterator[Problem]:
    subdomain = spec.get("network", {}).get("subdomain")
    if subdomain and (not _LABEL.fullmatch(subdomain) or len(subdomain) > 63):
        text = f"{subdomain!r} is no RFC 1035 label of at most 63 characters."
        yield Problem("runtime…network.subdomain", _CODE, text)
    manager = spec.get("managedBy")
    if manager is not None and not _MANAGER.fullmatch(manager):
        text = f"a path with a domain before it, such as 'example.org/name', is expected, found {manager!r}."
        yield Problem("runtime…managedBy", _CODE, text)
