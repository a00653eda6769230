"""Observe, decide, apply: keeps every job where its people want it, whatever happened before.

The only caller of an engine's apply and stop. Driven by the engine's own changes, by wishes, and by one look at
everything at the start and then every minute; nothing is polled. A job is looked after by one task at a time, with no
transaction open during an engine's call. Deciding is in `decide`, and this is only its hands.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
from collections.abc import Callable, Collection

from astrago_trainer.core.lifecycle import Phase, is_terminal
from astrago_trainer.engines.base import (
    Engine,
    EngineRejected,
    EngineUnavailable,
    Handle,
    Observation,
    Pod,
)
from astrago_trainer.service.board import Board
from astrago_trainer.service.changing import Changing
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.decide import (
    Decision,
    Step,
    decide,
    decide_rejected,
    decide_unavailable,
    needs_care,
)
from astrago_trainer.service.effective import Effectives, handle_of
from astrago_trainer.service.history import make_change
from astrago_trainer.service.identity import SYSTEM
from astrago_trainer.service.leases import Leases
from astrago_trainer.service.outbox import Targets, nobody
from astrago_trainer.store import Store, StoreError
from astrago_trainer.store.audit import AuditRow
from astrago_trainer.store.crash import crash_point
from astrago_trainer.store.jobs import Change, Job, Removal, remove_jobs

ROUND_SECONDS = 60.0
AT_ONCE = 32
"""Calls of apply and observe under way; stops are not counted, because they wait for users' code."""
_STEPS = 6
"""Of one visit: renew, apply, look and note are four."""
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 60.0

_log = logging.getLogger(__name__)


class Reconciler:
    """The hands of the service."""

    def __init__(
        self,
        store: Store,
        board: Board,
        engine: Engine,
        effectives: Effectives,
        leases: Leases,
        clock: Clock,
        *,
        targets: Targets = nobody,
        on_settled: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._board = board
        self._engine = engine
        self._effectives = effectives
        self._leases = leases
        self._clock = clock
        self._targets = targets
        self._on_settled = on_settled
        self._changing = Changing(store, board)
        self._visits: dict[int, asyncio.Task[None]] = {}
        self._again: set[int] = set()
        self._delays: dict[int, float] = {}
        self._pods: dict[int, tuple[Pod, ...]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._tasks: list[asyncio.Task[None]] = []
        self._is_closed = False

    async def start(self) -> None:
        """Looks at everything once, and from then on at what changes."""
        self._tasks = [
            asyncio.create_task(self._listen(), name="engine changes"),
            asyncio.create_task(self._leases.keep(self.look_at_all), name="leases"),
            asyncio.create_task(self._rounds(), name="rounds"),
        ]
        await asyncio.sleep(
            0
        )  # now it listens: a change after this is heard, one before it is seen
        self.look_at_all()

    async def close(self) -> None:
        """Leaves jobs as they are; a call of an engine that is under way is not waited for."""
        self._is_closed = True
        tasks = [*self._tasks, *self._visits.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def look_at_all(self) -> None:
        now = self._clock.steady()
        for record in self._board:
            if needs_care(record.job, now):
                self.look(record.job.number)

    def look(self, number: int) -> None:
        """Something about this job is new."""
        if self._is_closed:
            return
        if number in self._visits:
            self._again.add(number)
        else:
            task = asyncio.create_task(self._visit(number), name=f"job {number}")
            self._visits[number] = task

    async def settled(self, numbers: Collection[int]) -> None:
        """Returns when these jobs were looked at and all was done that was to be done now."""
        while visits := [task for number, task in self._visits.items() if number in numbers]:
            await asyncio.wait(visits)

    async def _listen(self) -> None:
        while True:
            try:
                async for handle in self._engine.changes():
                    self._heard(handle)
                _log.warning("the %s engine tells of no more changes", self._engine.name)
            except Exception:
                _log.exception("changes of the %s engine cannot be followed", self._engine.name)
            await asyncio.sleep(_FIRST_DELAY)
            # When it listens again, which is its next step: what was missed meanwhile.
            asyncio.get_running_loop().call_soon(self.look_at_all)

    def _heard(self, handle: Handle) -> None:
        record = self._board.find(handle.namespace, handle.name)
        if record is not None and handle_of(record.job) == handle:
            self.look(record.job.number)

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            self.look_at_all()

    async def _visit(self, number: int) -> None:
        delay = None
        try:
            delay = await self._tend(number)
            if delay is None:
                self._delays.pop(number, None)
        except StoreError as error:
            _log.warning("job %d waits for the database: %s", number, error)
            delay = self._longer(number)
        except EngineUnavailable:
            delay = self._longer(number)
        except Exception:
            _log.exception("job %d could not be looked after", number)
            delay = self._longer(number)
        finally:
            del self._visits[number]
        if number in self._again:
            self._again.discard(number)
            self.look(number)
        elif delay is not None:
            asyncio.get_running_loop().call_later(delay, self.look, number)

    def _longer(self, number: int) -> float:
        """Twice as long each time, and never all at the same moment."""
        delay = min(self._delays.get(number, _FIRST_DELAY / 2) * 2, _LONGEST_DELAY)
        self._delays[number] = delay
        return delay * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    async def _tend(self, number: int) -> float | None:
        """One visit; the time after which to come again, if nobody calls before."""
        applied: Handle | None = None
        for _ in range(_STEPS):
            job = await self._hold(number)
            if job is None:
                if applied is not None and self._board.find_number(number) is None:
                    # Another server removed it while this one handed it over: nothing may be left.
                    await self._engine.stop(applied)
                return None
            decision, seen = await self._decide(job, is_applied=applied is not None)
            if decision.step is Step.APPLY and applied is None:
                applied = handle_of(job)
                continue
            if decision.step is Step.REMOVE:
                await self._remove(job)
                return None
            if await self._note(job, decision, seen) is None:
                continue  # somebody changed it meanwhile: decide anew
            if decision.step is Step.RENEW:
                continue
            is_missing = decision.step is Step.APPLY and (seen is None or seen.is_gone)
            return self._longer(number) if is_missing else None
        return self._longer(number)

    async def _decide(self, job: Job, *, is_applied: bool) -> tuple[Decision, Observation | None]:
        """What is to be noted, after the engine has done what is to be done before that."""
        decision, seen = decide(job, None, self._clock.steady()), None
        try:
            if decision.step is Step.LOOK or (decision.step is Step.APPLY and is_applied):
                seen = await self._observe(job)
                decision = decide(job, seen, self._clock.steady())
            if decision.step is Step.APPLY and not is_applied:
                await self._apply(job)
            elif decision.step in (Step.RENEW, Step.REMOVE, Step.REAP):
                await self._stop(job)
        except EngineRejected as error:
            await self._stop(job)  # what there may be of it
            return decide_rejected(job, str(error), self._clock.steady(), error.reason), None
        except EngineUnavailable as error:
            await self._note(job, decide_unavailable(job, str(error)), None)
            raise
        return decision, seen

    async def _hold(self, number: int) -> Job | None:
        """The job, if this server looks after it; one that nobody does is taken over."""
        record = self._board.find_number(number)
        while record is not None and needs_care(record.job, self._clock.steady()):
            job = record.job
            if job.server == self._leases.id:
                if await self._leases.make_sure():
                    return job
                await self._changing.reread(number)
            elif await self._leases.is_free(job.server):
                await self._changing.write(Change(job, {"server": self._leases.id}))
            else:
                return None
            record = self._board.find_number(number)
        return None

    async def _observe(self, job: Job) -> Observation:
        async with self._slots:
            return await self._engine.observe(handle_of(job))

    async def _apply(self, job: Job) -> None:
        effective = await self._effectives.get(job)
        if effective is None:
            return
        crash_point("apply: before")
        async with self._slots:
            await self._engine.apply(handle_of(job), effective)
        crash_point("apply: after")

    async def _stop(self, job: Job) -> None:
        crash_point("stop: before")
        await self._engine.stop(handle_of(job))
        crash_point("stop: after")

    async def _note(self, job: Job, decision: Decision, seen: Observation | None) -> Job | None:
        """Writes what was decided; None when the job has changed meanwhile."""
        change = make_change(
            job,
            decision,
            seen,
            known_pods=self._pods.get(job.number, ()),
            time=self._clock.time(),
            targets=self._targets,
        )
        if change is None:
            return job
        crash_point(f"note {decision.step}: before")
        after = await self._changing.write(change)
        crash_point(f"note {decision.step}: after")
        if after is None:
            return None
        if seen is not None:
            self._pods[job.number] = seen.pods
        if is_terminal(Phase(after.phase)):
            self._pods.pop(job.number, None)
            self._on_settled(after)
        return after

    async def _remove(self, job: Job) -> None:
        crash_point("remove logs: before")
        for run in range(1, job.run + 1):
            folder = self._engine.logs(handle_of(job, run))
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        crash_point("remove rows: before")
        now = self._clock.time()
        audit = AuditRow(now, SYSTEM.name, job.namespace, "job.removed", job.name, job.uid)
        await self._store.write(remove_jobs, Removal(job, now, audit))
        crash_point("remove rows: after")
        self._board.remove(job.number)
        self._effectives.forget(job.number)
        self._pods.pop(job.number, None)
