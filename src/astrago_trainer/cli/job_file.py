"""A file to the body of a request: a job file as it is, a manifest converted; what is neither is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests import items_of, load_documents

if TYPE_CHECKING:
    from astrago_trainer.core.convert import Converted
    from astrago_trainer.core.platform import Framework

Json = dict[str, Any]

_SCRIPT = "train.py"
_SEED_FIELDS = frozenset({"user_id", "training_code"})


def read_job_file(file: str) -> Converted:
    """Raises Unreadable; what is in the fields is checked by the service, all at once."""
    from astrago_trainer.core.convert import Converted

    documents = items_of(load_documents(file))
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
    if len(kinds) == 1 and kinds[0] in LEGACY_KINDS and not beside:
        return legacy_to_job(jobs[0])
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
