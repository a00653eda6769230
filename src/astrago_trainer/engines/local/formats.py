"""Versions of the files in a job's folder: reads older ones, and says of others what is expected and what to do.

Version 0 is what releases wrote that named none. Imported by the supervisor: standard library only, and little of it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

Json = dict[str, Any]

VERSION = 1
"""Of every JSON file that `write_json` makes. A change that older code cannot read takes the next number."""
_PLAN = (
    "namespace",
    "name",
    "uid",
    "max_restarts",
    "has_failure_policy",
    "success",
    "subdomain",
    "groups",
)
_GROUP = ("name", "count", "depends_on", "backoff_limit", "deadline_seconds", "pod")
_POD = ("group", "labels", "annotations", "restart_policy", "grace_seconds", "volumes", "init")
_CONTAINER = ("name", "programs", "command", "env", "folder", "mounts", "cpu", "memory", "gpus")
_REMEDY = "Delete the job and submit it again, or install the release of astrago that wrote it."


class UnreadableFile(Exception):  # noqa: N818 - named for what the caller sees, as the house style has it
    """A file of a job's folder that this release cannot use; the message names it and the way out."""


def write_json(
    path: str,
    value: Json,
    *,
    has_version: bool = True,
    is_durable: bool = True,
    mode: int = 0o666,
) -> None:
    """Complete or not at all, whatever happens meanwhile; unless `is_durable`, a power cut may lose it."""
    unfinished = f"{path}.{os.getpid()}.new"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with open(os.open(unfinished, flags, mode), "w", encoding="utf-8") as file:
            json.dump({"version": VERSION, **value} if has_version else value, file)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        os.replace(unfinished, path)
    except OSError:  # no space: nor for what is of no use
        with suppress(OSError):
            os.unlink(unfinished)
        raise


def read_json(path: str) -> Json | None:
    """Without its version; None when it is not there. Raises UnreadableFile."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise UnreadableFile(f"{path}: JSON is expected, found: {error}. {_REMEDY}") from None
    if not isinstance(found, dict):
        raise UnreadableFile(
            f"{path}: an object is expected, found {type(found).__name__}. {_REMEDY}"
        )
    version = found.pop("version", 0)
    if not isinstance(version, int) or not 0 <= version <= VERSION:
        raise UnreadableFile(
            f"{path}: a version up to {VERSION} is expected, found {version!r}. {_REMEDY}"
        )
    return found


def read_plan(path: str) -> Json | None:
    """The plan of a job, of an older release too; None when it is not there. Raises UnreadableFile."""
    plan = read_json(path)
    if plan is None:
        return None
    _need(path, plan, _PLAN, "the plan")
    for group in plan["groups"]:
        _need(path, group, _GROUP, "a group")
        _need(path, group["pod"], (*_POD, "containers"), "a pod")
        for container in (*group["pod"]["init"], *group["pod"]["containers"]):
            _need(path, container, _CONTAINER, "a container")
            _add_to_container(container)
    plan.setdefault("notes", [])
    plan.setdefault("shortfall", "")
    plan.setdefault("has_ssh", False)
    plan.setdefault("deadline_seconds", None)
    plan.setdefault("needs", _needs(plan["groups"]))
    return plan


def _add_to_container(container: Json) -> None:
    """What plans of earlier releases did not have."""
    for name in ("cpu_limit", "memory_limit"):
        container.setdefault(name, 0)
    for name in ("checkpoints", "resume_from"):
        container.setdefault(name, "")
    container.setdefault("termination_path", "/dev/termination-log")


def _needs(groups: list[Json]) -> Json:
    """What all pods ask for together."""
    needs = dict.fromkeys(("cpu", "memory", "gpus"), 0)
    for group in groups:
        for container in group["pod"]["containers"]:
            for name in needs:
                needs[name] += container[name] * group["count"]
    return needs


def _need(path: str, found: object, names: tuple[str, ...], what: str) -> None:
    if not isinstance(found, dict):
        raise UnreadableFile(f"{path}: {what} must be an object. {_REMEDY}")
    missing = [name for name in names if name not in found]
    if missing:
        raise UnreadableFile(
            f"{path}: {what} must have {', '.join(missing)}, and has none; "
            f"an earlier release wrote it. {_REMEDY}"
        )
