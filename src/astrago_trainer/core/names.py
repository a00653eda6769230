"""Names of the objects a job becomes, and the rules Kubernetes, Trainer and JobSet have for them.

Every name follows from what is passed in: no clock, no random number. The same user, time or key
gives the same name, so that a repeated request finds its own objects instead of making new ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from astrago_trainer.core.errors import InvalidRequest, Problem

MAX_JOB_NAME = 48
"""63 less `-node-0-9-abcde`: the longest name that runs on up to ten nodes (M122)."""
MAX_USER_ID = 29
"""48 less `-job-YYYYMMDDhhmmss` (M17, M122)."""
MAX_LABEL = 63

RESERVED_NAMESPACES = ("kube-", "kubeflow", "astrago", "default")
"""No tenant gets a namespace that begins like this: clusters and this platform use them."""

_RFC1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_RFC1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LETTERS_DIGITS = re.compile(r"([a-z]+)([0-9]+)")
_LETTERS_DASH_DIGITS = re.compile(r"[a-z]+-[0-9]+")


def job_name(user_id: str, now_text: str, suffix: str = "", *, limit: int = MAX_JOB_NAME) -> str:
    """`{user_id}-job-{YYYYMMDDhhmmss}`, with `-{suffix}` for a second one in the same second (X2).

    A user id that is no valid label, or too long for `limit` (from `max_trainjob_name`), is
    shortened with a hash.
    """
    if re.fullmatch(r"[0-9]{14}", now_text) is None:
        raise ValueError(f"now_text must be YYYYMMDDhhmmss, not {now_text!r}")
    if re.fullmatch(r"[a-z0-9]*", suffix) is None:
        raise ValueError(f"suffix may hold lower-case letters and digits only, not {suffix!r}")
    tail = f"-job-{now_text}-{suffix}" if suffix else f"-job-{now_text}"
    return _slug(user_id, limit - len(tail)) + tail


def job_name_from_key(user_id: str, key: str, *, limit: int = MAX_JOB_NAME) -> str:
    """The name that every request with this Idempotency-Key gets; as long as one with a time."""
    tail = f"-job-{_digest(user_id, key)[:14]}"
    return _slug(user_id, limit - len(tail)) + tail


def code_configmap_name(user_id: str, digest: str | None = None) -> str:
    """`{user_id}-train-script` (M14), with `-{hash}` where that one holds other code (X4)."""
    base = f"{_slug(user_id, MAX_USER_ID)}-train-script"
    return base if digest is None else f"{base}-{digest[:10]}"


def job_runtime_name(job: str) -> str:
    """The TrainingRuntime that belongs to this job alone; its name may be longer than a label."""
    return f"{job}-runtime"


def tenant_namespace(user_id: str) -> str:
    """The namespace of a user: `user123` lives in `user-123` (M5); raises InvalidRequest where that
    is reserved.

    No two users share one. Letters followed by digits get a dash between them; an id that is a
    plain label already stays; every other id (also one that looks like another's namespace) gets a
    hash after `--`, which the first two never hold.
    """
    match = _LETTERS_DIGITS.fullmatch(user_id)
    namespace = user_id if match is None else f"{match[1]}-{match[2]}"
    is_plain = (
        _RFC1035.fullmatch(namespace) is not None
        and len(namespace) <= MAX_LABEL
        and "--" not in namespace
        and (match is not None or _LETTERS_DASH_DIGITS.fullmatch(namespace) is None)
    )
    if not is_plain:
        namespace = f"{_clean(user_id)[:41].rstrip('-') or 'u'}--{_digest(user_id)[:20]}"
    if namespace.startswith(RESERVED_NAMESPACES):
        raise InvalidRequest(
            [
                Problem(
                    path="user",
                    code="FieldValueForbidden",
                    message=f"the namespace {namespace!r} would be reserved for the cluster.",
                    remedy=f"Begin the user id with none of {', '.join(RESERVED_NAMESPACES)}.",
                )
            ]
        )
    return namespace


def max_trainjob_name(replicated_jobs: Sequence[tuple[str, int]]) -> int:
    """How long a TrainJob's name may be, given its replicated jobs and the pods of each; may be
    zero or less.

    JobSet refuses a set whose longest pod name, `<name>-<rjob>-0-<last index>-abcde`, has more than
    63 characters, and the TrainJob then hangs without a condition (trainer-facts 1.9).
    """
    pods = (len(f"-{name}-0-{max(count, 1) - 1}-abcde") for name, count in replicated_jobs)
    return MAX_LABEL - max(pods, default=0)


def pod_hostname(job: str, index: int, *, replicated_job: str = "node") -> str:
    """The host name of a pod: worker `index` of `job`."""
    return f"{job}-{replicated_job}-0-{index}"


def pod_address(job: str, index: int, *, replicated_job: str = "node") -> str:
    """Where other pods of the namespace reach it; the headless service is called as the job."""
    return f"{pod_hostname(job, index, replicated_job=replicated_job)}.{job}"


def pod_fqdn(job: str, namespace: str, index: int, *, replicated_job: str = "node") -> str:
    """Its full name in the cluster's DNS, as TF_CONFIG lists it (M13)."""
    return f"{pod_address(job, index, replicated_job=replicated_job)}.{namespace}.svc.cluster.local"


def check_trainjob_name(
    name: str, *, limit: int = MAX_JOB_NAME, path: str = "name"
) -> list[Problem]:
    """M121 and M122: RFC 1035, and short enough for the names of its pods."""
    return _check_label(_RFC1035, "begin with a letter", name, limit=limit, path=path)


def check_user_id(user_id: str, *, path: str = "user") -> list[Problem]:
    """M122: it begins object names, so it follows their rule and leaves room for the rest."""
    return _check_label(_RFC1035, "begin with a letter", user_id, limit=MAX_USER_ID, path=path)


def check_namespace(namespace: str, *, path: str = "namespace") -> list[Problem]:
    """RFC 1123, at most 63 characters; nobody trains in the cluster's own namespaces."""
    problems = _check_label(
        _RFC1123, "begin with a letter or digit", namespace, limit=MAX_LABEL, path=path
    )
    if namespace.startswith("kube-"):
        problems.append(
            Problem(
                path=path,
                code="FieldValueForbidden",
                message=f"{namespace!r} belongs to the cluster itself.",
                remedy="Name the namespace that was made for you at sign-up.",
            )
        )
    return problems


def _check_label(
    rule: re.Pattern[str], begins: str, name: str, *, limit: int, path: str
) -> list[Problem]:
    problems = []
    shown = name if len(name) <= 70 else f"{name[:67]}…"
    if rule.fullmatch(name) is None:
        problems.append(
            Problem(
                path=path,
                code="FieldValueInvalid",
                message=(
                    f"must hold only lower-case letters, digits and '-', {begins} and not end with "
                    f"'-'; found {shown!r}."
                ),
                remedy=f"For example {_clean(name)[:limit].strip('-') or 'user'}.",
            )
        )
    if len(name) > limit:
        problems.append(
            Problem(
                path=path,
                code="FieldValueTooLong",
                message=f"must have at most {limit} characters; found {len(name)}: {shown!r}.",
                remedy="Names of pods are built from it and may have 63 characters in all.",
            )
        )
    return problems


def _slug(text: str, limit: int) -> str:
    """`text` where it is a label that fits `limit`, else what is left of it and a hash."""
    if len(text) <= limit and _RFC1035.fullmatch(text):
        return text
    mark = _digest(text)[:8]
    head = _clean(text)[: max(limit - 9, 0)].strip("-")
    return f"{head}-{mark}" if head else f"u{mark}"[: max(limit, 2)]


def _clean(text: str) -> str:
    """ASCII letters, digits and single dashes; begins with a letter."""
    cleaned = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return cleaned if cleaned[:1].isalpha() or not cleaned else f"u{cleaned}"


def _digest(*parts: str) -> str:
    """Parts are kept apart by their lengths, so that ("ab", "c") and ("a", "bc") differ."""
    hashed = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(data) + data)
    return hashed.hexdigest()
