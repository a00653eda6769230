"""At least once, with a stable id, through crashes, bad receivers and a whole day; and nobody waits for others."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import pytest
from tests.notify.receivers import LOOPBACK, a_notice, answer, receiving, run

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.notify.deliverer import AT_ONCE_PER_NAMESPACE, LEASE_SECONDS, Deliverer
from astrago_trainer.notify.http import HttpSender
from astrago_trainer.notify.notices import Delivery, Mail, Webhook, deliveries
from astrago_trainer.notify.outbox import MemoryOutbox
from astrago_trainer.notify.retries import GIVE_UP_SECONDS, next_try
from astrago_trainer.notify.senders import SendFailed, SendRefused

TARGET = Webhook(url="https://hooks.example/x")


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """A sender that fails as it is told, then works."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.sent: list[Delivery] = []

    async def send(self, delivery: Delivery, now: float) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.sent.append(delivery)


def an_outbox(*targets, **changes) -> MemoryOutbox:
    outbox = MemoryOutbox()
    outbox.add(deliveries(a_notice(**changes), targets or [TARGET], 1000.0))
    return outbox


def a_deliverer(outbox, sender, clock) -> Deliverer:
    return Deliverer(outbox, {"webhook": sender}, clock=clock, chance=lambda: 0.0)


def only_row(outbox: MemoryOutbox):
    (row,) = outbox.rows.values()
    return row


def test_what_is_due_is_sent_once():
    async def main():
        outbox, sender, clock = an_outbox(), Scripted(), Clock()
        deliverer = a_deliverer(outbox, sender, clock)

        assert await deliverer.step() == 1
        assert await deliverer.step() == 0
        outbox.add(
            deliveries(a_notice(), [TARGET], 2000.0)
        )  # told again after a crash of the service
        assert await deliverer.step() == 0
        assert only_row(outbox).state == "sent"

    run(main())


def test_a_failure_is_tried_again_later_and_later():
    async def main():
        outbox, clock = an_outbox(), Clock()
        sender = Scripted(*[SendFailed("no")] * 3, SendFailed("busy", retry_after=500))
        deliverer = a_deliverer(outbox, sender, clock)
        pauses = []
        for _ in range(4):
            await deliverer.step()
            pauses.append(only_row(outbox).due - clock.now)
            assert await deliverer.step() == 0, "not before its time"
            clock.now = only_row(outbox).due

        assert await deliverer.step() == 1
        assert pauses == [10.0, 20.0, 40.0, 500.0]
        assert sender.sent[0].tries == 5

    run(main())


def test_after_a_day_it_is_given_up_and_said_so(caplog):
    async def main():
        outbox, clock = an_outbox(), Clock()
        deliverer = a_deliverer(
            outbox, Scripted(*[SendFailed("receiver answered 500")] * 1000), clock
        )
        while only_row(outbox).state == "waiting":
            await deliverer.step()
            clock.now = max(clock.now, only_row(outbox).due)

        assert 23 * 3600 < clock.now - 1000.0 <= GIVE_UP_SECONDS
        tries = only_row(outbox).delivery.tries
        assert only_row(outbox).reason == (
            f"given up after a day and {tries} tries: receiver answered 500"
        )
        assert 25 <= tries <= 50

    with caplog.at_level(logging.WARNING):
        run(main())
    (record,) = caplog.records
    assert "given up" in record.getMessage()
    assert "hooks.example" not in record.getMessage()
    assert record.__dict__["job"] == "mnist"


def test_what_can_never_work_is_given_up_at_once():
    async def main():
        refused, unknown = an_outbox(), an_outbox(Mail(address="a@b.example"))
        for outbox in (refused, unknown):
            await a_deliverer(outbox, Scripted(SendRefused("answered 410")), Clock()).step()

        assert (only_row(refused).state, only_row(refused).reason) == ("given-up", "answered 410")
        assert only_row(unknown).reason == "this server sends no mail"

    run(main())


def test_a_mistake_of_ours_costs_one_try(caplog):
    async def main():
        outbox = an_outbox()
        await a_deliverer(outbox, Scripted(ZeroDivisionError()), Clock()).step()
        row = only_row(outbox)
        assert (row.state, row.reason) == ("waiting", "internal error: ZeroDivisionError")

    run(main())
    assert "sending a notification broke" in caplog.text


class Crashing(MemoryOutbox):
    """The database is gone just when the message has been sent."""

    crashes = 1

    async def mark_sent(self, delivery: Delivery, now: float) -> None:
        if self.crashes:
            self.crashes -= 1
            raise ConnectionError("crash between send and mark")
        await super().mark_sent(delivery, now)


def test_a_crash_between_send_and_mark_sends_again_under_the_same_id(caplog):
    async def main():
        outbox, clock = Crashing(), Clock()
        async with receiving() as receiver:
            outbox.add(deliveries(a_notice(), [Webhook(url=receiver.url)], 1000.0))
            sender = HttpSender(LOOPBACK)
            await a_deliverer(outbox, sender, clock).step()
            assert only_row(outbox).state == "waiting"

            restarted = a_deliverer(outbox, sender, clock)
            assert await restarted.step() == 0, "it is still leased"
            clock.now += LEASE_SECONDS
            assert await restarted.step() == 1

        assert only_row(outbox).state == "sent"
        ids = [request.headers["webhook-id"] for request in receiver.requests]
        assert ids == [only_row(outbox).delivery.id] * 2

    run(main())
    assert "it will be sent again" in caplog.text


def test_a_late_failure_does_not_undo_a_success():
    async def main():
        outbox = an_outbox()
        slow = await outbox.claim(1000.0, lease=10.0, busy=())
        fast = await outbox.claim(1010.0, lease=10.0, busy=())
        assert slow is not None
        assert fast is not None
        await outbox.mark_failed(slow, "too late", next_try=9999.0)
        assert only_row(outbox).due == 1020.0
        await outbox.mark_sent(slow, 1011.0)
        await outbox.mark_failed(fast, "refused", next_try=None)
        assert only_row(outbox).state == "sent"

    run(main())


def test_a_receiver_that_recovers_gets_its_message():
    async def main():
        outbox, clock = MemoryOutbox(), Clock()
        async with receiving(answer("503 Later"), answer("200 OK")) as receiver:
            outbox.add(deliveries(a_notice(), [Webhook(url=receiver.url)], 1000.0))
            deliverer = a_deliverer(outbox, HttpSender(LOOPBACK), clock)
            await deliverer.step()
            assert only_row(outbox).reason == "127.0.0.1 answered 503"
            clock.now = only_row(outbox).due
            await deliverer.step()
        assert only_row(outbox).state == "sent"

    run(main())


class Stuck:
    """Receivers of one namespace never answer."""

    def __init__(self) -> None:
        self.stuck = 0
        self.sent = asyncio.Event()

    async def send(self, delivery: Delivery, now: float) -> None:
        if delivery.notice.namespace == "slow":
            self.stuck += 1
            await asyncio.Event().wait()
        self.sent.set()


def test_the_receivers_of_one_tenant_do_not_hold_up_another():
    async def main():
        outbox, sender = MemoryOutbox(), Stuck()
        for number in range(100):
            outbox.add(deliveries(a_notice(namespace="slow", uid=str(number)), [TARGET], 1.0))
        outbox.add(deliveries(a_notice(), [TARGET], 1000.0))
        deliverer = a_deliverer(outbox, sender, Clock())
        running = asyncio.create_task(deliverer.run())

        await sender.sent.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

        assert sender.stuck == AT_ONCE_PER_NAMESPACE

    run(main())


class Flaky(MemoryOutbox):
    failures = 1

    async def claim(self, *arguments, **options):
        if self.failures:
            self.failures -= 1
            raise ConnectionError("database is away")
        return await super().claim(*arguments, **options)


def test_the_loop_wakes_for_what_is_new_and_survives_its_outbox(caplog):
    async def main():
        outbox, sender = Flaky(), Stuck()
        deliverer = a_deliverer(outbox, sender, Clock())
        running = asyncio.create_task(deliverer.run())
        while outbox.failures:
            await asyncio.sleep(0)
        outbox.add(deliveries(a_notice(), [TARGET], 1000.0))
        deliverer.wake()

        await sender.sent.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    run(main())
    assert "cannot be read; trying again" in caplog.text


def test_a_database_that_is_away_is_one_line_of_the_log(caplog):
    class Away(MemoryOutbox):
        async def claim(self, *arguments, **options):
            asked.set()
            raise AstragoError("the database is not available.")

    asked = asyncio.Event()

    async def main():
        running = asyncio.create_task(a_deliverer(Away(), Stuck(), Clock()).run())
        await asked.wait()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    run(main())
    (line,) = caplog.records
    assert (line.levelname, line.exc_info) == ("WARNING", None)
    assert line.getMessage().endswith("trying again: the database is not available.")


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_pauses_double_to_an_hour_and_are_spread(chance):
    pauses = [
        next_try(created_at=0.0, tries=tries, now=0.0, chance=chance) for tries in range(1, 12)
    ]

    assert pauses[0] == 10.0 * (1 - chance / 2)
    assert pauses[-1] == 3600.0 * (1 - chance / 2)
    assert pauses == sorted(pauses)


def test_thousands_of_tries_are_no_trouble():
    assert next_try(created_at=0.0, tries=10**6, now=0.0, chance=0.0) == 3600.0
    assert next_try(created_at=0.0, tries=1, now=GIVE_UP_SECONDS - 10.0, chance=0.0) is None
