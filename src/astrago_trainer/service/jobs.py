"""What people can do with jobs. Each verb is one guarded write with its event and its audit row; engines come later.

A verb returns when its wish is durable. What the wish leads to is the reconciler's work, and is seen on the board.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from pydantic_core import to_json

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.core.names import code_configmap_name, job_name, job_name_from_key
from astrago_trainer.core.preview import Preview
from astrago_trainer.core.render import Rendered, code_digest, spec_hash
from astrago_trainer.core.spec import JobSpec, parse_job_spec
from astrago_trainer.engines.base import SQUEEZED, Ability, Engine
from astrago_trainer.service.board import Board, Record
from astrago_trainer.service.changing import Changing
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.effective import Effectives
from astrago_trainer.service.errors import Conflict, NotFound, TooMany, Unsupported
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.submission import Plan, Planner, Runner, run_here
from astrago_trainer.store import Store
from astrago_trainer.store.audit import AuditRow
from astrago_trainer.store.crash import crash_point
from astrago_trainer.store.jobs import (
    Accepted,
    Change,
    Documents,
    Event,
    Job,
    Key,
    NewJob,
    Original,
    Repeated,
    has_key,
    insert_jobs,
    load_documents,
)

K = TypeVar("K", bound=Hashable)

_MOST_KEY = 200
_MOST_CODES = 10_000


class Jobs:
    """The verbs."""

    def __init__(
        self,
        store: Store,
        board: Board,
        planner: Planner,
        engine: Engine,
        effectives: Effectives,
        clock: Clock,
        *,
        server: Callable[[], str | None],
        look: Callable[[int], None],
        catch_up: Callable[[], Awaitable[None]],
        most_each: int = 0,
    ) -> None:
        """`most_each`: jobs of a namespace that have not ended; 0 is no limit."""
        self._store = store
        self._board = board
        self._planner = planner
        self._engine = engine
        self._effectives = effectives
        self._clock = clock
        self._server = server
        self._look = look
        self._catch_up = catch_up
        self._changing = Changing(store, board)
        self._most_each = most_each
        self._reserved: set[tuple[str, str]] = set()
        self._coming: Counter[str] = Counter()
        """Submits by namespace that are not on the board yet."""
        self._keys_coming: Counter[tuple[str, str | None]] = Counter()
        self._codes: dict[tuple[str, str], str] = {}

    def get(self, namespace: str, name: str) -> Record:
        record = self._board.find(namespace, name)
        if record is None:
            raise NotFound(f"there is no job {name!r} in the namespace {namespace!r}.")
        return record

    def preview(self, namespace: str, spec: JobSpec) -> Preview:
        return self._planner.preview(namespace, spec)

    def rendered(self, spec: JobSpec) -> Rendered:
        return self._planner.rendered(spec)

    async def submit(
        self,
        actor: Identity,
        namespace: str,
        spec: JobSpec,
        key: str | None = None,
        original: Original | None = None,
        run: Runner = run_here,
    ) -> Record:
        """The job as it was accepted; a request that is repeated with its key gets the same one again.

        `original` is the job that it was made of, of the same namespace; `run` does the planning.
        Raises InvalidRequest with all problems, or for a key that came with another request; Conflict for a name
        that is taken; TooMany for a namespace with too many jobs.
        """
        if key is not None:
            _check_key(key)
        is_repeated = key is not None and await self._is_repeated(actor, namespace, key)
        if not is_repeated:
            self._check_limit(actor, namespace)
        with _counted(self._coming, namespace), _counted(self._keys_coming, (namespace, key)):
            return await self._submit(actor, namespace, spec, key, original, run)

    def _check_limit(self, actor: Identity, namespace: str) -> None:
        """Raises TooMany. Administrators decide themselves how much there may be."""
        if not self._is_limit_reached(namespace) or actor.is_administrator:
            return
        raise TooMany(
            f"the namespace {namespace!r} has {self._most_each} jobs that have not ended, the most there may be. Wait "
            "until some have ended, delete some, or ask an administrator to raise ASTRAGO_TENANT_MAX_JOBS."
        )

    def _is_limit_reached(self, namespace: str) -> bool:
        if not self._most_each:
            return False
        return self._board.unfinished(namespace) + self._coming[namespace] >= self._most_each

    async def _is_repeated(self, actor: Identity, namespace: str, key: str) -> bool:
        """Whether the key came before. It is asked only where the limit would refuse a repeated request wrongly."""
        if actor.is_administrator or not self._is_limit_reached(namespace):
            return False
        if self._keys_coming[namespace, key]:
            return True
        return await self._store.read(lambda connection: has_key(connection, namespace, key))

    async def _submit(
        self,
        actor: Identity,
        namespace: str,
        spec: JobSpec,
        key: str | None,
        original: Original | None,
        run: Runner,
    ) -> Record:
        if spec.name is not None and self._board.find(namespace, spec.name) is not None:
            await self._catch_up()  # the job of that name may be gone by now
        is_code_taken = self._is_code_taken(namespace, spec)
        while True:
            name = self._pick_name(namespace, spec, key)
            self._reserved.add((namespace, name))
            try:
                plan = await run(
                    partial(self._planner.plan, namespace, spec, name, is_code_taken=is_code_taken)
                )
                new = self._new_job(actor, plan, name, key, original)
                crash_point("submit: before")
                answer = await self._store.write(insert_jobs, new)
                crash_point("submit: after")
            finally:
                self._reserved.discard((namespace, name))
            if isinstance(answer, Accepted):
                return self._accepted(answer.job, plan)
            if isinstance(answer, Repeated):
                return _repeated(answer, new)
            if answer.what == "name" and (spec.name is not None or key is not None):
                raise _name_conflict(namespace, name)
            if answer.what == "code":
                is_code_taken = True
                self._codes[namespace, str(plan.code_name)] = ""  # some other code

    async def suspend(self, actor: Identity, namespace: str, name: str) -> Record:
        """Its pods go, the job stays; suspending a suspended job is fine."""
        return await self._set_suspended(actor, namespace, name, wish=True)

    async def resume(self, actor: Identity, namespace: str, name: str) -> Record:
        return await self._set_suspended(actor, namespace, name, wish=False)

    async def restart(self, actor: Identity, namespace: str, name: str) -> Record:
        """A new run of the same request, from the beginning; what runs is stopped first."""

        def make(job: Job) -> Change | None:
            _refuse_deleting(job)
            if job.wanted_run > job.run:
                return None
            if is_terminal(Phase(job.phase)):
                self._check_limit(actor, namespace)
            values = {"wanted_run": job.run + 1, "is_suspended": False}
            return self._wish(actor, job, "job.restart", "RestartRequested", values)

        return await self._change(namespace, name, make)

    async def delete(
        self,
        actor: Identity,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        keep_code: bool = False,
    ) -> Record:
        """The wish; the job leaves the board when all of it is gone. Deleting it again is fine.

        With `uid`, only that very job: raises Conflict when the name means another one by now.
        """

        def make(job: Job) -> Change | None:
            if uid is not None and job.uid != uid:
                raise Conflict(f"the job {name!r} is another one by now: its uid is {job.uid}.")
            if job.is_deleting:
                return None
            values = {
                "is_deleting": True,
                "keeps_code": keep_code,
                "phase": Phase.DELETING.value,
            }
            return self._wish(actor, job, "job.delete", "DeletionRequested", values)

        crash_point("delete: before")
        record = await self._change(namespace, name, make)
        crash_point("delete: after")
        return record

    async def original(self, namespace: str, name: str) -> Original:
        """A job to make another one of."""
        uid = self.get(namespace, name).job.uid
        documents = await self.documents(namespace, name)
        return Original(name, uid, documents.spec)

    async def documents(self, namespace: str, name: str) -> Documents:
        """What was asked for, rendered and is run."""
        number = self.get(namespace, name).job.number
        found = await self._store.read(lambda connection: load_documents(connection, number))
        if found is None:
            raise NotFound(f"there is no job {name!r} in the namespace {namespace!r} any more.")
        return found

    def origins(self, name: str, documents: Documents) -> dict[str, str]:
        """JSON pointer of each leaf of what runs -> who set it; nothing for a request that today's rules refuse."""
        try:
            spec = parse_job_spec(json.loads(documents.spec))
        except InvalidRequest:
            return {}
        return self._planner.origins(spec, json.loads(documents.runtime), name, documents.effective)

    def _pick_name(self, namespace: str, spec: JobSpec, key: str | None) -> str:
        if spec.name is not None:
            if key is None and self._board.find(namespace, spec.name) is not None:
                raise _name_conflict(namespace, spec.name)
            return spec.name
        limit = self._planner.name_limit(spec)
        if key is not None:
            return job_name_from_key(spec.user, key, limit=limit)
        now = datetime.fromtimestamp(self._clock.time(), UTC).strftime("%Y%m%d%H%M%S")
        name = job_name(spec.user, now, limit=limit)
        while (namespace, name) in self._reserved or self._board.find(namespace, name) is not None:
            name = job_name(spec.user, now, secrets.token_hex(2), limit=limit)
        return name

    def _is_code_taken(self, namespace: str, spec: JobSpec) -> bool:
        """A guess that saves planning twice; the database decides."""
        if spec.code is None or spec.code.git is not None:
            return False
        name = code_configmap_name(spec.user)
        known = self._codes.get((namespace, name))
        if known is not None and not self._board.has_code(namespace, name):
            del self._codes[namespace, name]
            return False
        return known is not None and known != code_digest(spec.code)

    def _new_job(
        self, actor: Identity, plan: Plan, name: str, key: str | None, original: Original | None
    ) -> NewJob:
        spec, now = plan.spec, self._clock.time()
        ttl = spec.ttl_seconds
        is_squeezed = plan.shortfall is not None and not plan.shortfall.is_refused
        job = Job(
            number=0,
            uid=secrets.token_hex(10),
            namespace=spec.namespace,
            name=name,
            owner=spec.user,
            framework=spec.framework,
            runtime=plan.rendered.trainjob["spec"]["runtimeRef"]["name"],
            nodes=spec.nodes,
            gpus=spec.resources.gpus,
            engine=self._engine.name,
            code_name=plan.code_name,
            ttl_seconds=self._planner.platform.default_ttl_seconds if ttl is None else ttl,
            max_restarts=plan.max_restarts,
            reason=SQUEEZED if is_squeezed else "",
            message=str(plan.shortfall) if is_squeezed else "",
            created_at=now,
            is_suspended=spec.suspend,
            events=1,
            server=self._server(),
            cloned_from=None if original is None else original.name,
            cloned_from_uid=None if original is None else original.uid,
        )
        return NewJob(
            job,
            plan.digest,
            spec.model_dump_json(exclude_defaults=True),
            plan.runtime,
            plan.shared,
            plan.objects,
            plan.effective,
            plan.code_digest,
            (Event(0, now, actor.name, "Accepted", "the request is stored and will be run"),),
            self._audit(actor, job, "job.submit"),
            None if key is None else Key(key, spec_hash(spec)),
            to_json(job._asdict()).decode() if key is not None else "",
            None if original is None else original.spec,
        )

    def _accepted(self, job: Job, plan: Plan) -> Record:
        self._effectives.remember(
            job.number,
            plan.outcome.objects,
            plan.rendered.objects,
            plan.spec.active_deadline_seconds,
        )
        if plan.code_name is not None and plan.code_digest is not None:
            if len(self._codes) >= _MOST_CODES:
                self._codes.clear()
            self._codes[job.namespace, plan.code_name] = plan.code_digest
        self._board.put(job)
        self._look(job.number)
        return Record(job)  # as it was accepted, whatever others have made of it since

    async def _set_suspended(
        self, actor: Identity, namespace: str, name: str, *, wish: bool
    ) -> Record:
        word = "suspend" if wish else "resume"
        if Ability.SUSPEND not in self._engine.abilities:
            raise Unsupported(word, self._engine.name)

        def make(job: Job) -> Change | None:
            _refuse_deleting(job)
            if is_terminal(Phase(job.phase)) and job.wanted_run == job.run:
                raise Conflict(f"the job {name!r} has ended ({job.phase}): it cannot {word}.")
            if job.is_suspended == wish:
                return None
            reason = "SuspensionRequested" if wish else "ResumptionRequested"
            return self._wish(actor, job, f"job.{word}", reason, {"is_suspended": wish})

        return await self._change(namespace, name, make)

    def _wish(
        self, actor: Identity, job: Job, action: str, reason: str, values: Mapping[str, object]
    ) -> Change:
        now = self._clock.time()
        event = Event(job.events, now, actor.name, reason, f"asked for by {actor.name}")
        return Change(job, values, (event,), audit=self._audit(actor, job, action))

    def _audit(self, actor: Identity, job: Job, action: str) -> AuditRow:
        return AuditRow(
            self._clock.time(),
            actor.name,
            job.namespace,
            action,
            job.name,
            job.uid,
            detail="" if job.owner == actor.name else f"for {job.owner}",
            request_id=actor.request_id,
        )

    async def _change(
        self, namespace: str, name: str, make: Callable[[Job], Change | None]
    ) -> Record:
        await (
            self._catch_up()
        )  # decided on what the database has: another server may have changed it a moment ago
        record = await self._changing.change(lambda: self.get(namespace, name), make)
        self._look(record.job.number)
        return record


@contextmanager
def _counted(counts: Counter[K], key: K) -> Iterator[None]:
    counts[key] += 1
    try:
        yield
    finally:
        counts[key] -= 1
        if not counts[key]:
            del counts[key]


def cloned(original: Original) -> dict[str, Any]:
    """What it asked for, without its name: the beginning of a new request."""
    spec: dict[str, Any] = json.loads(original.spec)
    spec.pop("name", None)
    return spec


def _repeated(answer: Repeated, new: NewJob) -> Record:
    assert new.key is not None
    if answer.digest != new.key.digest:
        problem = Problem(
            "Idempotency-Key",
            "key-reused",
            f"the key {new.key.key!r} came with another request before.",
            "Take a new key for a new request.",
        )
        raise InvalidRequest([problem])
    return Record(Job(**json.loads(answer.answer)))


def _check_key(key: str) -> None:
    if not 0 < len(key) <= _MOST_KEY or not key.isprintable():
        problem = Problem(
            "Idempotency-Key",
            "FieldValueInvalid",
            f"must be 1 to {_MOST_KEY} printable characters; found {len(key)}.",
        )
        raise InvalidRequest([problem])


def _name_conflict(namespace: str, name: str) -> Conflict:
    return Conflict(
        f"there is a job {name!r} in the namespace {namespace!r} already. Take another name, leave it "
        "out, or delete that one first."
    )


def _refuse_deleting(job: Job) -> None:
    if job.is_deleting:
        raise Conflict(f"the job {job.name!r} is being deleted.")
