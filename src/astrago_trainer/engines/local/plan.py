"""From effective objects to what the supervisor of a job starts. Pure: no clock, no disk, no process.

References to ConfigMaps and Secrets are looked up here; what only the start of an attempt knows (the attempt's number,
addresses, ports, GPUs) stays open and is filled in by the supervisor. The plan is plain data, because it travels as
JSON to a process that imports nothing but the standard library.
"""

from __future__ import annotations

import base64
import fnmatch
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from astrago_trainer.core.platform import (
    REQUIREMENTS_CONTAINER,
    REQUIREMENTS_VARIABLE,
    SYSTEM_PATH,
)
from astrago_trainer.core.quantity import Quantity
from astrago_trainer.engines.base import Effective, EngineRejected, Handle
from astrago_trainer.engines.local.env import expand

Json = dict[str, Any]

DEFAULT_GRACE_SECONDS = 30
DEFAULT_BACKOFF_LIMIT = 6
SSH_KEYS = "kubernetes.io/ssh-auth"
"""The type of the secret that the operator makes for MPI jobs."""
TERMINATION_PATH = "/dev/termination-log"
_JOBSET = "jobset.sigs.k8s.io"
_NOT_APPLIED = {
    "container": (
        "livenessProbe",
        "readinessProbe",
        "startupProbe",
        "lifecycle",
        "securityContext",
    ),
    "pod": (
        "securityContext",
        "nodeSelector",
        "affinity",
        "schedulerName",
        "hostAliases",
    ),
}
"""What a machine without Kubernetes has no use for, or no way to do; each job that asks for it is told so."""


@dataclass(frozen=True, slots=True)
class Code:
    """What a container runs, as far as the job brings it along."""

    files: Mapping[str, str] = field(default_factory=dict)
    """Path -> text of its Python files."""
    commands: tuple[str, ...] = ()
    has_other: bool = False
    """Whether there is code that only the running container sees: from git."""
    requirements: tuple[str, ...] = ()
    """Packages that the job asks for."""


@dataclass(frozen=True, slots=True)
class Programs:
    """What stands in for an image."""

    folder: str
    """The `bin` folder of a Python environment, put first on PATH."""
    install: Json | None = None
    """How the supervisor makes it before the pods start: `title`, `command`, `env`; None: it is there."""


class Images:
    """Images are not run here: a pattern maps each to the folder of programs that stands in for it."""

    def __init__(self, default: str, patterns: Mapping[str, str] | None = None) -> None:
        self.default = default
        """The `bin` folder of a Python environment, put first on PATH."""
        self.patterns = dict(patterns or {})
        """`pytorch/*` -> its folder; the first that fits wins."""

    def programs_for(self, image: str, code: Code) -> Programs:
        """`code` may decide as well: see `environments.choosing`."""
        fits = (
            place for pattern, place in self.patterns.items() if fnmatch.fnmatchcase(image, pattern)
        )
        return Programs(next(fits, self.default))


def make_plan(handle: Handle, effective: Effective, images: Images) -> Json:
    """Raises EngineRejected with all that keeps the job from running here."""
    maker = _Maker(handle, effective, images)
    plan = maker.plan()
    if maker.problems:
        raise EngineRejected("\n".join(maker.problems))
    return plan


def amounts_of(container: Mapping[str, Any]) -> dict[str, int]:
    """What a container asks for and may use: CPU in thousandths, memory in bytes, GPUs; 0 for none."""
    resources = container.get("resources") or {}
    limits = resources.get("limits") or {}
    wanted = {**limits, **(resources.get("requests") or {})}
    return {
        "cpu": _amount(wanted.get("cpu"), thousandths=True),
        "memory": _amount(wanted.get("memory")),
        "gpus": sum(_amount(v) for k, v in wanted.items() if k.endswith("/gpu")),
        "cpu_limit": _amount(limits.get("cpu"), thousandths=True),
        "memory_limit": _amount(limits.get("memory")),
    }


class _Maker:
    def __init__(self, handle: Handle, effective: Effective, images: Images) -> None:
        self._handle = handle
        self._effective = effective
        self._images = images
        self._data = {_key(each): _data(each) for each in (*effective.objects, *effective.beside)}
        self.problems: list[str] = []
        self._notes: list[str] = []
        self._installs: dict[str, Json] = {}

    def plan(self) -> Json:
        spec = self._effective.job_set["spec"]
        failure = spec.get("failurePolicy")
        groups = [self._group(job) for job in spec.get("replicatedJobs", ())]
        return {
            "namespace": self._handle.namespace,
            "name": self._handle.name,
            "uid": self._handle.uid,
            "deadline_seconds": self._effective.deadline_seconds,
            "max_restarts": (failure or {}).get("maxRestarts", 0),
            "has_failure_policy": failure is not None,
            "success": spec.get("successPolicy", {"operator": "All"}),
            "subdomain": spec.get("network", {}).get("subdomain") or self._handle.name,
            "has_ssh": any(each.get("type") == SSH_KEYS for each in self._effective.beside),
            "groups": groups,
            "installs": list(self._installs.values()),
            "notes": sorted(set(self._notes)),
        }

    def _group(self, job: Json) -> Json:
        job_spec = job["template"]["spec"]
        template = job_spec["template"]
        return {
            "name": job["name"],
            "count": job_spec.get("completions", 1),
            "depends_on": job.get("dependsOn", []),
            "backoff_limit": job_spec.get("backoffLimit", DEFAULT_BACKOFF_LIMIT),
            "deadline_seconds": job_spec.get("activeDeadlineSeconds"),
            "pod": self._pod(job, template),
        }

    def _pod(self, job: Json, template: Json) -> Json:
        """What all pods of the group have in common: all but their index."""
        spec, metadata = template["spec"], template.get("metadata", {})
        self._note_what_is_not_applied("pod", spec, job["name"])
        labels = self._labels(job)
        volumes = [self._volume(volume, job["name"]) for volume in spec.get("volumes", ())]
        init = spec.get("initContainers", ())
        return {
            "group": job["name"],
            "labels": {**metadata.get("labels", {}), **labels},
            "annotations": {**metadata.get("annotations", {}), **labels},
            "service_account": spec.get("serviceAccountName", "default"),
            "restart_policy": spec.get("restartPolicy", "OnFailure"),
            "grace_seconds": spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS),
            "volumes": volumes,
            "init": [
                self._container(each, job["name"], Code())
                for each in init
                if each["name"] != REQUIREMENTS_CONTAINER
            ],
            "containers": [
                self._container(each, job["name"], _code_of(each, volumes, init))
                for each in spec.get("containers", ())
            ],
        }

    def _labels(self, job: Json) -> dict[str, str]:
        """As JobSet sets them; index and attempt are added when the pod starts."""
        return {
            f"{_JOBSET}/jobset-name": self._handle.name,
            f"{_JOBSET}/jobset-uid": self._handle.uid,
            f"{_JOBSET}/replicatedjob-name": job["name"],
            f"{_JOBSET}/replicatedjob-replicas": "1",
            f"{_JOBSET}/job-index": "0",
            f"{_JOBSET}/group-name": job.get("groupName", "default"),
        }

    def _container(self, container: Json, group: str, code: Code) -> Json:
        where = f"{group}.{container['name']}"
        self._note_what_is_not_applied("container", container, where)
        arguments = [*container.get("command", ()), *container.get("args", ())]
        if not container.get("command"):
            self.problems.append(
                f"{where}: a command is expected, found none; images are not run here, so the command that "
                f"{container.get('image', 'the image')} starts by itself is not known. Give one."
            )
        return {
            "name": container["name"],
            "programs": self._programs(container.get("image", ""), code),
            "command": arguments,
            "env": [*self._env_from(container, where), *self._env(container, where)],
            "folder": container.get("workingDir", ""),
            "mounts": [
                {
                    "volume": mount["name"],
                    "path": mount["mountPath"],
                    "sub_path": mount.get("subPath", ""),
                    "read_only": mount.get("readOnly", False),
                }
                for mount in container.get("volumeMounts", ())
            ],
            **amounts_of(container),
            "checkpoints": _path_in(container, "ASTRAGO_CHECKPOINT_DIR"),
            "resume_from": _path_in(container, "ASTRAGO_RESUME_FROM"),
            "termination_path": container.get("terminationMessagePath", TERMINATION_PATH),
        }

    def _programs(self, image: str, code: Code) -> str:
        found = self._images.programs_for(image, code)
        if found.install is not None:
            self._installs[found.folder] = {**found.install, "image": image}
        return found.folder

    def _env(self, container: Json, where: str) -> Iterable[Json]:
        for entry in container.get("env", ()):
            source = entry.get("valueFrom")
            if not source:
                yield {"name": entry["name"], "value": entry.get("value", "")}
            elif "fieldRef" in source:
                yield {"name": entry["name"], "field": source["fieldRef"]["fieldPath"]}
            elif "resourceFieldRef" in source:
                yield {
                    "name": entry["name"],
                    "value": _resource_field(container, source["resourceFieldRef"]),
                    "literal": True,
                }
            else:
                found = self._key_value(source, f"{where}.env[{entry['name']}]")
                if found is not None:
                    value = found.decode("utf-8", "replace")
                    yield {"name": entry["name"], "value": value, "literal": True}

    def _env_from(self, container: Json, where: str) -> Iterable[Json]:
        for source in container.get("envFrom", ()):
            for field_name, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if field_name in source:
                    found = self._find(kind, source[field_name], f"{where}.envFrom")
                    for key, value in (found or {}).items():
                        name = f"{source.get('prefix', '')}{key}"
                        yield {
                            "name": name,
                            "value": value.decode("utf-8", "replace"),
                            "literal": True,
                        }

    def _key_value(self, source: Json, where: str) -> bytes | None:
        for field_name, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
            if field_name in source:
                reference = source[field_name]
                found = self._find(kind, reference, where)
                if found is None:
                    return None
                if reference["key"] not in found and not reference.get("optional"):
                    self.problems.append(
                        f"{where}: key {reference['key']!r} is expected in {kind} {reference['name']!r}, "
                        f"which has {', '.join(sorted(found)) or 'none'}."
                    )
                return found.get(reference["key"])
        self.problems.append(f"{where}: {', '.join(source)} cannot be read here.")
        return None

    def _find(self, kind: str, reference: Json, where: str) -> dict[str, bytes] | None:
        found = self._data.get((kind, reference.get("name", "")))
        if found is None and not reference.get("optional"):
            self.problems.append(
                f"{where}: {kind} {reference.get('name', '')!r} is expected in namespace "
                f"{self._handle.namespace!r}, and is not there. Create it, or correct the name."
            )
        return found

    def _volume(self, volume: Json, group: str) -> Json:
        where = f"{group}.volumes[{volume['name']}]"
        name = volume["name"]
        if "emptyDir" in volume:
            source = volume["emptyDir"] or {}
            size = _amount(source.get("sizeLimit")) if source.get("sizeLimit") else None
            in_memory = source.get("medium") == "Memory"
            return {"name": name, "kind": "empty", "size": size, "in_memory": in_memory}
        if "persistentVolumeClaim" in volume:
            claim = volume["persistentVolumeClaim"]
            read_only = claim.get("readOnly", False)
            return {
                "name": name,
                "kind": "claim",
                "claim": claim["claimName"],
                "read_only": read_only,
            }
        if "hostPath" in volume:
            path = volume["hostPath"]
            return {
                "name": name,
                "kind": "host",
                "path": path["path"],
                "type": path.get("type", ""),
            }
        files = self._files(volume, where)
        if files is None:
            kinds = ", ".join(key for key in volume if key != "name") or "no source"
            self.problems.append(
                f"{where}: {kinds} cannot be mounted here; use a claim, emptyDir, hostPath, ConfigMap or Secret."
            )
        return {"name": name, "kind": "files", "files": files or []}

    def _files(self, volume: Json, where: str) -> list[Json] | None:
        """The files of a volume that is made of other objects; None where it is another kind of volume."""
        if "configMap" in volume:
            return self._object_files("ConfigMap", volume["configMap"], where)
        if "secret" in volume:
            source = volume["secret"]
            return self._object_files("Secret", {**source, "name": source.get("secretName")}, where)
        if "downwardAPI" in volume:
            return [_field_file(item) for item in volume["downwardAPI"].get("items", ())]
        if "projected" in volume:
            mode = volume["projected"].get("defaultMode", 0o644)
            files: list[Json] = []
            for source in volume["projected"].get("sources", ()):
                if "serviceAccountToken" in source:
                    self._notes.append(f"{where}: there is no service account token here")
                    continue
                parts = {key: {"defaultMode": mode, **value} for key, value in source.items()}
                if "secret" in parts:
                    parts["secret"]["secretName"] = parts["secret"].get("name")
                files += self._files(parts, where) or []
            return files
        return None

    def _object_files(self, kind: str, source: Json, where: str) -> list[Json]:
        found = self._find(kind, source, where)
        if found is None:
            return []
        mode = source.get("defaultMode", 0o644)
        items = source.get("items") or [{"key": key, "path": key} for key in found]
        missing = [item["key"] for item in items if item["key"] not in found]
        if missing and not source.get("optional"):
            self.problems.append(
                f"{where}: {kind} {source['name']!r} has no key {', '.join(missing)}."
            )
        return [
            {
                "path": item["path"],
                "mode": item.get("mode", mode),
                "content": base64.b64encode(found[item["key"]]).decode(),
            }
            for item in items
            if item["key"] in found
        ]

    def _note_what_is_not_applied(self, kind: str, spec: Json, where: str) -> None:
        asked = [name for name in _NOT_APPLIED[kind] if spec.get(name)]
        if asked:
            self._notes.append(f"{where}: {', '.join(asked)} has no effect on this machine")


def _code_of(container: Json, volumes: Iterable[Json], init: Iterable[Json]) -> Code:
    """What is known of a container's code before it runs."""
    mounted = {
        mount["name"]
        for mount in container.get("volumeMounts", ())
        if mount["mountPath"].rstrip("/") != SYSTEM_PATH
    }
    files = {
        each["path"]: base64.b64decode(each["content"]).decode("utf-8", "replace")
        for volume in volumes
        if volume["kind"] == "files" and volume["name"] in mounted
        for each in volume["files"]
        if each["path"].endswith(".py") and "content" in each
    }
    variables = {
        (each["name"], env["name"]): env.get("value", "")
        for each in init
        for env in each.get("env", ())
    }
    wanted = variables.get((REQUIREMENTS_CONTAINER, REQUIREMENTS_VARIABLE), "")
    return Code(
        files,
        tuple(map(str, (*container.get("command", ()), *container.get("args", ())))),
        has_other=any(value for (_, name), value in variables.items() if name == "GIT_SYNC_REPO"),
        requirements=tuple(wanted.splitlines()),
    )


def _key(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


def _data(manifest: Mapping[str, Any]) -> dict[str, bytes]:
    if manifest.get("type") == SSH_KEYS:  # pods of one machine need no keys: see `sessions`
        return dict.fromkeys(manifest["data"], b"")
    if manifest["kind"] == "Secret":
        encoded = {k: base64.b64decode(v) for k, v in (manifest.get("data") or {}).items()}
        return {**encoded, **{k: v.encode() for k, v in (manifest.get("stringData") or {}).items()}}
    text = {k: v.encode() for k, v in (manifest.get("data") or {}).items()}
    binary = manifest.get("binaryData") or {}
    return {**text, **{k: base64.b64decode(v) for k, v in binary.items()}}


def _path_in(container: Json, variable: str) -> str:
    """The normal form of an absolute path that a variable holds, else nothing."""
    found = [each.get("value") for each in container.get("env", ()) if each["name"] == variable]
    path = posixpath.normpath(expand(str(found[-1]), {})) if found and found[-1] else ""
    return f"/{path.lstrip('/')}" if path.startswith("/") and path.strip("/") else ""


def _field_file(item: Json) -> Json:
    reference = item.get("fieldRef", {}).get("fieldPath", "")
    return {"path": item["path"], "mode": item.get("mode", 0o644), "field": reference}


def _amount(value: Any, *, thousandths: bool = False) -> int:
    """A quantity as a whole number, rounded up; 0 for none."""
    if value is None:
        return 0
    quantity = Quantity.parse(str(value))
    return quantity.times(1000).value() if thousandths else quantity.value()


def _resource_field(container: Json, reference: Json) -> str:
    kind, _, name = reference["resource"].partition(".")
    amount = Quantity.parse(str(container.get("resources", {}).get(kind, {}).get(name, "0")))
    divisor = Quantity.parse(str(reference.get("divisor") or "1"))
    thousandths = divisor.times(1000).value() or 1000
    return str(-(-amount.times(1000).value() // thousandths))
