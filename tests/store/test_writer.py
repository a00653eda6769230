"""Group commit: who shares a transaction, who is told what."""

from __future__ import annotations

import asyncio

from astrago_trainer.store import StoreUnavailable
from astrago_trainer.store.audit import AuditRow, insert_audit, load_audit
from astrago_trainer.store.drivers import make_driver
from astrago_trainer.store.writer import Writer
from tests.store.databases import on_database, with_store


def a_row(number: int) -> AuditRow:
    return AuditRow(float(number), "ann", "team", "test", str(number))


def test_writes_that_wait_together_are_committed_together(url):
    async def scenario(store):
        before = store.own_stamp
        await asyncio.gather(*(store.write(insert_audit, a_row(each)) for each in range(200)))
        return store.own_stamp - before, len(await store.read(lambda c: load_audit(c, limit=500)))

    assert with_store(url, scenario) == (1, 200)


def test_a_write_that_fails_takes_no_other_down(url):
    def bad(tx, items):
        insert_audit(tx, [a_row(666)])
        raise ValueError(items[0])

    async def scenario(store):
        results = await asyncio.gather(
            store.write(insert_audit, a_row(1)),
            store.write(bad, "one"),
            store.write(insert_audit, a_row(2)),
            store.write(bad, "two"),
            return_exceptions=True,
        )
        return results, await store.read(load_audit)

    results, rows = with_store(url, scenario)

    assert (results[0], results[2]) == (None, None)
    assert [str(results[1]), str(results[3])] == ["one", "two"]
    assert sorted(row.object for _, row in rows) == ["1", "2"]


def test_whoever_is_cancelled_keeps_nobody_waiting(url):
    async def scenario(store):
        writing = asyncio.create_task(store.write(insert_audit, a_row(1)))
        await asyncio.sleep(0)
        writing.cancel()
        await store.write(insert_audit, a_row(2))
        await asyncio.gather(writing, return_exceptions=True)
        return writing.cancelled()

    assert with_store(url, scenario)


def test_what_waits_is_written_before_the_store_is_closed(url):
    async def scenario(store):
        return [asyncio.create_task(store.write(insert_audit, a_row(each))) for each in range(9)]

    async def enter(store):
        tasks = await scenario(store)
        await asyncio.sleep(0)
        return tasks

    tasks = with_store(url, enter)

    assert all(task.done() for task in tasks)
    assert on_database(url, "SELECT count(*) FROM audit") == [(9,)]


def test_memory_is_no_queue(tmp_path):
    url = f"sqlite:///{tmp_path / 'astrago.db'}"
    with_store(url, lambda store: store.read(load_audit))

    async def scenario():
        driver = make_driver(url)
        writer = Writer(driver, on_commit=lambda stamp: None, most_waiting=20)
        writes = [
            asyncio.create_task(writer.write(insert_audit, a_row(each))) for each in range(21)
        ]
        results = await asyncio.gather(*writes, return_exceptions=True)
        await driver.close()
        return results

    *results, last = asyncio.run(scenario())

    assert set(results) == {None}
    assert isinstance(last, StoreUnavailable)
    assert str(last).endswith("has 20 writes waiting; try again later.")


def test_other_processes_commits_are_no_own_ones(url):
    async def scenario(store):
        await store.write(insert_audit, a_row(1))
        before = store.own_stamp
        await asyncio.to_thread(with_store, url, lambda other: other.write(insert_audit, a_row(2)))
        await store.write(insert_audit, a_row(3))
        return before, store.own_stamp

    before, after = with_store(url, scenario)

    assert after == before, "the gap is for whoever reads by stamp"
