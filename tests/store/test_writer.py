"""Group commit: who shares a transaction, who is told what."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing

import pytest

from astrago_trainer.store import Store, StoreBusy, StoreUnavailable
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


def test_a_write_fails_in_time_wherever_it_waits(tmp_path):
    """In a transaction that waits for a lock, and behind it; nothing of both is kept."""
    path = tmp_path / "astrago.db"

    async def scenario():
        store = await Store.open(f"sqlite:///{path}", busy_seconds=2.0, waiting_seconds=0.5)
        seconds: list[float] = []

        async def refused(number):
            begin = time.monotonic()
            with pytest.raises(StoreBusy, match=r"did not take a write within 0\.5 s"):
                await store.write(insert_audit, a_row(number))
            seconds.append(time.monotonic() - begin)

        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            first = asyncio.create_task(refused(1))
            while not store._writer._items:
                await asyncio.sleep(0)
            while store._writer._items:
                await asyncio.sleep(0)  # then it waits for the lock, and the next one behind it
            await asyncio.gather(first, refused(2))
            other.execute("COMMIT")
        await store.write(insert_audit, a_row(3))
        rows = await store.read(load_audit)
        await store.close()
        return seconds, [row.object for _, row in rows]

    seconds, kept = asyncio.run(scenario())

    assert max(seconds) < 1.5, "the lock is waited for 2 s"
    assert kept == ["3"]


def test_a_write_that_is_committed_is_not_given_up(tmp_path):
    url = f"sqlite:///{tmp_path / 'astrago.db'}"
    with_store(url, lambda store: store.read(load_audit))

    class Late(Writer):
        """Its time is over when the transaction has ended, before the caller is woken."""

        async def _settle(self, together):
            real = self._driver.write

            async def write(work):
                found = await real(work)
                self._give_up(together.items[0])
                return found

            self._driver.write = write
            await super()._settle(together)

    async def scenario():
        driver = make_driver(url)
        writer = Late(driver, on_commit=lambda stamp: None, waiting_seconds=60.0)
        await writer.write(insert_audit, a_row(1))
        await driver.close()

    asyncio.run(scenario())

    assert on_database(url, "SELECT count(*) FROM audit") == [(1,)]
