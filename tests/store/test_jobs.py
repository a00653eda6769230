"""Jobs in the database, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from astrago_trainer.store.audit import AuditRow, load_audit
from astrago_trainer.store.jobs import (
    MOST_EVENTS,
    Accepted,
    Attempt,
    Change,
    Documents,
    Event,
    Job,
    Key,
    PodRow,
    Removal,
    Repeated,
    Taken,
    change_jobs,
    find_job,
    forget_keys,
    forget_removals,
    insert_jobs,
    load_attempts,
    load_changes,
    load_documents,
    load_events,
    load_images,
    load_jobs,
    load_pods,
    remove_jobs,
)
from astrago_trainer.store.outbox import (
    GIVEN_UP,
    SENT,
    WAITING,
    Claim,
    DeliveryRow,
    Result,
    claim_deliveries,
    find_due,
    forget_deliveries,
    settle_deliveries,
)
from astrago_trainer.store.tables import jobs as table
from tests.store.databases import NOW, a_new_job, accept, on_database, with_store


def a_removal(job: Job) -> Removal:
    return Removal(job, NOW, AuditRow(NOW, "astrago", job.namespace, "job.removed", job.name))


def test_a_row_is_what_the_table_has():
    assert Job._fields == tuple(column.name for column in table.columns)


def test_images_are_read_of_jobs_that_named_one(url):
    async def scenario(store):
        named = replace(a_new_job(), spec='{"user":"ann","image":"x/a:1","code":"image \\u0000"}')
        jobs = [await accept(store, each) for each in (named, a_new_job(), a_new_job())]
        numbers = [job.number for job in jobs[:2]]
        assert await store.read(lambda c: load_images(c, numbers)) == {numbers[0]: "x/a:1"}
        assert await store.read(lambda c: load_images(c, [])) == {}

    with_store(url, scenario)


def test_an_accepted_job_is_there_with_all_that_belongs_to_it(url):
    async def scenario(store):
        job = await accept(store, a_new_job("first"))
        return (
            job,
            await store.read(load_jobs),
            await store.read(lambda c: load_documents(c, job.number)),
            await store.read(lambda c: load_events(c, job.number)),
            await store.read(load_audit),
        )

    job, (jobs, stamp), documents, events, audit = with_store(url, scenario)

    assert (jobs, stamp) == ([job], job.stamp)
    assert documents == Documents(
        "d" * 64,
        '{"user":"ann"}',
        '{"kind":"ClusterTrainingRuntime"}',
        '[{"kind":"ConfigMap"},{"kind":"TrainJob"}]',
        '[{"kind":"JobSet"}]',
    )
    assert events == [Event(0, NOW, "ann", "Accepted", "as asked")]
    assert [(row.action, row.object) for _, row in audit] == [("job.submit", "first")]


def test_it_is_still_there_when_the_database_is_opened_again(url):
    job = with_store(url, accept)

    assert with_store(url, lambda store: store.read(load_jobs))[0] == [job]


def test_of_many_at_once_each_gets_its_own_number(url):
    async def scenario(store):
        return await asyncio.gather(*(accept(store) for _ in range(300)))

    jobs = with_store(url, scenario)

    assert len({job.number for job in jobs}) == 300
    stamps = {job.stamp for job in jobs}
    assert len(stamps) < 30, "they shared transactions"


def test_one_name_is_one_job(url):
    async def scenario(store):
        answers = await asyncio.gather(
            *(store.write(insert_jobs, a_new_job("same", code=("code", "c"))) for _ in range(8))
        )
        return answers, await store.read(load_jobs)

    answers, (jobs, _) = with_store(url, scenario)

    assert [answer for answer in answers if isinstance(answer, Accepted)] == [Accepted(jobs[0])]
    assert answers.count(Taken("name")) == 7
    assert on_database(url, "SELECT uses FROM codes") == [(1,)], "the others' uses were given back"


def test_one_key_is_one_job_and_one_answer(url):
    async def scenario(store):
        news = [a_new_job(key=Key("again", "body")) for _ in range(8)]
        answers = await asyncio.gather(*(store.write(insert_jobs, new) for new in news))
        other = await store.write(insert_jobs, a_new_job(key=Key("again", "another body")))
        return answers, other, await store.read(load_jobs)

    answers, other, (jobs, _) = with_store(url, scenario)

    (job,) = jobs
    said = Repeated("body", job.uid, f'{{"uid":"{job.uid}"}}')
    assert answers.count(Accepted(job)) == 1
    assert answers.count(said) == 7
    assert other == said, "the caller compares the bodies"


def test_a_key_of_a_request_that_was_refused_is_free(url):
    async def scenario(store):
        await accept(store, a_new_job("taken"))
        refused = await store.write(insert_jobs, a_new_job("taken", key=Key("key", "body")))
        accepted = await store.write(insert_jobs, a_new_job("free", key=Key("key", "body")))
        await store.write(forget_keys, NOW + 1)
        return refused, accepted

    refused, accepted = with_store(url, scenario)

    assert refused == Taken("name")
    assert isinstance(accepted, Accepted)
    assert on_database(url, "SELECT count(*) FROM idempotency_keys") == [(0,)]


def test_a_name_of_code_stands_for_one_code_until_its_last_job_goes(url):
    async def scenario(store):
        first = await accept(store, a_new_job(code=("code", "one")))
        second = await accept(store, a_new_job(code=("code", "one")))
        answers = [await store.write(insert_jobs, a_new_job(code=("code", "two")))]
        for job in (first, second):
            await store.write(remove_jobs, a_removal(job))
            answers.append(await store.write(insert_jobs, a_new_job(code=("code", "two"))))
        return answers

    while_two, while_one, when_free = with_store(url, scenario)

    assert (while_two, while_one) == (Taken("code"), Taken("code"))
    assert isinstance(when_free, Accepted)


def test_code_that_is_to_be_kept_keeps_its_name(url):
    async def scenario(store):
        job = await accept(store, a_new_job(code=("code", "one")))
        await store.write(remove_jobs, a_removal(job._replace(keeps_code=True)))
        return [
            await store.write(insert_jobs, a_new_job(code=("code", each)))
            for each in ("two", "one")
        ]

    other, same = with_store(url, scenario)

    assert other == Taken("code")
    assert isinstance(same, Accepted)


def test_a_change_is_written_once_and_not_on_what_has_changed_meanwhile(url):
    async def scenario(store):
        job = await accept(store)
        changes = [
            Change(
                job, {"phase": phase}, (Event(1, NOW, "fake", phase, ""),),
                audit=AuditRow(NOW, "ann", "team", "job.suspend", job.name),
            )
            for phase in ("Running", "Suspended")
        ]  # fmt: skip
        after = await asyncio.gather(*(store.write(change_jobs, change) for change in changes))
        return (
            job,
            after,
            await store.read(lambda c: find_job(c, job.number)),
            await store.read(lambda c: load_events(c, job.number, after=0)),
            await store.read(load_audit),
        )

    job, after, found, events, audit = with_store(url, scenario)

    assert found == job._replace(phase="Running", events=2, version=2, stamp=found.stamp)
    assert after == [found, None]
    assert [event.reason for event in events] == ["Running"]
    assert [row.action for _, row in audit] == ["job.suspend", "job.submit"]


def test_attempts_and_pods_are_put_in_place_of_what_was_known(url):
    async def scenario(store):
        job = await accept(store)
        for phase, began in (("Running", NOW), ("Complete", NOW + 9)):
            pods = tuple(
                PodRow(1, f"pod{index}", 0, "node", index, phase, 0, None, "", "gpu-7", "10.0.0.1")
                for index in (1, 0)
            )
            attempt = Attempt(1, 0, phase, "", "", began, None)
            job = await store.write(change_jobs, Change(job, attempts=(attempt,), pods=pods))
        return (
            await store.read(lambda c: load_attempts(c, job.number)),
            await store.read(lambda c: load_pods(c, job.number, 1)),
        )

    attempts, pods = with_store(url, scenario)

    assert attempts == [Attempt(1, 0, "Complete", "", "", NOW, None)], "a beginning is told once"
    assert [(pod.name, pod.phase) for pod in pods] == [("pod0", "Complete"), ("pod1", "Complete")]
    assert {(pod.node, pod.address) for pod in pods} == {("gpu-7", "10.0.0.1")}


def test_the_newest_events_are_kept(url):
    async def scenario(store):
        job = await accept(store)
        for _ in range(12):
            events = tuple(
                Event(job.events + each, NOW, "fake", "Restarted", "") for each in range(100)
            )
            job = await store.write(change_jobs, Change(job, events=events))
        found = await store.read(lambda c: load_events(c, job.number, limit=5000))
        return job, [event.number for event in found]

    job, numbers = with_store(url, scenario)

    assert numbers[-1] == job.events - 1
    assert MOST_EVENTS <= len(numbers) <= MOST_EVENTS + 100


def test_a_removed_job_leaves_nothing_but_the_audit(url):
    async def scenario(store):
        job = await accept(store)
        job = await store.write(
            change_jobs,
            Change(
                job,
                attempts=(Attempt(1, 0, "Running", "", "", NOW, None),),
                pods=(PodRow(1, "pod", 0, "node", 0, "Running", 0, None, ""),),
            ),
        )
        return [await store.write(remove_jobs, a_removal(job)) for _ in range(2)]

    assert with_store(url, scenario) == [True, False], "a second removal finds nothing"
    for name in ("jobs", "documents", "events", "attempts", "pods", "codes"):
        assert on_database(url, f"SELECT count(*) FROM {name}") == [(0,)], name
    actions = on_database(url, "SELECT action FROM audit ORDER BY id")
    assert actions == [("job.submit",), ("job.removed",)]


def test_a_number_never_comes_again(url):
    async def scenario(store):
        first = await accept(store)
        await store.write(remove_jobs, a_removal(first))
        return first.number, (await accept(store)).number

    first, second = with_store(url, scenario)

    assert second > first


def test_whoever_reads_by_stamp_learns_of_everything_once(url):
    async def scenario(store):
        kept, changed, gone = [await accept(store) for _ in range(3)]
        _, stamp = await store.read(load_jobs)
        changed = await store.write(change_jobs, Change(changed, {"phase": "Running"}))
        await store.write(remove_jobs, a_removal(gone))
        news = await store.read(lambda c: load_changes(c, stamp))
        nothing = await store.read(lambda c: load_changes(c, news.stamp))
        await store.write(forget_removals, NOW + 1)
        return kept, changed, gone, news, nothing

    _, changed, gone, news, nothing = with_store(url, scenario)

    assert news[:2] == ([changed], [gone.number])
    assert nothing[:2] == ([], [])


def test_a_delivery_is_written_with_its_change_and_sent_by_one(url):
    async def scenario(store):
        job = await accept(store)
        row = DeliveryRow("msg_1", "team", "{}", NOW)
        for change in (
            Change(job, {"phase": "Failed"}, deliveries=(row,)),
        ) * 2:  # the second is stale
            await store.write(change_jobs, change)
        claim = Claim(NOW, 60.0, ())
        first, second = [await store.write(claim_deliveries, claim) for _ in range(2)]
        busy = await store.write(claim_deliveries, Claim(NOW + 60, 60.0, ("team",)))
        again = await store.write(claim_deliveries, Claim(NOW + 60, 60.0, ()))
        stale = await store.write(settle_deliveries, Result("msg_1", 1, GIVEN_UP, "too slow"))
        later = await store.write(
            settle_deliveries, Result("msg_1", 2, WAITING, "no answer", NOW + 500)
        )
        waiting = await store.read(lambda c: find_due(c, Claim(NOW + 500, 1.0, ())))
        sent = await store.write(settle_deliveries, Result("msg_1", None, SENT))
        over = await store.write(claim_deliveries, Claim(NOW + 999, 1.0, ()))
        await store.write(forget_deliveries, NOW + 1)
        return (first, second, busy, again), (stale, later, sent), waiting, over

    claims, settled, waiting, over = with_store(url, scenario)

    row = DeliveryRow("msg_1", "team", "{}", NOW)
    assert claims == (row._replace(tries=1), None, None, row._replace(tries=2))
    assert settled == (False, True, True)
    assert (waiting, over) == (row._replace(tries=2), None)
    assert on_database(url, "SELECT count(*) FROM outbox") == [(0,)]


def test_a_key_is_not_answered_with_a_job_that_was_refused_in_the_same_transaction(url):
    """Two requests with one key come at once, and another job has their name."""

    async def scenario(store):
        await accept(store, a_new_job("taken"))
        key = Key("key", "body")
        first, *both = (a_new_job(), a_new_job("taken", key=key), a_new_job("taken", key=key))
        # The first one is being written while the others come: they share the next transaction.
        return await asyncio.gather(*(store.write(insert_jobs, each) for each in (first, *both)))

    _, *both = with_store(url, scenario)

    assert both == [Taken("name"), Taken("name")]
