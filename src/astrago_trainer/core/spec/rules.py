"""Rules between the fields of a request: what no field can know alone.

Each rule is a function that yields what is broken, listed with the fields it reads; `base.Model`
runs it when these are sound. Rules that need the administrator's settings are in `check`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from astrago_trainer.core.quantity import Quantity
from astrago_trainer.core.reserved import find_reserved
from astrago_trainer.core.spec.base import Broken, Rules
from astrago_trainer.core.spec.text import (
    MAX_ARGUMENT_BYTES,
    MAX_CONFIGMAP_BYTES,
    byte_length,
    normal_path,
)

if TYPE_CHECKING:
    from astrago_trainer.core.spec.models import (
        Amount,
        Code,
        EnvVar,
        JobSpec,
        Toleration,
        Volume,
    )

SCRIPTS_VOLUME, SCRIPTS_PATH = "train-script", "/workspace/scripts"
PROGRESS_VOLUME, PROGRESS_PATH = "astrago-progress", "/var/run/secrets/astrago/progress"
SHARED_MEMORY_VOLUME, SHARED_MEMORY_PATH = "dshm", "/dev/shm"  # noqa: S108 - the place, not a temporary file
GIT_PATH = "/workspace/code"

_OWN_LABELS = (
    "trainer.astrago.io/",
    "trainer.kubeflow.org/",
    "jobset.sigs.k8s.io/",
    "batch.kubernetes.io/",
)
_MANAGED_BY = "app.kubernetes.io/managed-by"
_MAX_ANNOTATION_BYTES = 262_144  # 256 KiB: the limit of Kubernetes for one object, ours included


def _request_within_limit(amount: Amount) -> Iterator[Broken]:
    if amount.request is None or amount.limit is None:
        return
    if Quantity.parse(amount.request) > Quantity.parse(amount.limit):
        yield (
            ("request",),
            "FieldValueInvalid",
            f"must not be more than the limit {amount.limit}; found {amount.request}.",
            "Lower the request or raise the limit.",
        )


def _one_source_of_a_value(env: EnvVar) -> Iterator[Broken]:
    yield from _exactly_one(
        {"value": env.value, "secret": env.secret, "config_map": env.config_map}
    )


def _variable_fits_the_kernel(env: EnvVar) -> Iterator[Broken]:
    size = byte_length(env.name) + 1 + byte_length(env.value or "")
    if size > MAX_ARGUMENT_BYTES:
        yield (
            ("value",),
            "FieldValueTooLong",
            f"NAME=value must have at most {MAX_ARGUMENT_BYTES} bytes; found {size}.",
            "Keep large values in a file: code, a ConfigMap or a volume.",
        )


def _one_kind_of_volume(volume: Volume) -> Iterator[Broken]:
    yield from _exactly_one(
        {
            "claim": volume.claim,
            "empty_dir": volume.empty_dir,
            "config_map": volume.config_map,
            "secret": volume.secret,
            "host_path": volume.host_path,
        }
    )


def _one_source_of_code(code: Code) -> Iterator[Broken]:
    yield from _exactly_one({"inline": code.inline, "files": code.files, "git": code.git})
    if code.inline == "":
        yield ("inline",), "FieldValueRequired", "must not be empty.", "Post the script's text."
    if code.files == {}:
        yield ("files",), "FieldValueRequired", "must hold at least one file.", ""


def _code_fits_a_configmap(code: Code) -> Iterator[Broken]:
    texts = {"inline": [code.inline or ""], "files": list((code.files or {}).values())}
    for field, values in texts.items():
        size = sum(map(byte_length, values))
        if size > MAX_CONFIGMAP_BYTES:
            yield (
                (field,),
                "FieldValueTooLong",
                f"must have at most {MAX_CONFIGMAP_BYTES} bytes (1 MiB, what a ConfigMap holds); "
                f"found {size}.",
                "Put the code into a git repository and give its address in code.git.",
            )


def _no_file_is_a_folder(code: Code) -> Iterator[Broken]:
    paths = code.files or {}
    folders = _files_around(paths)
    for path in paths:
        if path in folders:
            yield (
                ("files", path),
                "FieldValueInvalid",
                f"{folders[path]!r} is a file and cannot be a folder as well.",
                "Rename one of them.",
            )


def _files_around(paths: Iterable[str]) -> dict[str, str]:
    """Path -> the outermost of the other paths that is a folder above it.

    In this order a path comes directly before all that is below it, so one pass is enough.
    """
    found: dict[str, str] = {}
    above = ""
    for path in sorted(paths, key=lambda each: each.replace("/", "\0")):
        if above and path.startswith(f"{above}/"):
            found[path] = above
        else:
            above = path
    return found


def _toleration_makes_sense(toleration: Toleration) -> Iterator[Broken]:
    if toleration.operator == "Exists" and toleration.value:
        yield (
            ("value",),
            "FieldValueInvalid",
            f"must be left out with operator Exists; found {toleration.value!r}.",
            "Use operator Equal to ask for this value.",
        )
    if toleration.seconds is not None and toleration.effect != "NoExecute":
        yield (
            ("seconds",),
            "FieldValueInvalid",
            f"has a meaning with effect NoExecute only; found effect {toleration.effect}.",
            "",
        )


def _env_names_differ(spec: JobSpec) -> Iterator[Broken]:
    yield from _duplicates("env", "name", [env.name for env in spec.env])


def _env_is_not_reserved(spec: JobSpec) -> Iterator[Broken]:
    for index, env in enumerate(spec.env):
        if (variable := find_reserved(env.name, spec.framework)) is not None:
            yield (
                ("env", index, "name"),
                "FieldValueForbidden",
                variable.refusal(env.name),
                variable.instead,
            )


def _tensorflow_port_is_a_port(spec: JobSpec) -> Iterator[Broken]:
    for index, env in enumerate(spec.env):
        if spec.framework != "tensorflow" or env.name != "TF_PORT" or env.value is None:
            continue
        if not (
            env.value.isdecimal() and env.value.isascii() and 1024 <= int(env.value[:9]) <= 65535
        ):
            yield (
                ("env", index, "value"),
                "FieldValueInvalid",
                "TF_PORT must be a port from 1024 to 65535.",
                "Leave it out for 2222.",
            )


def _volumes_do_not_collide(spec: JobSpec) -> Iterator[Broken]:
    yield from _duplicates("volumes", "name", [volume.name for volume in spec.volumes])
    paths = [normal_path(volume.mount_path) for volume in spec.volumes]
    yield from _duplicates("volumes", "mount_path", paths)
    for name, path, owner in _own_mounts(spec):
        for index, volume in enumerate(spec.volumes):
            if volume.name == name:
                yield (
                    ("volumes", index, "name"),
                    "FieldValueDuplicate",
                    f"{name!r} is the volume the platform makes for {owner}.",
                    "Take another name.",
                )
            if paths[index] == path:
                yield (
                    ("volumes", index, "mount_path"),
                    "FieldValueDuplicate",
                    f"{path} is where the platform mounts {owner}.",
                    "Mount it somewhere else.",
                )


def _own_mounts(spec: JobSpec) -> Iterator[tuple[str, str, str]]:
    yield PROGRESS_VOLUME, PROGRESS_PATH, "the reporting of progress"
    if spec.code is not None and spec.code.git is None:
        yield SCRIPTS_VOLUME, SCRIPTS_PATH, "the posted code"
    if spec.code is not None and spec.code.git is not None:
        yield "git-clone-volume", GIT_PATH, "code from git"
    if spec.shared_memory is not None:
        yield SHARED_MEMORY_VOLUME, SHARED_MEMORY_PATH, "shared_memory"


def _one_thing_to_run(spec: JobSpec) -> Iterator[Broken]:
    if spec.command is not None and spec.argv:
        yield (
            ("argv",),
            "FieldValueForbidden",
            "must be left out when there is a command: only one of them can run.",
            "Keep command for shell text, argv for a program and its arguments.",
        )
    if spec.argv and not spec.argv[0]:
        yield ("argv", 0), "FieldValueRequired", "must name a program; found an empty text.", ""
    if spec.args and (spec.command is not None or spec.argv):
        yield (
            ("args",),
            "FieldValueForbidden",
            "are for the posted script; there is a command or argv already.",
            "Write the arguments there.",
        )


def _there_is_something_to_run(spec: JobSpec) -> Iterator[Broken]:
    if spec.command is not None or spec.argv:
        return
    if spec.code is None:
        yield (
            ("command",),
            "FieldValueRequired",
            "there is nothing to run: neither code nor a command was given.",
            "Give code, command or argv.",
        )
    elif spec.code.files is not None and spec.code.entrypoint not in spec.code.files:
        yield (
            ("code", "entrypoint"),
            "FieldValueInvalid",
            f"must be one of the files; found {spec.code.entrypoint!r}.",
            f"Name one of {', '.join(sorted(spec.code.files)[:5])}, or give a command.",
        )


def _launcher_is_for_mpi(spec: JobSpec) -> Iterator[Broken]:
    if spec.launcher is not None and spec.framework != "horovod":
        yield (
            ("launcher",),
            "FieldValueForbidden",
            f"only horovod jobs have a launcher; found framework {spec.framework}.",
            "Leave it out: all nodes are equal.",
        )


def _labels_are_the_users(spec: JobSpec) -> Iterator[Broken]:
    for field, keys in (("labels", spec.labels), ("annotations", spec.annotations)):
        for key in keys:
            if key.startswith(_OWN_LABELS) or key == _MANAGED_BY:
                yield (
                    (field, key),
                    "FieldValueForbidden",
                    f"{key!r} is set by the platform or the operator.",
                    "Take a key of your own, such as example.org/team.",
                )


def _annotations_fit(spec: JobSpec) -> Iterator[Broken]:
    size = sum(byte_length(key) + byte_length(value) for key, value in spec.annotations.items())
    if size > _MAX_ANNOTATION_BYTES - 1024:
        yield (
            ("annotations",),
            "FieldValueTooLong",
            f"must have at most {_MAX_ANNOTATION_BYTES - 1024} bytes in all; found {size}.",
            "",
        )


def _exactly_one(fields: Mapping[str, object]) -> Iterator[Broken]:
    given = [name for name, value in fields.items() if value is not None]
    if len(given) == 1:
        return
    found = " and ".join(given) if given else "none"
    code = "FieldValueRequired" if not given else "FieldValueForbidden"
    yield (), code, f"exactly one of {', '.join(fields)} must be given; found {found}.", ""


def _duplicates(field: str, key: str, values: Iterable[str]) -> Iterator[Broken]:
    seen: dict[str, int] = {}
    for index, value in enumerate(values):
        if value in seen:
            yield (
                (field, index, key),
                "FieldValueDuplicate",
                f"{value!r} is used by {field}[{seen[value]}] already.",
                "Take another one, or drop one of the two.",
            )
        seen.setdefault(value, index)


def _fields(*names: str) -> frozenset[str]:
    return frozenset(names)


AMOUNT: Rules = ((_fields("request", "limit"), _request_within_limit),)
ENV_VAR: Rules = (
    (_fields("value", "secret", "config_map"), _one_source_of_a_value),
    (_fields("name", "value"), _variable_fits_the_kernel),
)
VOLUME: Rules = (
    (_fields("claim", "empty_dir", "config_map", "secret", "host_path"), _one_kind_of_volume),
)
CODE: Rules = (
    (_fields("inline", "files", "git"), _one_source_of_code),
    (_fields("inline", "files"), _code_fits_a_configmap),
    (_fields("files"), _no_file_is_a_folder),
)
TOLERATION: Rules = ((_fields("operator", "value", "effect", "seconds"), _toleration_makes_sense),)
JOB: Rules = (
    (_fields("env"), _env_names_differ),
    (_fields("env", "framework"), _env_is_not_reserved),
    (_fields("env", "framework"), _tensorflow_port_is_a_port),
    (_fields("volumes", "code", "shared_memory"), _volumes_do_not_collide),
    (_fields("command", "argv", "args"), _one_thing_to_run),
    (_fields("command", "argv", "code"), _there_is_something_to_run),
    (_fields("launcher", "framework"), _launcher_is_for_mpi),
    (_fields("labels", "annotations"), _labels_are_the_users),
    (_fields("annotations"), _annotations_fit),
)
