"""Jobs in the database: accepted, changed under guard, removed, read.

A change names the version it was decided on; when the row has another one by now, nothing is written and the caller
decides anew. That, and one name for one job, is what keeps two servers from doubling or losing anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, update

from astrago_trainer.store.audit import AuditRow, insert_audit
from astrago_trainer.store.outbox import DeliveryRow, insert_deliveries
from astrago_trainer.store.tables import (
    attempts,
    clock,
    codes,
    documents,
    events,
    idempotency_keys,
    jobs,
    pods,
    removals,
    servers,
    texts,
)
from astrago_trainer.store.transaction import Transaction, insert_into

MOST_EVENTS = 1000
"""Of one job; older ones go. A job that restarts for weeks must not fill the disk."""


class Job(NamedTuple):
    """A row of `jobs`; the fields are its columns."""

    number: int
    uid: str
    namespace: str
    name: str
    owner: str
    framework: str
    runtime: str
    nodes: int
    gpus: int
    engine: str
    code_name: str | None
    ttl_seconds: int | None
    max_restarts: int
    created_at: float
    is_suspended: bool = False
    is_deleting: bool = False
    keeps_code: bool = False
    """When it is deleted, the name of its code stays taken."""
    wanted_run: int = 1
    phase: str = "Pending"
    outcome: str | None = None
    """How its run ended, also when it is being deleted."""
    reason: str = ""
    message: str = ""
    run: int = 1
    """Grows when people restart it, and when the engine lost it: each run is a job of its own for the engine."""
    attempt: int = 0
    lost: int = 0
    """Restarts of earlier runs that count for this one, because the engine lost them."""
    restarts: int = 0
    is_handed: bool = False
    """The engine has had this run."""
    is_reaped: bool = False
    """Its time is over: the engine has forgotten it, the history is kept."""
    started_at: float | None = None
    finished_at: float | None = None
    settled_at: float | None = None
    """When its end was noted here; its time runs from then."""
    events: int = 0
    engine_events: int = -1
    """The last event of the engine that is in the history."""
    server: str | None = None
    """Who looks after it."""
    version: int = 1
    stamp: int = 0
    cloned_from: str | None = None
    """The name that the job it was made of had; its uid tells whether the name still means that one."""
    cloned_from_uid: str | None = None


class Documents(NamedTuple):
    """The long texts of a job, as JSON."""

    digest: str
    """Of what runs and what it refers to: equal ones did the same."""
    spec: str
    """What was asked for."""
    runtime: str
    """The runtime as it was then: a later one does not change this job."""
    objects: str
    """What was rendered, in the order to apply it."""
    effective: str
    """What runs."""
    original: str | None = None
    """What the job asked for that this one was cloned from: kept, because that one may be deleted."""


class Original(NamedTuple):
    """A job that another one is made of."""

    name: str
    uid: str
    spec: str
    """What it asked for, as JSON."""


class Event(NamedTuple):
    """Something that happened to a job."""

    number: int
    time: float
    actor: str
    reason: str
    message: str


class Attempt(NamedTuple):
    run: int
    attempt: int
    phase: str
    reason: str
    message: str
    started_at: float | None
    ended_at: float | None


class PodRow(NamedTuple):
    run: int
    name: str
    attempt: int
    replicated_job: str
    pod_index: int
    phase: str
    restarts: int
    exit_code: int | None
    reason: str
    node: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An Idempotency-Key of a request."""

    key: str
    digest: str
    """Of the body: the same key with another one is a mistake of the client."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """All of a submit."""

    job: Job
    """Its number, version and stamp are given here."""
    digest: str
    spec: str
    runtime: tuple[str, str]
    """Hash and text."""
    shared: tuple[str, str] | None
    """Hash and text of the System ConfigMap."""
    objects: str
    effective: str
    code_digest: str | None
    events: tuple[Event, ...]
    audit: AuditRow
    key: Key | None = None
    answer: str = ""
    """What a repeated request with this key is told."""
    original: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    job: Job


@dataclass(frozen=True, slots=True)
class Repeated:
    """The key was used before."""

    digest: str
    uid: str
    answer: str


@dataclass(frozen=True, slots=True)
class Taken:
    """Another job has the name, or the name of the code stands for other code."""

    what: str


@dataclass(frozen=True, slots=True)
class Change:
    """A guarded change of one job, and all that belongs into the same transaction."""

    before: Job
    values: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    """Their numbers follow `before.events`."""
    attempts: tuple[Attempt, ...] = ()
    pods: tuple[PodRow, ...] = ()
    audit: AuditRow | None = None
    deliveries: tuple[DeliveryRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Removal:
    """A job goes for good; the audit stays."""

    job: Job
    time: float
    audit: AuditRow


_COLUMNS = [jobs.c[name] for name in Job._fields]
_UPDATE_GUARD = (jobs.c.number == bindparam("at_number")) & (
    jobs.c.version == bindparam("at_version")
)

_FIND_KEY = select(
    idempotency_keys.c.digest, idempotency_keys.c.uid, idempotency_keys.c.answer
).where(
    (idempotency_keys.c.namespace == bindparam("at_namespace"))
    & (idempotency_keys.c.key == bindparam("at_key"))
)


def insert_jobs(tx: Transaction, news: Sequence[NewJob]) -> list[Accepted | Repeated | Taken]:
    """Accepts each, unless its key was used or its name is taken; then nothing of it is written."""
    repeated = _claim_keys(tx, news)
    answers: list[Accepted | Repeated | Taken | None] = [repeated.get(new.job.uid) for new in news]
    fresh = [new for new, answer in zip(news, answers, strict=True) if answer is None]
    refused = _claim_codes(tx, fresh)
    fresh = [new for new in fresh if new.job.uid not in refused]
    numbers = _insert_rows(tx, fresh)
    taken = [new for new in fresh if new.job.uid not in numbers]
    for new in taken:
        _release_code(tx, new.job)
    lost = {*refused, *(new.job.uid for new in taken)}
    if lost:
        tx.connection.execute(delete(idempotency_keys).where(idempotency_keys.c.uid.in_(lost)))
    fresh = [new for new in fresh if new.job.uid in numbers]
    if fresh:
        _insert_history(tx, fresh, numbers)
    for index, new in enumerate(news):
        uid, answer = new.job.uid, answers[index]
        if isinstance(answer, Repeated) and answer.uid in lost:
            # It repeats a request of this very transaction, which was not accepted.
            answers[index] = Taken("code" if answer.uid in refused else "name")
        elif answer is None:
            answers[index] = (
                Taken("code") if uid in refused
                else Taken("name") if uid not in numbers
                else Accepted(_stored(new, numbers[uid], tx.stamp))
            )  # fmt: skip
    return [answer for answer in answers if answer is not None]


def _claim_keys(tx: Transaction, news: Sequence[NewJob]) -> dict[str, Repeated]:
    """The requests whose key is older than they are, by uid."""
    rows = [
        {
            "namespace": new.job.namespace,
            "key": new.key.key,
            "digest": new.key.digest,
            "uid": new.job.uid,
            "answer": new.answer,
            "created_at": new.job.created_at,
        }
        for new in news
        if new.key is not None
    ]
    if not rows:
        return {}
    tx.connection.execute(_insert_unless_there(idempotency_keys, tx.dialect), rows)
    found: dict[str, Repeated] = {}
    for row in rows:
        place = {"at_namespace": row["namespace"], "at_key": row["key"]}
        known = tx.connection.execute(_FIND_KEY, place).one()
        if known.uid != row["uid"]:
            found[str(row["uid"])] = Repeated(*known)
    return found


def _claim_codes(tx: Transaction, news: Sequence[NewJob]) -> set[str]:
    """Counts the uses of each code's name; the uids whose name stands for other code."""
    users: dict[tuple[str, str, str], list[str]] = {}
    for new in news:
        if new.job.code_name is not None and new.code_digest is not None:
            code = (new.job.namespace, new.job.code_name, new.code_digest)
            users.setdefault(code, []).append(new.job.uid)
    refused = set[str]()
    for (namespace, name, digest), uids in users.items():
        row = {"namespace": namespace, "name": name, "digest": digest, "uses": len(uids)}
        if tx.connection.execute(_use_code(tx.dialect), row).first() is None:
            refused.update(uids)
    return refused


@cache
def _use_code(dialect: str) -> Any:
    statement = insert_into(codes, dialect)
    return statement.on_conflict_do_update(
        index_elements=["namespace", "name"],
        set_={"uses": codes.c.uses + statement.excluded.uses},
        where=codes.c.digest == statement.excluded.digest,
    ).returning(codes.c.uses)


def _release_code(tx: Transaction, job: Job) -> None:
    if job.code_name is None:
        return
    place = (codes.c.namespace == job.namespace) & (codes.c.name == job.code_name)
    tx.connection.execute(update(codes).where(place).values(uses=codes.c.uses - 1))
    if not job.keeps_code:
        tx.connection.execute(delete(codes).where(place & (codes.c.uses <= 0)))


def _insert_rows(tx: Transaction, news: Sequence[NewJob]) -> dict[str, int]:
    """The numbers that the jobs were given, by uid; a name that is taken gets none."""
    if not news:
        return {}
    rows = [{**new.job._asdict(), "stamp": tx.stamp, "version": 1} for new in news]
    for row in rows:
        del row["number"]
    found = tx.connection.execute(_insert_job(tx.dialect), rows)
    return {row.uid: row.number for row in found}


@cache
def _insert_job(dialect: str) -> Any:
    return _insert_unless_there(jobs, dialect).returning(jobs.c.uid, jobs.c.number)


@cache
def _insert_unless_there(table: Table, dialect: str) -> Any:
    return insert_into(table, dialect).on_conflict_do_nothing()


def _insert_history(tx: Transaction, news: Sequence[NewJob], numbers: Mapping[str, int]) -> None:
    shared = {text[0]: text for new in news for text in (new.runtime, new.shared) if text}
    tx.connection.execute(
        _insert_unless_there(texts, tx.dialect),
        [{"digest": digest, "text": text} for digest, text in sorted(shared.values())],
    )
    tx.connection.execute(
        insert(documents),
        [
            {
                "job": numbers[new.job.uid],
                "digest": new.digest,
                "spec": new.spec,
                "runtime": new.runtime[0],
                "shared": new.shared[0] if new.shared else None,
                "objects": new.objects,
                "effective": new.effective,
                "original": new.original,
            }
            for new in news
        ],
    )
    _insert_events(tx, [(numbers[new.job.uid], new.events) for new in news])
    insert_audit(tx, [new.audit for new in news])


def _stored(new: NewJob, number: int, stamp: int) -> Job:
    return new.job._replace(number=number, stamp=stamp, version=1)


def change_jobs(tx: Transaction, changes: Sequence[Change]) -> list[Job | None]:
    """The jobs as they are now; None for each that is no longer what the change was decided on."""
    results: list[Job | None] = []
    done: list[tuple[Change, Job]] = []
    for change in changes:
        after = change.before._replace(
            **change.values,
            events=change.before.events + len(change.events),
            version=change.before.version + 1,
            stamp=tx.stamp,
        )
        written = {*change.values, "events", "version", "stamp"}
        statement = update(jobs).where(_UPDATE_GUARD)
        values = {name: getattr(after, name) for name in sorted(written)}
        place = {"at_number": after.number, "at_version": change.before.version}
        if tx.connection.execute(statement, {**values, **place}).rowcount == 1:
            results.append(after)
            done.append((change, after))
        else:
            results.append(None)
    _insert_events(tx, [(after.number, change.events) for change, after in done])
    _forget_old_events(tx, done)
    _put_attempts(tx, done)
    _put_pods(tx, done)
    insert_audit(tx, [change.audit for change, _ in done if change.audit is not None])
    insert_deliveries(tx, [row for change, _ in done for row in change.deliveries])
    return results


def _insert_events(tx: Transaction, histories: Iterable[tuple[int, Sequence[Event]]]) -> None:
    rows = [{"job": number, **event._asdict()} for number, told in histories for event in told]
    if rows:
        tx.connection.execute(insert(events), rows)


def _forget_old_events(tx: Transaction, done: Sequence[tuple[Change, Job]]) -> None:
    """Once every hundred events, so that it costs nothing in between."""
    for change, after in done:
        if after.events > MOST_EVENTS and after.events // 100 > change.before.events // 100:
            old = (events.c.job == after.number) & (events.c.number < after.events - MOST_EVENTS)
            tx.connection.execute(delete(events).where(old))


def _put_attempts(tx: Transaction, done: Sequence[tuple[Change, Job]]) -> None:
    rows = [
        {"job": job.number, **each._asdict()} for change, job in done for each in change.attempts
    ]
    if rows:
        tx.connection.execute(_put(attempts, tx.dialect), rows)


def _put_pods(tx: Transaction, done: Sequence[tuple[Change, Job]]) -> None:
    rows = [{"job": job.number, **pod._asdict()} for change, job in done for pod in change.pods]
    if rows:
        tx.connection.execute(_put(pods, tx.dialect), rows)


@cache
def _put(table: Table, dialect: str) -> Any:
    """Inserts a row, or replaces the one that has its key."""
    statement = insert_into(table, dialect)
    keys = [column.name for column in table.primary_key]
    others = {each.name: statement.excluded[each.name] for each in table.c if each.name not in keys}
    if "started_at" in others:  # a beginning is told once
        others["started_at"] = func.coalesce(table.c.started_at, others["started_at"])
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def remove_jobs(tx: Transaction, gone: Sequence[Removal]) -> list[bool]:
    """Whether each was there to be removed; the second of two removals changes nothing."""
    results = []
    for removal in gone:
        job = removal.job
        statement = delete(jobs).where(jobs.c.number == job.number)
        is_gone = tx.connection.execute(statement).rowcount == 1
        results.append(is_gone)
        if is_gone:
            _release_code(tx, job)
            row = {"job": job.number, "stamp": tx.stamp, "time": removal.time}
            tx.connection.execute(insert(removals), row)
            insert_audit(tx, [removal.audit])
    return results


def forget_removals(tx: Transaction, before: Sequence[float]) -> list[None]:
    """Those that every server has heard of by now."""
    for time in before:
        tx.connection.execute(delete(removals).where(removals.c.time < time))
    return [None] * len(before)


def forget_keys(tx: Transaction, before: Sequence[float]) -> list[None]:
    """Keys that nobody repeats any more."""
    for time in before:
        tx.connection.execute(delete(idempotency_keys).where(idempotency_keys.c.created_at < time))
    return [None] * len(before)


def has_key(connection: Connection, namespace: str, key: str) -> bool:
    """Whether a request with this Idempotency-Key was accepted."""
    found = connection.execute(_FIND_KEY, {"at_namespace": namespace, "at_key": key})
    return found.one_or_none() is not None


def load_jobs(
    connection: Connection, make: Callable[[Job], Job] = lambda job: job
) -> tuple[list[Job], int]:
    """All jobs in the order they were accepted, each as `make` has it, and the stamp up to which that is."""
    stamp = connection.execute(select(clock.c.value)).scalar_one()
    chunks = connection.execution_options(yield_per=1000)
    found = chunks.execute(select(*_COLUMNS).order_by(jobs.c.number))
    return [make(Job._make(row)) for row in found], stamp


class Changes(NamedTuple):
    """What has happened after a stamp."""

    changed: list[Job]
    gone: list[int]
    """Numbers of jobs that were removed."""
    stamp: int
    """What this reaches to."""
    access: int
    """The stamp of users, roles and tokens."""
    servers: int
    """How many servers share the database."""


def load_changes(connection: Connection, since: int) -> Changes:
    count = select(func.count()).select_from(servers).scalar_subquery()
    stamp, access, known = connection.execute(select(clock.c.value, clock.c.access, count)).one()
    if stamp == since:
        return Changes([], [], stamp, access, known)
    changed = connection.execute(
        select(*_COLUMNS).where(jobs.c.stamp > since).order_by(jobs.c.number)
    )
    gone = connection.execute(select(removals.c.job).where(removals.c.stamp > since)).scalars()
    return Changes([Job._make(row) for row in changed], list(gone), stamp, access, known)


def find_job(connection: Connection, number: int) -> Job | None:
    row = connection.execute(select(*_COLUMNS).where(jobs.c.number == number)).first()
    return None if row is None else Job._make(row)


def load_documents(connection: Connection, number: int) -> Documents | None:
    """None when the job is gone."""
    row = connection.execute(select(documents).where(documents.c.job == number)).first()
    if row is None:
        return None
    wanted = [digest for digest in (row.runtime, row.shared) if digest]
    found: dict[str, str] = {
        each.digest: each.text
        for each in connection.execute(select(texts).where(texts.c.digest.in_(wanted)))
    }
    objects = row.objects
    if row.shared:
        rest = objects[1:]  # a list in any case
        objects = f"[{found[row.shared]}{',' if rest != ']' else ''}{rest}"
    return Documents(row.digest, row.spec, found[row.runtime], objects, row.effective, row.original)


def load_images(connection: Connection, numbers: Sequence[int]) -> dict[int, str]:
    """The images that these jobs asked for by name, by number."""
    # Not by the database's own JSON: PostgreSQL's does not read a text with a zero byte in it, and code may have one.
    chunks = connection.execution_options(yield_per=1)
    found = chunks.execute(
        select(documents.c.job, documents.c.spec).where(documents.c.job.in_(numbers))
    )
    asked = ((number, json.loads(spec).get("image")) for number, spec in found)
    return {number: image for number, image in asked if image}


def load_events(
    connection: Connection, number: int, after: int = -1, limit: int = 1000
) -> list[Event]:
    """In order, from the one that follows `after`."""
    columns = [events.c[name] for name in Event._fields]
    place = (events.c.job == number) & (events.c.number > after)
    found = connection.execute(select(*columns).where(place).order_by(events.c.number).limit(limit))
    return [Event._make(row) for row in found]


def load_attempts(connection: Connection, number: int) -> list[Attempt]:
    columns = [attempts.c[name] for name in Attempt._fields]
    order = (attempts.c.run, attempts.c.attempt)
    found = connection.execute(select(*columns).where(attempts.c.job == number).order_by(*order))
    return [Attempt._make(row) for row in found]


def load_pods(connection: Connection, number: int, run: int) -> list[PodRow]:
    columns = [pods.c[name] for name in PodRow._fields]
    place = (pods.c.job == number) & (pods.c.run == run)
    order = (pods.c.replicated_job, pods.c.pod_index)
    found = connection.execute(select(*columns).where(place).order_by(*order))
    return [PodRow._make(row) for row in found]
