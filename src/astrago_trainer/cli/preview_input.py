"""From the files of the command line to a preview: which kind of thing each is, and its runtime."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from astrago_trainer import catalogue
from astrago_trainer.core.errors import InvalidRequest, Problem, Unreadable
from astrago_trainer.core.preview import Preview, preview_job, preview_pair
from astrago_trainer.manifests import items_of, load_documents, one_of_kind
from astrago_trainer.platform_file import platform_here

if TYPE_CHECKING:
    from astrago_trainer.core.platform import TrainerVersion
    from astrago_trainer.core.spec import JobSpec

Document = Mapping[str, Any]

_TRAINJOB = ("TrainJob",)
_LEGACY = ("PyTorchJob", "TFJob", "MPIJob", "XGBoostJob", "PaddleJob", "MXJob")
_OR_FILE = "or give its manifest with --runtime FILE"
_SEED_FIELDS = frozenset({"user_id", "training_code"})


def read_preview(
    *, file: str, runtime: str | None, version: TrainerVersion, is_trainjob: bool
) -> Preview:
    """The preview of what `file` holds; without `runtime`, a file or a name, the job decides."""
    documents = items_of(load_documents(file))
    if is_trainjob or any("kind" in each or "apiVersion" in each for each in documents):
        trainjob = _find_trainjob(documents, file)
        found = _runtime_of(trainjob, documents, runtime, version)
        beside = _config_maps_beside(trainjob, documents, file)
        if _is_stand_in(found, trainjob, documents, runtime):
            from astrago_trainer.core.convert.trainjob import stand_in

            renamed = {
                **trainjob,
                "spec": {**trainjob["spec"], "runtimeRef": {"name": _name(found)}},
            }
            warnings = (stand_in(_reference(trainjob)), *beside)
            return _warned(preview_pair(found, renamed, version), warnings)
        return _warned(preview_pair(found, trainjob, version), beside)
    if len(documents) > 1:
        raise Unreadable(
            [
                Problem(
                    path=_shown(file),
                    code="several-documents",
                    message=f"expected one job, found {len(documents)} documents.",
                    remedy="Put each job into its own file.",
                )
            ]
        )
    return _preview_job(documents[0], file, runtime, version)


def _find_trainjob(documents: Sequence[Document], file: str) -> Document:
    legacy = [each["kind"] for each in documents if each.get("kind") in _LEGACY]
    if legacy:
        raise Unreadable(
            [
                Problem(
                    path=_shown(file),
                    code="legacy-kind",
                    message=f"expected a TrainJob, found {legacy[0]} of the Training Operator v1.",
                    remedy=f"Make a job file of it: astrago convert -f {_shown(file)}",
                )
            ]
        )
    return one_of_kind(documents, _TRAINJOB, "TrainJob", source=_shown(file))


def _runtime_of(
    trainjob: Document,
    documents: Sequence[Document],
    runtime: str | None,
    version: TrainerVersion,
) -> Document:
    """The one that was named, else one that stands in the same file, else the catalogue's."""
    if runtime is not None:
        return _load_runtime(runtime)
    name = _reference(trainjob)
    beside = [each for each in documents if each.get("kind") in catalogue.RUNTIME_KINDS]
    named = [each for each in beside if _name(each) == name]
    if named or beside:
        return (named or beside)[0]
    if not name:
        raise InvalidRequest(
            [
                Problem(
                    path="spec.runtimeRef.name",
                    code="FieldValueRequired",
                    message="must name a runtime; found nothing.",
                    remedy=f"Name one of {', '.join(catalogue.names())}, or give --runtime FILE.",
                )
            ]
        )
    if name not in catalogue.names():
        # As `apply` and `convert` do; imported here, because reading two manifests must start quickly.
        from astrago_trainer.core.convert.trainjob import UPSTREAM_RUNTIMES

        framework = UPSTREAM_RUNTIMES.get(name)
        if framework is not None:
            platform = platform_here(version)
            ours = platform.runtime_for(framework, runtime=None, has_git_code=False)
            return _from_catalogue(ours, "runtime", _OR_FILE)
    return _from_catalogue(name, "spec.runtimeRef.name", _OR_FILE)


def _config_maps_beside(
    trainjob: Document, documents: Sequence[Document], file: str
) -> tuple[Problem, ...]:
    """ConfigMaps that the job mounts and that a file in the same folder has; `apply` wants both files."""
    here = {_name(each) for each in documents if each.get("kind") == "ConfigMap"}
    names = set(_mounted(trainjob)) - here
    if not names:
        return ()
    from astrago_trainer.cli.job_file import missing_config_maps

    own = {each.name for each in platform_here().system_scripts}  # the platform brings these along
    return tuple(
        each for each in missing_config_maps(names - own, [file]) if each.remedy.startswith("Give")
    )


def _mounted(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        source = value.get("configMap")
        if isinstance(source, Mapping) and isinstance(source.get("name"), str):
            yield source["name"]
    inner = value.values() if isinstance(value, Mapping) else value
    for each in inner if isinstance(value, Mapping | list) else ():
        yield from _mounted(each)


def _is_stand_in(
    found: Document, trainjob: Document, documents: Sequence[Document], runtime: str | None
) -> bool:
    """Whether a runtime of ours is shown in place of one of Kubeflow Trainer's."""
    is_given = runtime is not None or any(
        each.get("kind") in catalogue.RUNTIME_KINDS for each in documents
    )
    return not is_given and _name(found) != _reference(trainjob)


def _load_runtime(runtime: str) -> Document:
    if runtime in catalogue.names() and not Path(runtime).is_file():
        return catalogue.load_runtime(runtime)
    is_name = "/" not in runtime and not runtime.endswith((".yaml", ".yml", ".json", "-"))
    if is_name and not Path(runtime).exists():
        return _from_catalogue(runtime, "--runtime", "or name a file")
    return one_of_kind(
        load_documents(runtime), catalogue.RUNTIME_KINDS, "runtime", source=_shown(runtime)
    )


def _from_catalogue(name: str, path: str, otherwise: str) -> Document:
    try:
        return catalogue.load_runtime(name)
    except InvalidRequest as error:
        raise InvalidRequest(
            Problem(path, each.code, each.message, f"{each.remedy.rstrip('.')}; {otherwise}.")
            for each in error.problems
        ) from None


def _preview_job(
    document: Document, file: str, runtime: str | None, version: TrainerVersion
) -> Preview:
    spec, warnings = _job_spec(document, file)
    platform = platform_here(version)
    if runtime is not None:
        return _warned(preview_job(spec, _load_runtime(runtime), platform), warnings)
    name = platform.runtime_for(
        spec.framework,
        runtime=spec.runtime,
        has_git_code=spec.code is not None and spec.code.git is not None,
    )
    found = _from_catalogue(name, "runtime", _OR_FILE)
    return _warned(preview_job(spec, found, platform), warnings)


def _warned(preview: Preview, warnings: tuple[Problem, ...]) -> Preview:
    return replace(preview, problems=(*preview.problems, *warnings))


def _job_spec(document: Document, file: str) -> tuple[JobSpec, tuple[Problem, ...]]:
    """A request body of the first API is known by fields that a job file does not have."""
    try:
        if _SEED_FIELDS & document.keys():
            from astrago_trainer.core.seeds import read_seed_body

            return read_seed_body(document)
        from astrago_trainer.cli.job_file import with_defaults
        from astrago_trainer.core.spec import parse_job_spec

        return parse_job_spec(with_defaults(dict(document))), ()
    except InvalidRequest as error:
        raise InvalidRequest(
            Problem(
                path=f"{_shown(file)}: {each.path}" if each.path else _shown(file),
                code=each.code,
                message=each.message,
                remedy=each.remedy,
                severity=each.severity,
            )
            for each in error.problems
        ) from None


def _reference(trainjob: Document) -> str:
    spec = trainjob.get("spec")
    reference = spec.get("runtimeRef") if isinstance(spec, Mapping) else None
    name = reference.get("name") if isinstance(reference, Mapping) else None
    return name if isinstance(name, str) else ""


def _name(document: Document) -> Any:
    metadata = document.get("metadata")
    return metadata.get("name") if isinstance(metadata, Mapping) else None


def _shown(file: str) -> str:
    return "<stdin>" if file == "-" else file
