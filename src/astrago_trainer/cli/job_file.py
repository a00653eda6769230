"""A job file to the body of a request; what is no job file is refused with the way on."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.errors import Problem, Unreadable
from astrago_trainer.manifests import load_documents

Json = dict[str, Any]

_SEED_FIELDS = frozenset({"user_id", "training_code"})


def read_job_file(file: str) -> Json:
    """Raises Unreadable; what is in the fields is checked by the service, all at once."""
    documents = load_documents(file)
    shown = "<stdin>" if file == "-" else file
    kinds = [str(each["kind"]) for each in documents if "kind" in each]
    if kinds:
        raise _refusal(
            shown,
            "kind-not-taken",
            f"expected a job file, found {', '.join(kinds)}.",
            f"Manifests are not taken yet: apply them with kubectl, or write the job as a job file. "
            f"astrago preview -f {shown} shows what a TrainJob becomes.",
        )
    if len(documents) != 1:
        raise _refusal(
            shown,
            "several-documents",
            f"expected one job, found {len(documents)} documents.",
            "Put each job into its own file.",
        )
    document = dict(documents[0])
    if not _SEED_FIELDS & document.keys():
        return document
    from astrago_trainer.core.seeds import seed_body_to_job_spec

    spec = seed_body_to_job_spec(document)
    return spec.model_dump(mode="json", exclude_defaults=True)


def _refusal(path: str, code: str, message: str, remedy: str) -> Unreadable:
    return Unreadable([Problem(path, code, message, remedy)])
