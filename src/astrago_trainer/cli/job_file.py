"""A file to the body of a request: a job file as it is, a manifest converted; what is neither is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests import items_of, load_documents

if TYPE_CHECKING:
    from astrago_trainer.core.convert import Converted
    from astrago_trainer.core.platform import Framework

Json = dict[str, Any]

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
    from astrago_trainer.core.seeds import seed_body_to_job_spec

    spec = seed_body_to_job_spec(document)
    return Converted(spec.model_dump(mode="json", exclude_defaults=True), ())


def _convert(documents: Sequence[Json], shown: str) -> Converted:
    from astrago_trainer.core.convert import LEGACY_KINDS, legacy_to_job, trainjob_to_job

    beside = [each for each in documents if each.get("kind") == "ConfigMap" and _name(each)]
    jobs = [each for each in documents if each not in beside]
    kinds = [str(each.get("kind")) for each in jobs]
    if kinds == ["TrainJob"]:
        from astrago_trainer.catalogue import default_platform

        platform = default_platform()
        # The platform's own scripts: the service brings them along by itself.
        own = {each.name for each in platform.system_scripts}
        beside = [each for each in beside if _name(each) not in own]
        found = trainjob_to_job(jobs[0], platform, _frameworks(), beside)
        used = str(found.job)
        unused = [_name(each) for each in beside if not _is_code(each, found.job)]
        if unused and any(name not in used for name in unused):
            raise _refusal(
                shown,
                "kind-not-taken",
                f"ConfigMap {', '.join(unused)} is not the code of the job.",
                "Make it with kubectl first, and leave it out of the file.",
            )
        return found
    if len(kinds) == 1 and kinds[0] in LEGACY_KINDS and not beside:
        return legacy_to_job(jobs[0])
    raise _refusal(
        shown,
        "kind-not-taken",
        f"expected one job file, TrainJob, {', '.join(sorted(LEGACY_KINDS))}; found "
        f"{', '.join(str(each.get('kind')) for each in documents)}.",
        "Put each job into its own file, and apply other objects with kubectl.",
    )


def _is_code(config_map: Json, job: Json) -> bool:
    code = job.get("code") or {}
    return bool(code.get("files") == (config_map.get("data") or {}))


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
