"""The reads that pages and loops repeat all day: a job, a page of jobs, the status of the first API.

They are answered from the board's own JSON, before any framework: eight thousand a second on one core leave 120
microseconds for each. The routes of FastAPI declare the same three and call the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl
from zlib import crc32

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.lifecycle import Phase, seed_state
from astrago_trainer.server import rules
from astrago_trainer.server.problems import encoded
from astrago_trainer.service.board import EVERYWHERE, MOST_PER_PAGE, Query, Record
from astrago_trainer.service.identity import Identity, Role
from astrago_trainer.service.service import Service
from astrago_trainer.store.jobs import Job

_NAMESPACES = "/api/v1/namespaces/"
_FIRST = "/api/trainjob/"
_STATUS = "/api/trainjob/{trainjob_name}/status"
_MOST_TEXT = 200


class Read(NamedTuple):
    """An answer with status 200, before it is known whether the caller has it already."""

    body: bytes
    etag: str


class Fast(NamedTuple):
    """A request that is answered here."""

    route: str
    read: Read


def answer(service: Service, identity: Identity | None, path: str, query: bytes) -> Fast | None:
    """None for every other path. Raises what the caller is told, as a route would."""
    if path.startswith(_NAMESPACES):
        parts = path[len(_NAMESPACES) :].split("/")
        if len(parts) == 3 and parts[1] == "jobs" and parts[2]:
            namespace, _, name = parts
            rules.check(rules.RULES["GET", rules.JOB], identity, namespace, name)
            return Fast(rules.JOB, job(service, namespace, name))
        if len(parts) == 2 and parts[1] == "jobs":
            rules.check(rules.RULES["GET", rules.JOBS], identity, parts[0], None)
            return Fast(rules.JOBS, page(service, parts[0], parameters(query)))
    elif path.startswith(_FIRST) and path.endswith("/status"):
        name = path[len(_FIRST) : -len("/status")]
        if name and "/" not in name:
            rules.check(rules.RULES["GET", _STATUS], identity, None, name)
            assert identity is not None
            return Fast(_STATUS, first_status(service, identity, name, parameters(query)))
    return None


def job(service: Service, namespace: str, name: str) -> Read:
    record = service.get(namespace, name)
    return Read(record.body, record.etag)


def page(service: Service, namespace: str, given: Mapping[str, str]) -> Read:
    found = service.list(
        EVERYWHERE if namespace == rules.ALL_NAMESPACES else namespace,
        _query(given),
        limit=_limit(given),
        token=given.get("page_token"),
    )
    token = b"null" if found.next_token is None else b'"' + found.next_token.encode() + b'"'
    items = b",".join([record.body for record in found.records])
    return Read(
        b'{"items":[' + items + b'],"next_page_token":' + token + b"}",
        _page_etag(found.records, found.next_token),
    )


def first_status(service: Service, identity: Identity, name: str, given: Mapping[str, str]) -> Read:
    record = first_job(service, identity, Role.VIEWER, name, given.get("namespace"))
    return Read(encoded(status_view(record.job)), record.etag)


def first_job(
    service: Service, identity: Identity, role: Role, name: str, namespace: str | None
) -> Record:
    """The job that a request of the first API means; its namespace is in the query."""
    if not namespace:
        raise InvalidRequest(
            [Problem("namespace", "FieldValueRequired", "must be given: ?namespace=….")]
        )
    rules.enter(role, identity, namespace, name)
    return service.get(namespace, name)


def status_view(job: Job) -> dict[str, object]:
    """M23, M24."""
    outcome = None if job.outcome is None else Phase(job.outcome)
    return {
        "trainjob_name": job.name,
        "namespace": job.namespace,
        "state": seed_state(Phase(job.phase), outcome=outcome),
        "message": job.message,
        "created_at": seconds_to_text(job.created_at),
        "completed_at": seconds_to_text(job.finished_at),
        "phase": job.phase,
        "reason": job.reason,
    }


def seconds_to_text(seconds: float | None) -> str | None:
    """As the first API writes times: to the second."""
    from datetime import UTC, datetime

    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parameters(query: bytes) -> dict[str, str]:
    """Of the query string; of one that comes twice the last."""
    if not query:
        return {}
    try:
        return dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=50))
    except ValueError:
        problem = Problem("query", "FieldValueInvalid", "must have at most 50 parameters.")
        raise InvalidRequest([problem]) from None


def _query(given: Mapping[str, str]) -> Query | None:
    phases = frozenset(filter(None, given.get("phase", "").split(",")))
    problems = [
        Problem(
            "phase",
            "FieldValueNotSupported",
            f"there is no phase {phase[:40]!r}.",
            f"The phases are {', '.join(Phase)}.",
        )
        for phase in sorted(phases - _PHASES)[:10]
    ]
    problems += [
        Problem(name, "FieldValueTooLong", f"must have at most {_MOST_TEXT} characters.")
        for name in ("owner", "framework", "q")
        if len(given.get(name, "")) > _MOST_TEXT
    ]
    if problems:
        raise InvalidRequest(problems)
    query = Query(phases, given.get("owner", ""), given.get("framework", ""), given.get("q", ""))
    return None if query == _EVERYTHING else query


def _limit(given: Mapping[str, str]) -> int:
    text = given.get("limit")
    if text is None:
        return 50
    if text.isascii() and text.isdecimal() and len(text) < 5 and 1 <= int(text) <= MOST_PER_PAGE:
        return int(text)
    message = f"must be a number from 1 to {MOST_PER_PAGE}; found {text[:20]!r}."
    raise InvalidRequest([Problem("limit", "FieldValueInvalid", message)])


def _page_etag(records: tuple[Record, ...], token: str | None) -> str:
    """Of numbers alone: what a page shows changes with a version, and with who is on it."""
    seen = tuple([(record.job.number, record.job.version) for record in records])
    rest = 0 if token is None else crc32(token.encode())
    return f'"{hash((seen, rest)) & 0xFFFFFFFFFFFFFFFF:x}"'


_PHASES = frozenset(phase.value for phase in Phase)
_EVERYTHING = Query()
