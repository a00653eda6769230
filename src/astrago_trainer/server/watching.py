"""Tells those who follow one job that something about it has changed: one listener for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from astrago_trainer.service.board import Record
from astrago_trainer.service.service import Service

Told = Callable[[Record | None], None]
"""Called with the job as it is now; None when it is gone."""


class JobWatch:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._by_job: dict[int, set[Told]] = {}
        self._of_all: list[Callable[[Record], None]] = []

    async def run(self) -> None:
        """Until cancelled, or until the service closes."""
        with self._service.subscribe() as news:
            async for each in news:
                if each.record is None:  # more has changed than is told
                    for number in list(self._by_job):
                        self._tell(number)
                    for record in list(self._service.board):
                        self._tell_all(record)
                else:
                    self._tell(each.record.job.number)
                    self._tell_all(each.record)

    def add(self, told: Callable[[Record], None]) -> None:
        """For whoever looks at every job; there are few of them, and they stay."""
        self._of_all.append(told)

    @contextmanager
    def job(self, number: int, told: Told) -> Iterator[None]:
        """Told at once how it is, then at every change."""
        listeners = self._by_job.setdefault(number, set())
        listeners.add(told)
        try:
            told(self._service.board.find_number(number))
            yield
        finally:
            listeners.discard(told)
            if not listeners:
                self._by_job.pop(number, None)

    @contextmanager
    def over(
        self, number: int, is_over: Callable[[Record | None], bool]
    ) -> Iterator[asyncio.Event]:
        """An event that is set as soon as the claim holds."""
        done = asyncio.Event()

        def told(record: Record | None) -> None:
            if is_over(record):
                done.set()

        with self.job(number, told):
            yield done

    def _tell(self, number: int) -> None:
        listeners = self._by_job.get(number)
        if listeners:
            record = self._service.board.find_number(number)
            for told in list(listeners):
                told(record)

    def _tell_all(self, record: Record) -> None:
        for told in self._of_all:
            told(record)
