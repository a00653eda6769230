"""The service: everything the product does, for any door, in one object.

It needs no server around it: a command line opens it on the data folder, asks, and closes it; jobs go on meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.core.platform import Platform
from astrago_trainer.core.preview import Preview
from astrago_trainer.core.render import Rendered
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.engines.base import (
    Ability,
    CountsQuota,
    Engine,
    ListsNodes,
    Node,
    Quota,
    Shortfall,
)
from astrago_trainer.service.access import Access
from astrago_trainer.service.board import EVERYWHERE, Board, Page, Query, Record, compact
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.decide import UNAVAILABLE, needs_care
from astrago_trainer.service.effective import Effectives, handle_of
from astrago_trainer.service.errors import Unsupported
from astrago_trainer.service.feed import Subscription
from astrago_trainer.service.following import FOLLOW_SECONDS, Following
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.installation_key import KEY_FILE, InstallationKey
from astrago_trainer.service.job_tokens import JobTokens
from astrago_trainer.service.jobs import Jobs
from astrago_trainer.service.leases import Leases
from astrago_trainer.service.metrics import Metrics
from astrago_trainer.service.outbox import StoreOutbox, Targets, nobody
from astrago_trainer.service.page_tokens import PageTokens
from astrago_trainer.service.reaper import Reaper
from astrago_trainer.service.reconciler import Reconciler
from astrago_trainer.service.runtimes import Runtimes
from astrago_trainer.service.settings import Settings
from astrago_trainer.service.submission import Planner, Runner, run_here
from astrago_trainer.service.tenancy import Tenancy
from astrago_trainer.store import (
    DataGone,
    DiskFull,
    Store,
    StoreBusy,
    StoreError,
    StoreUnavailable,
    database_url,
)
from astrago_trainer.store.access import forget_invitations
from astrago_trainer.store.audit import AuditRow, insert_audit, load_audit
from astrago_trainer.store.drivers import BUSY_SECONDS
from astrago_trainer.store.jobs import (
    Attempt,
    Documents,
    Event,
    Job,
    Original,
    PodRow,
    forget_keys,
    forget_removals,
    load_attempts,
    load_events,
    load_images,
    load_jobs,
    load_pods,
)
from astrago_trainer.store.metrics import Point, load_points
from astrago_trainer.store.outbox import forget_deliveries
from astrago_trainer.store.reserve import Reserve

_REMOVALS_KEPT_SECONDS = 86400.0
"""A server that was cut off for longer has long been taken for dead, and reads everything when it comes back."""
_DELIVERIES_KEPT_SECONDS = 7 * 86400.0
_TIDY_SECONDS = 3600.0
_RESERVE_SECONDS, _FULL_SECONDS = 60.0, 1.0
"""How often the disk is looked at for the database's reserve; the second is for a disk that was full."""

JOIN_SECONDS = 2 * FOLLOW_SECONDS
"""How long a server that finds others waits before it answers."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Service:
    """Opened, used by one event loop, closed."""

    def __init__(
        self,
        settings: Settings,
        engine: Engine,
        *,
        platform: Platform | None = None,
        clock: Clock | None = None,
        targets: Targets = nobody,
    ) -> None:
        self.settings = settings
        self.engine = engine
        self.clock = clock or Clock()
        self._targets = targets
        self.runtimes = Runtimes(engine)
        self._planner = Planner(platform or default_platform(), self.runtimes, engine)
        key = InstallationKey(settings.job_key or settings.data / KEY_FILE)
        self._job_tokens = JobTokens(key)
        self.board = Board(PageTokens(key))
        self._tasks: list[asyncio.Task[None]] = []
        self._verbs: set[asyncio.Task[Any]] = set()
        self._is_tending = False

    @classmethod
    def on_this_machine(cls, data: Path, database: str | None = None) -> Service:
        """With the local engine in the same folder."""
        from astrago_trainer.engines.local.engine import LocalEngine

        return cls(Settings(data=data, database=database), LocalEngine(data))

    @property
    def platform(self) -> Platform:
        """What the administrator decided."""
        return self._planner.platform

    async def open(self, *, tend: bool = True) -> Service:
        """Reads everything; with `tend` it also looks after jobs. Raises StoreError, which says what to do."""
        settings = self.settings
        self._store = await Store.open(
            database_url(settings.data, settings.database),
            busy_seconds=settings.busy_seconds,
            waiting_seconds=max(settings.busy_seconds, BUSY_SECONDS),
        )
        try:
            await self._build(tend=tend)
        except BaseException:
            await self.close()
            raise
        return self

    async def _build(self, *, tend: bool) -> None:
        store, clock = self._store, self.clock
        self._reserve = Reserve(store.folder or self.settings.data)
        self._is_reserve_due = asyncio.Event()
        jobs, store.own_stamp = await store.read(lambda c: load_jobs(c, compact))
        self.board.load(jobs)
        del jobs  # they are many, and the board has them
        self.access = Access(store, clock)
        await self.access.load()
        self.tenancy = Tenancy(self.access, self.engine)
        self.outbox = StoreOutbox(store)
        self._metrics = Metrics(store)
        self._effectives = Effectives(store, self._job_tokens)
        self._leases = Leases(store, clock.steady)
        self._reaper = Reaper(clock.steady, self._look)
        self._reconciler = Reconciler(
            store,
            self.board,
            self.engine,
            self._effectives,
            self._leases,
            clock,
            targets=self._targets,
            on_settled=self._reaper.add,
        )
        self._following = Following(
            store, self.board, on_job=self._on_foreign_change, on_access=self.access.load
        )
        self._jobs = Jobs(
            store,
            self.board,
            self._planner,
            self.engine,
            self._effectives,
            clock,
            server=lambda: self._leases.id if self._is_tending else None,
            look=self._look,
            catch_up=self._following.catch_up,
            most_each=self.settings.tenant_max_jobs,
        )
        self._tasks = [asyncio.create_task(self._following.run(), name="other servers")]
        if tend:
            await self._tend()

    async def _tend(self) -> None:
        await self._leases.refresh()
        await self._leases.enter()
        self._is_tending = True
        await self._following.catch_up()
        if self.has_others:
            # By then they know of this one, and read what it writes before they answer.
            await asyncio.sleep(JOIN_SECONDS)
        for record in self.board:
            self._reaper.add(record.job)
        await self._reconciler.start()
        self._tasks += [
            asyncio.create_task(self._reaper.run(), name="reaper"),
            asyncio.create_task(self._tidy(), name="tidy"),
            asyncio.create_task(self._keep_reserve(), name="disk reserve"),
            asyncio.create_task(self.tenancy.prepare_all(), name="tenants"),
        ]

    async def close(self) -> None:
        """Jobs stay as they are; what was acknowledged is durable anyway."""
        await asyncio.gather(*self._verbs, return_exceptions=True)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._is_tending:
            await self._reconciler.close()
            self._is_tending = False
        self.board.feed.close()
        try:
            if hasattr(self, "_metrics"):
                await self._metrics.close()
            if hasattr(self, "_leases"):
                await self._leases.leave()
        except StoreError as error:
            _log.warning("not everything could be put in order: %s", error)
        finally:
            await self._store.close()

    async def __aenter__(self) -> Service:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Jobs: verbs.

    async def submit(
        self,
        actor: Identity,
        namespace: str,
        spec: JobSpec,
        idempotency_key: str | None = None,
        original: Original | None = None,
        run: Runner = run_here,
    ) -> Record:
        """Accepts a job; see `Jobs.submit`."""
        if self.is_disk_full:
            raise DiskFull(
                f"the disk of {self._store.where} is full, and no job is accepted; delete jobs, or free some space."
            )
        return await self._verb(
            self._jobs.submit(actor, namespace, spec, idempotency_key, original, run)
        )

    async def suspend(self, actor: Identity, namespace: str, name: str) -> Record:
        return await self._verb(self._jobs.suspend(actor, namespace, name))

    async def resume(self, actor: Identity, namespace: str, name: str) -> Record:
        return await self._verb(self._jobs.resume(actor, namespace, name))

    async def restart(self, actor: Identity, namespace: str, name: str) -> Record:
        return await self._verb(self._jobs.restart(actor, namespace, name))

    async def delete(
        self,
        actor: Identity,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        keep_code: bool = False,
    ) -> Record:
        """Works on a full disk, too: the database's reserve is given up for it."""

        def delete() -> Coroutine[Any, Any, Record]:
            return self._jobs.delete(actor, namespace, name, uid=uid, keep_code=keep_code)

        try:
            return await self._verb(delete())
        except (StoreBusy, DataGone):  # space does not help
            raise
        except StoreUnavailable:
            if not await asyncio.to_thread(self._reserve.give_up):
                raise
            self._is_reserve_due.set()
            return await self._verb(delete())

    async def original(self, namespace: str, name: str) -> Original:
        return await self._jobs.original(namespace, name)

    def preview(self, namespace: str, spec: JobSpec) -> Preview:
        return self._jobs.preview(namespace, spec)

    def shortfall(self, job_set: Mapping[str, Any]) -> Shortfall | None:
        """What an effective JobSet asks for beyond all that the engine has; None when it fits."""
        return self._planner.shortfall(job_set)

    def rendered(self, spec: JobSpec) -> Rendered:
        """The objects that a submit would apply."""
        return self._jobs.rendered(spec)

    # Jobs: what is known of them. The first four never touch the database.

    @property
    def has_others(self) -> bool:
        """Whether other servers share the database, so that the board may be behind."""
        return self._following.servers > self._is_tending

    async def catch_up(self) -> None:
        """Returns when the board shows all that any server has written before the call."""
        await self._following.catch_up()

    async def keep_up(self) -> None:
        """The same for a read, where there are other servers; without the database, what is known has to do."""
        await self._following.keep_up()

    def get(self, namespace: str, name: str) -> Record:
        """Raises NotFound."""
        return self._jobs.get(namespace, name)

    def list(
        self,
        namespace: str = EVERYWHERE,
        query: Query | None = None,
        *,
        limit: int = 50,
        token: str | None = None,
    ) -> Page:
        return self.board.page(namespace, query, limit=limit, token=token)

    def subscribe(self, namespace: str = EVERYWHERE) -> Subscription:
        return self.board.subscribe(namespace)

    def logs(self, namespace: str, name: str, run: int | None = None) -> Path:
        """The folder that `astrago_trainer.logs` reads; of the present run unless told."""
        return self.engine.logs(handle_of(self.get(namespace, name).job, run))

    async def settled(self, numbers: Iterable[int], *, patience: float | None = None) -> bool:
        """Waits until these jobs, by number, were looked at and all was done that was to be done now.

        For who opens the service, wishes something and goes. Whether it came to that within `patience` seconds.
        """
        try:
            async with asyncio.timeout(patience):
                await self._reconciler.settled(frozenset(numbers))
        except TimeoutError:
            return False
        return True

    async def until_over(self, namespace: str, name: str) -> Record:
        """Returns when the job has ended; raises NotFound when it is gone."""
        with self.subscribe(namespace) as news:
            record = self.get(namespace, name)
            while not is_terminal(Phase(record.job.phase)):
                await anext(news)
                record = self.get(namespace, name)
            return record

    async def until_handed(self, namespace: str, name: str) -> None:
        """Returns when the engine has the job, has refused it, or does not answer; at once when it is gone."""
        with self.subscribe(namespace) as news:
            while (record := self.board.find(namespace, name)) is not None:
                job = record.job
                if job.is_handed or is_terminal(Phase(job.phase)) or job.reason == UNAVAILABLE:
                    return
                await anext(news)

    async def nodes(self) -> Sequence[Node]:
        """Raises Unsupported, and EngineUnavailable."""
        engine = self.engine
        if Ability.NODES not in engine.abilities or not isinstance(engine, ListsNodes):
            raise Unsupported(Ability.NODES.value, engine.name)
        return await engine.nodes()

    async def quota(self, namespace: str) -> Sequence[Quota]:
        """Ceilings of a namespace and what is used of them; none where nobody counts. Raises EngineUnavailable."""
        engine = self.engine
        if Ability.QUOTA not in engine.abilities or not isinstance(engine, CountsQuota):
            return []
        return await engine.quota(namespace)

    async def images(self, namespace: str, *, among: int = 50, most: int = 20) -> Sequence[str]:
        """What the newest jobs of a namespace asked for by name; each once, the newest first."""
        numbers = [each.job.number for each in self.list(namespace, limit=among).records]
        found = await self._store.read(lambda c: load_images(c, numbers))
        return list(dict.fromkeys(found[each] for each in numbers if each in found))[:most]

    async def events(
        self, namespace: str, name: str, *, after: int = -1, limit: int = 1000
    ) -> Sequence[Event]:
        number = self.get(namespace, name).job.number
        return await self._store.read(lambda c: load_events(c, number, after, limit))

    async def attempts(self, namespace: str, name: str) -> Sequence[Attempt]:
        number = self.get(namespace, name).job.number
        return await self._store.read(lambda c: load_attempts(c, number))

    async def pods(self, namespace: str, name: str) -> Sequence[PodRow]:
        """Of the present run."""
        job = self.get(namespace, name).job
        return await self._store.read(lambda c: load_pods(c, job.number, job.run))

    async def manifest(self, namespace: str, name: str) -> Documents:
        """The request, the runtime as it was, the rendered objects and the effective JobSet, as JSON."""
        return await self._jobs.documents(namespace, name)

    def origins(self, name: str, documents: Documents) -> dict[str, str]:
        """Who set each line of what runs; reckoned, so it is for a thread."""
        return self._jobs.origins(name, documents)

    def verify_job(self, token: str) -> Identity | None:
        """The running job whose token this is; see `job_tokens`."""

        def find(namespace: str, name: str) -> Job | None:
            record = self.board.find(namespace, name)
            return None if record is None else record.job

        return self._job_tokens.verify(token, find)

    # Metrics, audit.

    def record_metric(
        self, namespace: str, name: str, points: Iterable[tuple[str, Point]], *, rank: int = 0
    ) -> int:
        """How many points were taken; they are durable within a second or two."""
        job = self.get(namespace, name).job
        return self._metrics.record(job.number, job.run, rank, points)

    async def metrics(
        self,
        namespace: str,
        name: str,
        run: int | None = None,
        *,
        ranks: Collection[int] = (),
        names: Collection[str] = (),
    ) -> Mapping[int, Mapping[str, Sequence[Point]]]:
        """Series by rank and name; of these ranks and names, if any are named. See `load_points`."""
        job = self.get(namespace, name).job
        await self._metrics.flush()
        return await self._store.read(
            lambda c: load_points(c, job.number, run or job.run, ranks=ranks, names=names)
        )

    async def flush_metrics(self) -> None:
        """Makes durable what was recorded so far."""
        await self._metrics.flush()

    async def record_audit(self, row: AuditRow) -> None:
        """For what is no change of an object: a refusal, a sign-in."""
        await self._store.write(insert_audit, row)

    async def audit(
        self,
        namespace: str | None = None,
        *,
        actor: str = "",
        action: str = "",
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[tuple[int, AuditRow]]:
        return await self._store.read(
            lambda c: load_audit(
                c, namespace, actor=actor, action=action, before=before, limit=limit
            )
        )

    @property
    def store(self) -> Store:
        """For those who bring functions of their own."""
        return self._store

    def looks_after(self, job: Job) -> bool:
        """Whether this server does, and not another one on the same database."""
        return self._is_tending and job.server in (None, self._leases.id)

    @property
    def is_disk_full(self) -> bool:
        """Jobs are deleted, and none is accepted, until there is space again."""
        return self._reserve.is_given_up

    async def check_ready(self) -> None:
        """Writes and reads; raises StoreError when the database would not take a job now."""
        await self._store.write(forget_removals, 0.0)
        await self._following.catch_up()

    async def _verb(self, verb: Coroutine[Any, Any, T]) -> T:
        """To its end, even if the caller is cancelled: what is written must also be shown."""
        task = asyncio.create_task(verb)
        self._verbs.add(task)
        task.add_done_callback(self._end_verb)
        return await asyncio.shield(task)

    def _end_verb(self, task: asyncio.Task[Any]) -> None:
        self._verbs.discard(task)
        if not task.cancelled():
            task.exception()  # taken, so that a refusal is no error in the log when its caller has gone

    def _look(self, number: int) -> None:
        if self._is_tending:
            self._reconciler.look(number)

    def _on_foreign_change(self, job: Job) -> None:
        self._reaper.add(job)
        if needs_care(job, self.clock.steady()):
            self._look(job.number)

    async def _keep_reserve(self) -> None:
        """The space that the database needs for a deletion, whenever there is enough for it."""
        while True:
            await asyncio.to_thread(self._reserve.make)
            pause = _FULL_SECONDS if self._reserve.is_given_up else _RESERVE_SECONDS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._is_reserve_due.wait()
            self._is_reserve_due.clear()

    async def _tidy(self) -> None:
        while True:
            now = self.clock.time()
            try:
                await self._store.write(forget_removals, now - _REMOVALS_KEPT_SECONDS)
                await self._store.write(forget_keys, now - self.settings.keys_kept_seconds)
                await self._store.write(forget_deliveries, now - _DELIVERIES_KEPT_SECONDS)
                await self._store.write(forget_invitations, now)
            except StoreError as error:
                _log.warning("old rows stay for now: %s", error)
            await asyncio.sleep(_TIDY_SECONDS)
