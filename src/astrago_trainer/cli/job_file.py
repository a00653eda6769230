"""A file to the body of a request: a job file as it is, a manifest converted; what is neither is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.errors import Problem, Severity, Unreadable
from astrago_trainer.manifests import items_of, load_documents

if TYPE_CHECKING:
    from astrago_trainer.core.convert import Converted
    from astrago_trainer.core.platform import Framework

Json = dict[str, Any]

_SCRIPT = "train.py"
_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_BESIDE = 100
"""Files of a folder that are searched for a ConfigMap."""
_SEED_FIELDS = frozenset({"user_id", "training_code"})


def read_job_file(file: str, *others: str) -> Converted:
    """Raises Unreadable; what is in the fields is checked by the service, all at once.

    `others` bring what the job refers to: the ConfigMap with its code.
    """
    from astrago_trainer.core.convert import Converted

    documents = [each for name in (file, *others) for each in items_of(load_documents(name))]
    shown = "<stdin>" if file == "-" else file
    if any("kind" in each for each in documents):
        return _convert(documents, shown)
    if len(documents) != 1:
        raise _refusal(
            shown,
            "several-documents",
            f"expected one job, found {len(documents)} documents.",
            "Put each job into its own file.",
        )
    document = dict(documents[0])
    if not _SEED_FIELDS & document.keys():
        return Converted(document, ())
    from astrago_trainer.core.seeds import read_seed_body

    spec, warnings = read_seed_body(document)
    return Converted(spec.model_dump(mode="json", exclude_defaults=True), warnings)


def missing_config_maps(
    names: Iterable[str], files: Sequence[str], *, severity: Severity = "warning"
) -> list[Problem]:
    """What is said of ConfigMaps that a job mounts and that none of its files has."""
    problems = []
    for name in sorted(set(names)):
        place = _defined_beside(name, files[0])
        given = " ".join(f"-f {each}" for each in files)
        problems.append(
            Problem(
                f"ConfigMap {name}",
                "missing-config-map",
                f"the job mounts it, and it is not in {', '.join(files)}; here it does not exist by itself."
                if place is None
                else f"the job mounts it, and it is in another file: {place}.",
                "Put it into the same file; on a cluster it may also be created with kubectl first."
                if place is None
                else f"Give both: astrago apply {given} -f {place}",
                severity,
            )
        )
    return problems


def mounted_config_maps(job: Json) -> list[str]:
    """Names of the ConfigMaps that a job mounts beside its code; it does not bring them along."""
    volumes = job.get("volumes")
    found = volumes if isinstance(volumes, list) else []
    return [
        each["config_map"]
        for each in found
        if isinstance(each, dict) and isinstance(each.get("config_map"), str)
    ]


def _defined_beside(name: str, file: str) -> Path | None:
    """The file in the same folder that has the ConfigMap."""
    if file == "-" or not Path(file).is_file():
        return None
    near = (each for each in sorted(Path(file).parent.iterdir()) if each.suffix in _SUFFIXES)
    for place in itertools.islice(near, _MOST_BESIDE):
        try:
            documents = items_of(load_documents(str(place)))
        except Unreadable:
            continue
        if any(each.get("kind") == "ConfigMap" and _name(each) == name for each in documents):
            return place
    return None


def with_defaults(body: Json) -> Json:
    """A job file with the user and the namespace that it would be submitted with, where it names none."""
    import os

    from astrago_trainer.client.places import configured_place, own_namespace, user_name

    place = configured_place()
    named = os.environ.get("ASTRAGO_NAMESPACE") or (place.namespace if place else None)
    return {"user": user_name(), "namespace": named or own_namespace(), **body}


def _convert(documents: Sequence[Json], shown: str) -> Converted:
    from astrago_trainer.core.convert import LEGACY_KINDS, legacy_to_job, trainjob_to_job

    beside = [each for each in documents if each.get("kind") == "ConfigMap" and _name(each)]
    jobs = [each for each in documents if each not in beside]
    kinds = [str(each.get("kind")) for each in jobs]
    if kinds == ["TrainJob"]:
        from astrago_trainer.catalogue import default_platform

        platform = default_platform()
        return _with_script_beside(trainjob_to_job(jobs[0], platform, _frameworks(), beside), shown)
    if len(kinds) == 1 and kinds[0] in LEGACY_KINDS:
        return legacy_to_job(jobs[0], beside)
    raise _refusal(
        shown,
        "kind-not-taken",
        f"expected one job file, TrainJob, {', '.join(sorted(LEGACY_KINDS))}; found "
        f"{', '.join(str(each.get('kind')) for each in documents)}.",
        "Put each job into its own file, and apply other objects with kubectl.",
    )


def _with_script_beside(found: Converted, file: str) -> Converted:
    """The samples' ConfigMap for code is made of the `train.py` beside the manifest, and may not exist yet."""
    from dataclasses import replace

    from astrago_trainer.core.convert.converted import lost
    from astrago_trainer.core.spec.rules import SCRIPTS_PATH
    from astrago_trainer.core.spec.text import MAX_CONFIGMAP_BYTES

    script = Path(file).parent / _SCRIPT
    volumes = found.job.get("volumes", [])
    wanted = [
        each for each in volumes if each["mount_path"] == SCRIPTS_PATH and "config_map" in each
    ]
    if "code" in found.job or not wanted or not Path(file).is_file() or not script.is_file():
        return found
    if script.stat().st_size > MAX_CONFIGMAP_BYTES:
        return found
    try:
        text = script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return found
    job = {**found.job, "volumes": [each for each in volumes if each not in wanted]}
    job["code"] = {"files": {_SCRIPT: text}, "entrypoint": _SCRIPT}
    why = f"the ConfigMap is not in the file; the code is {script}"
    note = lost((f"ConfigMap {wanted[0]['config_map']}",), why, severity="warning")
    return replace(
        found,
        job={name: value for name, value in job.items() if value != []},
        lost=(*found.lost, note),
    )


def _frameworks() -> dict[str, Framework]:
    from astrago_trainer.catalogue import runtimes
    from astrago_trainer.core.platform import FRAMEWORKS

    return {
        each.name: framework
        for each in runtimes()
        for framework in FRAMEWORKS
        if each.framework == framework
    }


def _name(document: Json) -> str:
    metadata = document.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def _refusal(path: str, code: str, message: str, remedy: str) -> Unreadable:
    return Unreadable([Problem(path, code, message, remedy)])
