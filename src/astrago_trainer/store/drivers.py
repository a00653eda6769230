"""How work reaches a database: SQLite in threads of its own, PostgreSQL over asyncpg.

Work is a plain function of a SQLAlchemy connection, the same for both. SQLite is used without an async wrapper: a batch
is one visit to its thread instead of one per statement (four times as many rows a second), and the import of
SQLAlchemy's asyncio part (50 ms) is saved where no PostgreSQL is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.pool import NullPool

from astrago_trainer.store.errors import DataGone

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

T = TypeVar("T")
Work = Callable[[Connection], T]

BUSY_SECONDS = 5.0
"""How long a write waits for another process that holds the database locked, a statement for PostgreSQL to answer."""


class Driver(Protocol):
    """One database."""

    where: str
    """Its file, or its URL without the password: for messages."""

    async def write(self, work: Work[T]) -> T:
        """Runs it in one transaction; there is one writer at a time in this process."""
        ...

    async def read(self, work: Work[T]) -> T:
        """Runs it on one state of the database."""
        ...

    async def close(self) -> None: ...


def make_driver(
    url: str, *, busy_seconds: float = BUSY_SECONDS, is_patient: bool = False
) -> Driver:
    """For `sqlite:///PATH` or `postgresql://…`; raises ValueError for another kind.

    `is_patient`: statements may take as long as they need, as when tables are changed.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        return SqliteDriver(Path(parsed.database), busy_seconds)
    if parsed.get_backend_name() == "postgresql":
        return PostgresDriver(url, None if is_patient else busy_seconds)
    raise ValueError(
        f"a database is sqlite:///PATH or postgresql://USER@HOST/NAME, not "
        f"{parsed.render_as_string(hide_password=True)!r}"
    )


class SqliteDriver:
    """One thread that writes and one that reads: in WAL mode neither waits for the other."""

    def __init__(self, path: Path, busy_seconds: float = BUSY_SECONDS) -> None:
        self.where = str(path)
        self.path = path
        # `begin` is emitted by us, because the module's own way commits before it changes a schema.
        self._engine = create_engine(
            f"sqlite:///{path}", poolclass=NullPool, connect_args={"timeout": busy_seconds}
        )
        event.listen(self._engine, "connect", _prepare_sqlite)
        event.listen(self._engine, "begin", _begin_sqlite)
        self._writing = _Lane(self._engine, "BEGIN IMMEDIATE")
        self._reading = _Lane(self._engine, "BEGIN")
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that is open for writing."""

    async def write(self, work: Work[T]) -> T:
        return await self._writing.run(work, self._check_file)

    def _check_file(self, is_open: bool) -> None:
        """Raises DataGone when the path means another file than the open one, or none.

        SQLite goes on writing to a file without a name, and all of it is lost at the end of the process. One call of
        the kernel for each transaction is nothing beside the sync of the disk.
        """
        try:
            status = self.path.stat()
            found = (status.st_dev, status.st_ino)
        except OSError as error:
            if not is_open:
                return  # opening it says what is wrong
            raise DataGone(f"{self._gone()} ({error.strerror}).") from error
        if not is_open or self._file is None:
            self._file = found
        elif found != self._file:
            raise DataGone(f"{self._gone()}: another file has its place.")

    def _gone(self) -> str:
        return (
            f"the database {self.where} was removed or replaced while the server ran, and takes no writes. Bring it "
            "back (the folder, or a backup with 'astrago db restore FILE') and start the server again"
        )

    async def read(self, work: Work[T]) -> T:
        return await self._reading.run(work)

    async def close(self) -> None:
        # The writer last: who closes last folds the WAL into the file.
        await self._reading.close()
        await self._writing.close()


class _Lane:
    """A thread and its connection."""

    def __init__(self, engine: Engine, begin: str) -> None:
        self._engine = engine
        self._begin = begin
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="astrago-db")
        self._connection: Connection | None = None

    async def run(self, work: Work[T], check: Callable[[bool], None] = lambda _: None) -> T:
        """`check` is called first, with whether the connection was open before."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._do, work, check)

    def _do(self, work: Work[T], check: Callable[[bool], None]) -> T:
        is_open = self._connection is not None
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(begin=self._begin)
        check(is_open)
        with self._connection.begin():
            return work(self._connection)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._leave)
        self._thread.shutdown()

    def _leave(self) -> None:
        if self._connection is not None:
            self._connection.close()


def _prepare_sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        # An acknowledged write survives a loss of power: NORMAL would sync at checkpoints only.
        "synchronous = FULL",
        "fullfsync = ON",  # macOS: there a plain fsync does not reach the disk
        "foreign_keys = ON",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


class PostgresDriver:
    """Connections in a small pool; the engine is made with the first use, in the loop that uses it."""

    def __init__(self, url: str, statement_seconds: float | None = BUSY_SECONDS) -> None:
        """`statement_seconds`: after which a statement without an answer has failed."""
        self._seconds = statement_seconds
        parsed = make_url(url).set(drivername="postgresql+asyncpg")
        self.where = parsed.set(drivername="postgresql").render_as_string(hide_password=True)
        self._url = parsed
        self._made: AsyncEngine | None = None
        self._reading: set[asyncio.Task[Any]] = set()

    @property
    def _engine(self) -> AsyncEngine:
        if self._made is None:
            from sqlalchemy.ext.asyncio import create_async_engine

            limits = {} if self._seconds is None else {"command_timeout": self._seconds}
            self._made = create_async_engine(
                self._url,
                pool_size=4,
                pool_pre_ping=True,
                pool_timeout=BUSY_SECONDS,
                connect_args={"timeout": self._seconds or BUSY_SECONDS, **limits},
            )
        return self._made

    async def write(self, work: Work[T]) -> T:
        async with self._engine.begin() as connection:
            return await connection.run_sync(work)

    async def read(self, work: Work[T]) -> T:
        """Raises TimeoutError when all of it takes longer than one statement may: each step may take as long."""
        if self._seconds is None:
            return await self._read(work)
        reading = asyncio.create_task(self._read(work))
        self._reading.add(reading)
        reading.add_done_callback(self._end_reading)
        # It is not cancelled: that would wait for the server again, to take back the transaction.
        done, _ = await asyncio.wait({reading}, timeout=self._seconds)
        if not done:
            raise TimeoutError
        return reading.result()

    async def _read(self, work: Work[T]) -> T:
        async with self._engine.connect() as connection:
            await connection.execution_options(isolation_level="REPEATABLE READ")
            return await connection.run_sync(work)

    def _end_reading(self, task: asyncio.Task[Any]) -> None:
        self._reading.discard(task)
        if not task.cancelled():
            task.exception()  # taken: its caller may have gone

    async def close(self) -> None:
        await asyncio.gather(*self._reading, return_exceptions=True)
        if self._made is not None:
            await self._made.dispose()
