"""The store: opens a database or says why not, reads, and writes in groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection

from astrago_trainer.store.drivers import BUSY_SECONDS, Driver, SqliteDriver, make_driver
from astrago_trainer.store.errors import StoreRefused, StoreUnavailable, translated
from astrago_trainer.store.files import check_file, mark_file
from astrago_trainer.store.schema import prepare
from astrago_trainer.store.writer import Write, Writer

A = TypeVar("A")
R = TypeVar("R")

FILE_NAME = "astrago.db"


class Store:
    """One database, used by one event loop."""

    def __init__(self, driver: Driver, waiting_seconds: float = BUSY_SECONDS) -> None:
        """`waiting_seconds`: see `Writer`."""
        self._driver = driver
        self._writer = Writer(driver, on_commit=self._note, waiting_seconds=waiting_seconds)
        self.own_stamp = 0
        """The newest stamp up to which all commits are known to be of this process."""

    @property
    def where(self) -> str:
        """The file or the URL without its password."""
        return self._driver.where

    @property
    def folder(self) -> Path | None:
        """Of a database that is a file."""
        return self._driver.path.parent if isinstance(self._driver, SqliteDriver) else None

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        busy_seconds: float = BUSY_SECONDS,
        waiting_seconds: float = BUSY_SECONDS,
    ) -> Store:
        """Makes or upgrades the tables; raises StoreRefused or StoreUnavailable, which name the database."""
        try:
            driver = make_driver(url, busy_seconds=busy_seconds)
            is_sqlite = isinstance(driver, SqliteDriver)
            maker = driver if is_sqlite else make_driver(url, is_patient=True)
        except Exception as error:
            raise StoreRefused(f"the database cannot be used: {error}.") from error
        try:
            if isinstance(driver, SqliteDriver):
                await asyncio.to_thread(check_file, driver.path)
            await maker.write(lambda connection: prepare(connection, driver.where))
            if isinstance(driver, SqliteDriver):
                await asyncio.to_thread(mark_file, driver.path)
        except Exception as error:
            await driver.close()
            raise _refusal(error, driver.where) from error
        finally:
            if maker is not driver:
                await maker.close()
        return cls(driver, waiting_seconds)

    async def close(self) -> None:
        """After everything that waits is written."""
        await self._writer.close()
        await self._driver.close()

    async def write(self, function: Write[A, R], argument: A) -> R:
        """What the function says of this argument, once it is durable."""
        return await self._writer.write(function, argument)

    async def read(self, work: Callable[[Connection], R]) -> R:
        try:
            return await self._driver.read(work)
        except Exception as error:
            raise translated(error, self._driver.where) from error

    def _note(self, stamp: int) -> None:
        if stamp == self.own_stamp + 1:
            self.own_stamp = stamp


def database_url(data: Path, url: str | None = None) -> str:
    """The one that is configured, else the file in the data folder."""
    return url or f"sqlite:///{data / FILE_NAME}"


def _refusal(error: Exception, where: str) -> Exception:
    found = translated(error, where)
    if isinstance(found, StoreUnavailable):
        return StoreUnavailable(f"{found} Nothing was changed; try again once that is repaired.")
    return found
