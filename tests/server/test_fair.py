"""Slots that callers share: each has its turn, a queue of its own, and a clear refusal."""

from __future__ import annotations

import asyncio
import threading

import pytest

from astrago_trainer.server.fair import FairSlots, FairThreads, Shares
from astrago_trainer.server.problems import ApiError
from tests.server.serving import PATIENCE


def shares(**changes):
    usual = {
        "running": 2,
        "running_each": 1,
        "waiting_each": 3,
        "waiting_bytes_each": 1000,
        "waiting_seconds": PATIENCE,
    }
    return Shares(**{**usual, **changes})


async def until(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0)


async def waiting(slots: FairSlots, caller: str, order: list[str]) -> asyncio.Task[None]:
    """A request that waits, and notes when it has its slot."""

    async def take():
        await slots.acquire(caller)
        order.append(caller)

    before = slots.waiting
    task = asyncio.create_task(take())
    await until(lambda: slots.waiting == before + 1)
    return task


async def order_of(slots: FairSlots, running: str, names: list[str]) -> list[str]:
    """In which order those that wait for the only slot get it, one after the other."""
    order: list[str] = []
    tasks = [await waiting(slots, name, order) for name in names]
    for number in range(len(names)):
        slots.release(running)
        await until(lambda number=number: len(order) == number + 1)
        running = order[-1]
    slots.release(running)
    await asyncio.gather(*tasks)
    assert (slots.running, slots.waiting) == (0, 0)
    return order


def test_callers_take_turns_whoever_has_more_waiting():
    async def story():
        slots = FairSlots(shares(running=1), "things")
        await slots.acquire("loud")
        order = await order_of(slots, "loud", ["loud", "loud", "loud", "other", "other"])
        assert order == ["other", "other", "loud", "loud", "loud"]

    asyncio.run(story())


def test_a_caller_that_asks_rarely_comes_before_all_that_ask_often():
    """It does not wait for a turn of each of them."""

    async def story():
        slots = FairSlots(shares(running=1), "things")
        noisy = [f"noisy {number}" for number in range(10)]
        order: list[str] = []
        await slots.acquire("noisy 0")
        tasks = [await waiting(slots, name, order) for name in noisy * 3]
        running = "noisy 0"
        for number in range(31):
            if number == 15:  # all of them have had a turn, and more to do
                tasks.append(await waiting(slots, "quiet", order))
            slots.release(running)
            await until(lambda number=number: len(order) == number + 1)
            running = order[-1]
        slots.release(running)
        await asyncio.gather(*tasks)
        assert order[15] == "quiet"

    asyncio.run(story())


def test_places_of_callers_that_went_are_forgotten():
    async def story():
        slots = FairSlots(shares(running=1), "things")
        for number in range(5000):
            await slots.acquire(f"caller {number}")
            slots.release(f"caller {number}")
            await slots.acquire("always there")
            slots.release("always there")
        assert len(slots._next_tags) < 2000

    asyncio.run(story())


def test_nobody_has_all_slots():
    async def story():
        slots, order = FairSlots(shares(), "things"), []
        await slots.acquire("loud")
        task = await waiting(slots, "loud", order)
        await slots.acquire("quiet")  # at once
        assert (slots.running, slots.waiting) == (2, 1)
        slots.release("loud")
        await task

    asyncio.run(story())


def test_more_than_may_wait_are_refused_and_told_what_to_do():
    async def story():
        slots, order = FairSlots(shares(), "previews"), []
        await slots.acquire("loud")
        tasks = [await waiting(slots, "loud", order) for _ in range(3)]
        with pytest.raises(ApiError) as refused:
            await slots.acquire("loud")
        assert refused.value.status == 429
        assert refused.value.headers["retry-after"]
        assert "'loud' has too many previews" in str(refused.value)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert slots.waiting == 0

    asyncio.run(story())


def test_what_waits_holds_no_more_memory_than_allowed():
    async def story():
        slots = FairSlots(shares(), "previews")
        await slots.acquire("loud", 5000)
        first = asyncio.create_task(slots.acquire("loud", 5000))  # one alone may be larger
        await until(lambda: slots.waiting == 1)
        with pytest.raises(ApiError):
            await slots.acquire("loud", 1)
        first.cancel()
        await asyncio.wait([first])

    asyncio.run(story())


def test_who_waits_too_long_is_refused_and_leaves_the_queue():
    async def story():
        slots = FairSlots(shares(waiting_seconds=0.0), "previews")
        await slots.acquire("loud")
        with pytest.raises(ApiError) as refused:
            await slots.acquire("loud")
        assert refused.value.status == 429
        assert (slots.running, slots.waiting) == (1, 0)
        slots.release("loud")
        await slots.acquire("loud")

    asyncio.run(story())


def test_a_turn_that_comes_as_its_request_is_cancelled_goes_to_the_next():
    async def story():
        slots, order = FairSlots(shares(running=1), "things"), []
        await slots.acquire("a")
        first, second = await waiting(slots, "a", order), await waiting(slots, "b", order)
        slots.release("a")
        first.cancel()
        await asyncio.wait([first])
        await second
        assert order == ["b"]
        slots.release("b")
        assert (slots.running, slots.waiting) == (0, 0)

    asyncio.run(story())


def test_a_thread_keeps_its_slot_to_its_end_though_its_caller_is_gone():
    async def story():
        threads, may_end = FairThreads(shares(), "work"), threading.Event()
        task = asyncio.create_task(threads.run("ann", lambda: may_end.wait(PATIENCE)))
        await until(lambda: threads.slots.running == 1)
        task.cancel()
        await asyncio.wait([task])
        assert threads.slots.running == 1
        may_end.set()
        await until(lambda: threads.slots.running == 0)
        assert await threads.run("ann", lambda: "done") == "done"
        threads.close()

    asyncio.run(story())
