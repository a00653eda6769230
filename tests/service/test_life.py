"""The life of a job in the service, on an engine that does what a test tells it to."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.core.spec import parse_job_spec
from astrago_trainer.engines.base import Ability, EngineRejected, EngineUnavailable
from astrago_trainer.engines.fake import FakeEngine, Trouble
from astrago_trainer.notify.deliverer import Deliverer
from astrago_trainer.notify.notices import Mail
from astrago_trainer.service.board import Query
from astrago_trainer.service.errors import Conflict, NotFound, Unsupported
from astrago_trainer.service.jobs import cloned
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from astrago_trainer.store.metrics import Point
from tests.service.jobs import (
    ANN,
    SCRIPT,
    SetClock,
    a_spec,
    handle,
    running,
    serving,
    until,
    until_gone,
    until_phase,
)


def calls(engine: FakeEngine) -> list[str]:
    return [what for what, _ in engine.calls if what != "observe"]


def reasons(events) -> list[tuple[str, str]]:
    return [(event.actor, event.reason) for event in events if event.actor != "fake"]


class Witness(FakeEngine):
    """Notes what the database has when it is given a job."""

    async def apply(self, handle, effective):
        with closing(sqlite3.connect(self.data)) as connection:
            self.stored = connection.execute("SELECT uid FROM jobs").fetchall()
        await super().apply(handle, effective)


def test_a_job_is_stored_handed_over_watched_and_ends(tmp_path):
    engine = Witness(data=tmp_path / "astrago.db")

    async def scenario():
        async with serving(tmp_path, engine) as service:
            accepted = await service.submit(ANN, "team", a_spec())
            job = await until_phase(service, accepted.job.name, "Running")
            engine.finish(handle(job))
            over = (await service.until_over("team", job.name)).job
            return (
                accepted.job,
                over,
                await service.events("team", job.name),
                await service.pods("team", job.name),
                await service.attempts("team", job.name),
                await service.audit("team"),
            )

    accepted, over, events, pods, attempts, audit = asyncio.run(scenario())

    assert engine.stored == [(accepted.uid,)], "it was stored before the engine heard of it"
    assert calls(engine) == ["apply"]
    assert (accepted.phase, over.phase, over.outcome) == ("Pending", "Complete", "Complete")
    assert over.finished_at is not None
    assert reasons(events) == [("ann", "Accepted"), ("astrago", "Running"), ("astrago", "Complete")]
    assert [event.number for event in events] == list(range(len(events)))
    assert [(pod.name, pod.phase) for pod in pods] == [
        (f"{over.name}-node-0-0", "Succeeded"),
        (f"{over.name}-node-0-1", "Succeeded"),
    ]
    assert [(each.attempt, each.phase) for each in attempts] == [(0, "Complete")]
    assert [row.action for _, row in audit] == ["job.submit"]


def test_what_runs_is_what_was_previewed_and_what_is_kept(tmp_path):
    engine = FakeEngine()

    async def scenario():
        async with serving(tmp_path, engine) as service:
            preview = service.preview("team", a_spec(name="job"))
            job = await running(service, name="job")
            return preview, engine._jobs[handle(job)][0], await service.manifest("team", "job")

    preview, effective, kept = asyncio.run(scenario())

    assert (
        [effective.job_set, *effective.beside] == [*preview.objects] == json.loads(kept.effective)
    )
    assert [each["kind"] for each in effective.objects] == ["ConfigMap", "ConfigMap", "TrainJob"]
    assert list(effective.objects) == json.loads(kept.objects)
    assert json.loads(kept.spec)["code"] == {"inline": SCRIPT}
    assert json.loads(kept.runtime)["metadata"]["name"] == "pytorch-simple"


def test_a_service_that_starts_again_goes_on_where_it_was(tmp_path):
    engine = FakeEngine()

    async def first():
        async with serving(tmp_path, engine) as service:
            return await running(service)

    async def second(job):
        async with serving(tmp_path, engine) as service:
            return await service.until_over("team", job.name)

    job = asyncio.run(first())
    engine.finish(handle(job), Phase.FAILED, "Exit1")
    over = asyncio.run(second(job))

    assert (over.job.phase, over.job.reason) == ("Failed", "Exit1")
    assert calls(engine) == ["apply"]


def test_every_problem_of_a_request_is_told_at_once_and_nothing_is_kept(tmp_path):
    spec = a_spec(nodes=5000, resources={"cpu": "9999", "memory": "1Gi"}, namespace="other")

    async def scenario():
        async with serving(tmp_path) as service:
            with pytest.raises(InvalidRequest) as caught:
                await service.submit(ANN, "team", spec)
            preview = service.preview("team", spec)
            return caught.value.problems, preview, len(service.board), await service.audit()

    problems, preview, jobs, audit = asyncio.run(scenario())

    assert {"nodes", "resources.cpu.limit", "namespace"} <= {problem.path for problem in problems}
    assert set(problems) <= set(preview.problems)
    assert (jobs, audit) == (0, [])


class TestNames:
    def test_follow_from_user_and_time_and_never_collide(self, tmp_path):
        clock = SetClock(1_762_347_600.0)

        async def scenario():
            async with serving(tmp_path, clock=clock.clock) as service:
                submits = (service.submit(ANN, "team", a_spec()) for _ in range(40))
                return [record.job.name for record in await asyncio.gather(*submits)]

        names = asyncio.run(scenario())

        assert names[0] == "ann-job-20251105130000"
        assert len(set(names)) == 40
        assert all(name.startswith(names[0]) and len(name) <= 48 for name in names)

    def test_that_are_taken_are_refused_until_their_job_is_gone(self, tmp_path):
        async def scenario():
            async with serving(tmp_path) as service:
                await running(service, name="mine")
                with pytest.raises(Conflict, match="there is a job 'mine' in the namespace 'team'"):
                    await service.submit(ANN, "team", a_spec(name="mine"))
                await service.delete(ANN, "team", "mine")
                await until_gone(service, "mine")
                return await running(service, name="mine")

        assert asyncio.run(scenario()).name == "mine"

    def test_of_code_stand_for_one_code(self, tmp_path):
        async def scenario():
            async with serving(tmp_path) as service:
                specs = [a_spec(code={"inline": text}) for text in ("1", "1", "2", "2")]
                jobs = [(await service.submit(ANN, "team", spec)).job for spec in specs]
                names = [job.code_name for job in jobs]
                for job in jobs[:2]:
                    await service.delete(ANN, "team", job.name)
                    await until_gone(service, job.name)
                free = await service.submit(ANN, "team", a_spec(code={"inline": "3"}))
                return names, free.job.code_name

        (first, second, third, fourth), free = asyncio.run(scenario())

        assert first == second == free == "ann-train-script"
        assert third == fourth
        assert third.startswith("ann-train-script-")


class TestWishes:
    def test_suspend_and_resume(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                await service.suspend(ANN, "team", job.name)
                await service.suspend(ANN, "team", job.name)
                await until_phase(service, job.name, "Suspended")
                is_told = engine._jobs[handle(job)][0].suspend
                await service.resume(ANN, "team", job.name)
                await until_phase(service, job.name, "Running")
                return is_told, await service.events("team", job.name), await service.audit()

        is_told, events, audit = asyncio.run(scenario())

        assert is_told
        assert calls(engine) == ["apply", "apply", "apply"]
        assert reasons(events) == [
            ("ann", "Accepted"),
            ("astrago", "Running"),
            ("ann", "SuspensionRequested"),
            ("astrago", "Suspended"),
            ("ann", "ResumptionRequested"),
            ("astrago", "Running"),
        ]
        assert [row.action for _, row in audit] == ["job.resume", "job.suspend", "job.submit"]

    def test_a_job_may_wait_from_the_beginning(self, tmp_path):
        async def scenario():
            async with serving(tmp_path) as service:
                record = await service.submit(ANN, "team", a_spec(suspend=True))
                return await until_phase(service, record.job.name, "Suspended")

        assert asyncio.run(scenario()).is_suspended

    def test_what_an_engine_cannot_do_is_refused_before_it_is_asked(self, tmp_path):
        engine = FakeEngine(abilities=frozenset({Ability.NODES}))

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                with pytest.raises(Unsupported) as caught:
                    await service.suspend(ANN, "team", job.name)
                with pytest.raises(InvalidRequest, match="the fake engine cannot suspend jobs"):
                    await service.submit(ANN, "team", a_spec(suspend=True))
                return caught.value

        assert asyncio.run(scenario()).ability == "suspend"

    def test_what_has_ended_cannot_be_suspended(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                engine.finish(handle(job))
                await service.until_over("team", job.name)
                with pytest.raises(Conflict, match=r"has ended \(Complete\): it cannot suspend"):
                    await service.suspend(ANN, "team", job.name)

        asyncio.run(scenario())

    def test_restart_is_a_new_run_of_the_same_request(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                engine.finish(handle(job), Phase.FAILED)
                await service.until_over("team", job.name)
                await service.restart(ANN, "team", job.name)
                again = await until_phase(service, job.name, "Running")
                return job, again, list(engine._jobs), await service.events("team", job.name)

        job, again, left, events = asyncio.run(scenario())

        assert (again.run, again.uid, again.finished_at) == (2, job.uid, None)
        assert left == [handle(again)], "the first run is gone from the engine"
        assert handle(job).uid == job.uid != handle(again).uid
        assert [what for _, what in reasons(events)][2:] == [
            "Failed",
            "RestartRequested",
            "RunBegins",
            "Running",
        ]

    def test_restart_of_what_runs_stops_it_first(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                await service.restart(ANN, "team", job.name)
                await until(service, lambda: service.get("team", job.name).job.run == 2)
                return await until_phase(service, job.name, "Running")

        asyncio.run(scenario())

        assert calls(engine) == ["apply", "stop", "apply"]

    def test_a_clone_remembers_its_original_when_that_is_gone_and_after_a_restart(self, tmp_path):
        engine = FakeEngine()

        async def clone():
            async with serving(tmp_path, engine) as service:
                first = await running(service, name="first")
                original = await service.original("team", "first")
                assert parse_job_spec(cloned(original)) == a_spec()
                copy = await service.submit(ANN, "team", a_spec(nodes=1), original=original)
                await service.delete(ANN, "team", "first")
                await until_gone(service, "first")
                return first, copy.job.name

        async def look(name):
            async with serving(tmp_path, engine) as service:
                job = service.get("team", name).job
                return job, await service.manifest("team", name)

        first, name = asyncio.run(clone())
        job, documents = asyncio.run(look(name))

        assert (job.cloned_from, job.cloned_from_uid) == ("first", first.uid)
        assert parse_job_spec(json.loads(documents.original)) == a_spec(name="first")

    def test_a_pod_keeps_its_place_when_it_is_gone(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                await service.suspend(ANN, "team", job.name)
                await until_phase(service, job.name, "Suspended")
                assert (await engine.observe(handle(job))).pods == ()
                return await service.pods("team", job.name)

        assert [(each.node, each.address) for each in asyncio.run(scenario())] == [
            ("here", "192.0.2.1"),
            ("here", "192.0.2.2"),
        ]


class TestDeletion:
    def test_takes_everything_but_the_audit(self, tmp_path):
        engine = FakeEngine(data=tmp_path / "logs")

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                folder = service.logs("team", job.name)
                folder.mkdir(parents=True)
                (folder / "node.log").write_text("hello")
                deleting = await service.delete(ANN, "team", job.name)
                again = await service.delete(ANN, "team", job.name)
                await until_gone(service, job.name)
                with pytest.raises(NotFound, match=f"there is no job '{job.name}'"):
                    await service.delete(ANN, "team", job.name)
                return folder, deleting.job, again.job, await service.audit()

        folder, deleting, again, audit = asyncio.run(scenario())

        assert (deleting.phase, again.phase) == ("Deleting", "Deleting")
        assert engine._jobs == {}
        assert not folder.exists()
        assert [(row.actor, row.action) for _, row in audit] == [
            ("astrago", "job.removed"),
            ("ann", "job.delete"),
            ("ann", "job.submit"),
        ]

    def test_with_a_uid_means_that_very_job(self, tmp_path):
        async def scenario():
            async with serving(tmp_path) as service:
                job = await running(service)
                with pytest.raises(Conflict, match="is another one by now"):
                    await service.delete(ANN, "team", job.name, uid="old")
                return await service.delete(ANN, "team", job.name, uid=job.uid)

        assert asyncio.run(scenario()).job.is_deleting

    def test_before_it_was_handed_over_leaves_nothing(self, tmp_path):
        engine, gate = FakeEngine(), None

        async def scenario():
            nonlocal gate
            gate = asyncio.get_running_loop().create_future()
            engine.trouble.delay = lambda: gate
            async with serving(tmp_path, engine) as service:
                record = await service.submit(ANN, "team", a_spec())
                await service.delete(ANN, "team", record.job.name)
                gate.set_result(None)
                await until_gone(service, record.job.name)

        asyncio.run(scenario())

        assert engine._jobs == {}

    def test_of_a_job_whose_engine_does_not_answer_is_not_forgotten(self, tmp_path):
        class Unwilling(FakeEngine):
            async def stop(self, handle):
                await super().stop(handle)
                if calls(self).count("stop") == 1:
                    raise EngineUnavailable("who knows whether it was stopped")

        engine = Unwilling()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                await service.delete(ANN, "team", job.name)
                await until_gone(service, job.name)

        asyncio.run(scenario())

        assert calls(engine) == ["apply", "stop", "stop"]


class TestAnEngineInTrouble:
    def test_that_does_not_answer_is_asked_again_and_the_job_says_so(self, tmp_path):
        engine = FakeEngine(trouble=Trouble(fail_calls=frozenset({1})))

        async def scenario():
            async with serving(tmp_path, engine) as service:
                record = await service.submit(ANN, "team", a_spec())
                name = record.job.name
                await until(service, lambda: service.get("team", name).job.reason != "")
                waiting = service.get("team", name).job
                return waiting, await until_phase(service, name, "Running")

        waiting, job = asyncio.run(scenario())

        assert (waiting.phase, waiting.reason) == ("Pending", "EngineUnavailable")
        assert waiting.message == "call 1 was told to fail"
        assert job.reason == ""

    def test_that_fails_after_its_work_gets_no_second_job(self, tmp_path):
        engine = FakeEngine(trouble=Trouble(fail_after_calls=frozenset({1})))

        async def scenario():
            async with serving(tmp_path, engine) as service:
                return await running(service)

        job = asyncio.run(scenario())

        assert list(engine._jobs) == [handle(job)]

    def test_that_refuses_a_job_makes_it_fail_with_the_reason(self, tmp_path):
        class Picky(FakeEngine):
            async def apply(self, handle, effective):
                raise EngineRejected("no node has 9 GPUs")

        async def scenario():
            async with serving(tmp_path, Picky()) as service:
                record = await service.submit(ANN, "team", a_spec())
                return (await service.until_over("team", record.job.name)).job

        job = asyncio.run(scenario())

        assert (job.phase, job.reason, job.message) == ("Failed", "Rejected", "no node has 9 GPUs")

    def test_that_lost_a_job_is_given_it_again_within_its_limit(self, tmp_path):
        engine = FakeEngine()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service, max_restarts=1)
                engine.lose(handle(job))
                await until(service, lambda: service.get("team", job.name).job.run == 2)
                again = await until_phase(service, job.name, "Running")
                engine.lose(handle(again))
                over = await service.until_over("team", job.name)
                return again, over.job, await service.events("team", job.name)

        again, over, events = asyncio.run(scenario())

        assert (again.run, again.restarts) == (2, 1)
        assert (over.phase, over.reason) == ("Failed", "LostByEngine")
        assert [what for _, what in reasons(events)] == [
            "Accepted", "Running", "LostByEngine", "Running", "Failed",
        ]  # fmt: skip

    def test_whose_changes_cannot_be_followed_is_followed_again(self, tmp_path):
        class Deaf(FakeEngine):
            rounds = 0

            async def changes(self):
                self.rounds += 1
                if self.rounds == 1:
                    raise EngineUnavailable("the watch was cut")
                listening.set()
                async for each in FakeEngine.changes(self):
                    yield each

        engine, listening = Deaf(), asyncio.Event()

        async def scenario():
            async with serving(tmp_path, engine) as service:
                job = await running(service)
                await listening.wait()
                engine.finish(handle(job))
                return await service.until_over("team", job.name)

        assert asyncio.run(scenario()).job.phase == "Complete"

    def test_that_is_slow_holds_up_nobody_else(self, tmp_path):
        class Slow(FakeEngine):
            async def stop(self, handle):
                await asyncio.Event().wait()

        async def scenario():
            async with serving(tmp_path, engine := Slow()) as service:
                jobs = await asyncio.gather(*(running(service) for _ in range(40)))
                for job in jobs:
                    await service.delete(ANN, "team", job.name)
                other = await running(service)
                return other, len(engine._jobs)

        other, left = asyncio.run(scenario())

        assert (other.phase, left) == ("Running", 41)


class TestTheTimeOfAFinishedJob:
    def finished(self, clock, engine):
        async def finish(service):
            job = await running(service, ttl_seconds=3600)
            engine.finish(handle(job))
            return (await service.until_over("team", job.name)).job

        return finish

    def test_ends_in_the_engine_while_the_history_stays(self, tmp_path):
        engine, clock = FakeEngine(), SetClock()

        async def scenario():
            async with serving(tmp_path, engine, clock=clock.clock) as service:
                job = await self.finished(clock, engine)(service)
                clock.pass_(3599)
                service._reaper.call_due()
                before = list(engine._jobs)
                clock.pass_(1)
                service._reaper.call_due()
                await until(service, lambda: service.get("team", job.name).job.is_reaped)
                return (
                    job,
                    before,
                    await service.events("team", job.name),
                    await service.manifest("team", job.name),
                )

        job, before, events, manifest = asyncio.run(scenario())

        assert before == [handle(job)]
        assert engine._jobs == {}
        assert events[-1].reason == "Expired"
        assert json.loads(manifest.effective)[0]["kind"] == "JobSet"

    @pytest.mark.parametrize("seconds", [3600, -3600, 10 * 365 * 86400])
    def test_is_not_changed_by_whoever_sets_the_clock(self, tmp_path, seconds):
        engine, clock = FakeEngine(), SetClock()

        async def scenario():
            async with serving(tmp_path, engine, clock=clock.clock) as service:
                job = await self.finished(clock, engine)(service)
                clock.set_by(seconds)
                service._reaper.call_due()
                service._reconciler.look_at_all()
                other = await running(service)  # whatever was to be done has been done
                still = handle(job) in engine._jobs
                clock.pass_(3600)
                service._reaper.call_due()
                await until(service, lambda: service.get("team", job.name).job.is_reaped)
                return still, other

        still, _ = asyncio.run(scenario())

        assert still

    def test_is_found_by_the_next_service(self, tmp_path):
        engine, clock = FakeEngine(), SetClock()

        async def first():
            async with serving(tmp_path, engine, clock=clock.clock) as service:
                return await self.finished(clock, engine)(service)

        async def second(job):
            later = SetClock(clock.wall + 4000)
            async with serving(tmp_path, engine, clock=later.clock) as service:
                await until(service, lambda: service.get("team", job.name).job.is_reaped)

        job = asyncio.run(first())
        asyncio.run(second(job))

        assert engine._jobs == {}

    def test_does_not_keep_it_from_running_again(self, tmp_path):
        engine, clock = FakeEngine(), SetClock()

        async def scenario():
            async with serving(tmp_path, engine, clock=clock.clock) as service:
                job = await self.finished(clock, engine)(service)
                clock.pass_(3600)
                service._reaper.call_due()
                await until(service, lambda: service.get("team", job.name).job.is_reaped)
                await service.restart(ANN, "team", job.name)
                return await until_phase(service, job.name, "Running")

        assert asyncio.run(scenario()).run == 2


def test_whoever_goes_away_during_a_submit_finds_the_job_later(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            submit = asyncio.create_task(service.submit(ANN, "team", a_spec(name="mine")))
            await asyncio.sleep(0)
            submit.cancel()
            await asyncio.gather(submit, return_exceptions=True)
            return submit.cancelled(), await until_phase(service, "mine", "Running")

    is_cancelled, job = asyncio.run(scenario())

    assert (is_cancelled, job.phase) == (True, "Running")


def test_lists_come_from_memory(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            for user in ("ann", "bob", "ann"):
                await running(service, user=user)
            pages = (
                service.list("team"),
                service.list("team", Query(owner="ann")),
                service.list("elsewhere"),
            )
            return [[record.job.owner for record in page.records] for page in pages]

    assert asyncio.run(scenario()) == [["ann", "bob", "ann"], ["ann", "ann"], []]


def test_metrics_are_gathered_and_bounded(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            job = await running(service)
            taken = service.record_metric(
                "team", job.name, [("loss", Point(step, 1.0, 0.5)) for step in range(3)]
            )
            bad = service.record_metric(
                "team",
                job.name,
                [("loss", Point(1, 1.0, float("nan"))), ("x" * 500, Point(1, 1.0, 1.0))],
            )
            return taken, bad, await service.metrics("team", job.name)

    taken, bad, found = asyncio.run(scenario())

    assert (taken, bad) == (3, 0)
    assert found == {0: {"loss": [Point(step, 1.0, 0.5) for step in range(3)]}}


def test_those_who_want_to_be_told_are_told_once_by_whoever_sends(tmp_path):
    engine, sent = FakeEngine(), []

    class Sender:
        async def send(self, delivery, now):
            sent.append((delivery.notice.kind, delivery.notice.job, delivery.target.address))

    def targets(namespace):
        return [Mail(address=f"{namespace}@example.com")]

    async def scenario():
        service = Service(Settings(data=tmp_path), engine, targets=targets)
        async with service:
            job = await running(service, max_restarts=1)
            engine.lose(handle(job))
            await until(service, lambda: service.get("team", job.name).job.run == 2)
            engine.finish(handle(await until_phase(service, job.name, "Running")))
            await service.until_over("team", job.name)
            deliverers = [Deliverer(service.outbox, {"mail": Sender()}) for _ in range(2)]
            tries = await asyncio.gather(*(each.step() for each in deliverers))
            return job, tries

    job, tries = asyncio.run(scenario())

    assert sum(tries) == 2
    assert sorted(sent) == [
        ("complete", job.name, "team@example.com"),
        ("restarted", job.name, "team@example.com"),
    ]


def test_it_is_ready_while_the_database_takes_writes(tmp_path):
    async def scenario():
        async with serving(tmp_path) as service:
            await service.check_ready()

    asyncio.run(scenario())


def test_an_administrator_may_set_the_default_time(tmp_path):
    platform = replace(default_platform(), default_ttl_seconds=7)

    async def scenario():
        service = Service(Settings(data=tmp_path), FakeEngine(), platform=platform)
        async with service:
            return (await service.submit(ANN, "team", a_spec())).job

    assert asyncio.run(scenario()).ttl_seconds == 7
