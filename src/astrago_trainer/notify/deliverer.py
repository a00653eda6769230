"""Takes from the outbox what is due and sends it: at least once, however often somebody dies in between.

A delivery is claimed before it is sent and marked after: who crashes in between sends it again, under the same id, and
receivers that must not act twice compare ids. Receivers may be slow: each namespace has a few sendings at a time, so
that one tenant's cannot hold up the others.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.notify.notices import Delivery
from astrago_trainer.notify.outbox import Outbox
from astrago_trainer.notify.retries import next_try
from astrago_trainer.notify.senders import Sender, SendFailed, SendRefused

AT_ONCE = 16
AT_ONCE_PER_NAMESPACE = 4
LEASE_SECONDS = 120.0
"""Longer than any sender takes, so that nobody else sends what is being sent."""
LOOK_SECONDS = 5.0
"""How often the outbox is asked, unless `wake` was called."""

log = logging.getLogger(__name__)


class Deliverer:
    """One per server; several on one outbox do not get in each other's way."""

    def __init__(
        self,
        outbox: Outbox,
        senders: Mapping[str, Sender],
        *,
        clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`senders` by kind of target: `webhook`, `slack`, `mail`."""
        self._outbox = outbox
        self._senders = senders
        self._clock = clock
        self._chance = chance
        self._woken = asyncio.Event()
        self._sending: dict[asyncio.Task[None], str] = {}

    def wake(self) -> None:
        """Something was put into the outbox."""
        self._woken.set()

    async def run(self) -> None:
        """Until it is cancelled; then what is being sent is cut off, and tried again by the next one."""
        try:
            while True:
                self._woken.clear()
                try:
                    await self._start_due()
                except AstragoError as error:  # the outbox is away: its rows stay, and so do we
                    log.warning(
                        "the outbox of notifications cannot be read; trying again: %s", error
                    )
                except Exception:  # a mistake of ours
                    log.exception("the outbox of notifications cannot be read; trying again")
                await self._wait()
        finally:
            await self._cut_off()

    async def step(self) -> int:
        """Sends everything that is due, and what comes due meanwhile; the number of tries."""
        count = 0
        while started := await self._start_due():
            count += started
            if self._sending:  # the first may have ended while the last was claimed
                await asyncio.wait(self._sending, return_when=asyncio.FIRST_COMPLETED)
        if self._sending:
            await asyncio.wait(self._sending)
            count += await self.step()
        return count

    async def _start_due(self) -> int:
        """Claims as much as there is room for."""
        started = 0
        while len(self._sending) < AT_ONCE:
            in_use = Counter(self._sending.values())
            busy = {name for name, count in in_use.items() if count >= AT_ONCE_PER_NAMESPACE}
            delivery = await self._outbox.claim(self._clock(), lease=LEASE_SECONDS, busy=busy)
            if delivery is None:
                break
            task = asyncio.create_task(self._deliver(delivery))
            self._sending[task] = delivery.notice.namespace
            task.add_done_callback(self._finished)
            started += 1
        return started

    def _finished(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        self._woken.set()  # there is room for another one
        error = None if task.cancelled() else task.exception()
        if isinstance(error, AstragoError):
            log.warning("a notification could not be marked; it will be sent again: %s", error)
        elif error is not None:
            log.error("a notification could not be marked; it will be sent again", exc_info=error)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            await self._senders[delivery.target.kind].send(delivery, self._clock())
        except SendFailed as error:
            await self._failed(delivery, str(error), error.retry_after)
        except SendRefused as error:
            await self._give_up(delivery, str(error))
        except KeyError:
            await self._give_up(delivery, f"this server sends no {delivery.target.kind}")
        except Exception as error:  # a mistake of ours must not stop the others
            log.exception("sending a notification broke", extra=_keys(delivery))
            await self._failed(delivery, f"internal error: {type(error).__name__}", None)
        else:
            await self._outbox.mark_sent(delivery, self._clock())

    async def _failed(self, delivery: Delivery, reason: str, retry_after: float | None) -> None:
        due = next_try(
            created_at=delivery.created_at,
            tries=delivery.tries,
            now=self._clock(),
            chance=self._chance(),
            retry_after=retry_after,
        )
        if due is None:
            await self._give_up(
                delivery, f"given up after a day and {delivery.tries} tries: {reason}"
            )
        else:
            await self._outbox.mark_failed(delivery, reason, next_try=due)

    async def _give_up(self, delivery: Delivery, reason: str) -> None:
        # Without the target: an address may hold a token.
        log.warning("notification %s is given up: %s", delivery.id, reason, extra=_keys(delivery))
        await self._outbox.mark_failed(delivery, reason, next_try=None)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            pass

    async def _cut_off(self) -> None:
        tasks = list(self._sending)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _keys(delivery: Delivery) -> dict[str, str]:
    return {"job": delivery.notice.job, "namespace": delivery.notice.namespace}
