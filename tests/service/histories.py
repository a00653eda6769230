"""Histories of requests to several servers on one database, checked against a model.

    python -m tests.service.histories --count 2000 [--seed N] [--database postgresql]

Three servers, three clients for each job. Reads and writes of the database are delayed at random, fail before or after
they were done, and clients go away. The seed of a history that is wrong repeats its faults; what the machine does
meanwhile differs. One JSON line; the exit status is 1 when a history is wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import secrets
import sys
import tempfile
from collections import Counter
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.service import service as service_module
from astrago_trainer.service.errors import Conflict, NotFound
from astrago_trainer.service.service import Service
from astrago_trainer.store import StoreUnavailable
from astrago_trainer.store.jobs import Job
from tests.service.jobs import ANN, a_spec, serving
from tests.service.linear import Operation, State, is_linearizable
from tests.store.postgres import running_postgres

KINDS = ("create", "suspend", "resume", "suspend", "resume", "delete", "get", "get")
SERVERS = CLIENTS = 3
REQUESTS = 5
LONGEST_DELAY = 0.005
AT_ONCE = 100
"""Histories of one set of servers; then they are closed, and others open the database."""


class Faults:
    """Between a server and its database."""

    def __init__(self, service: Service, chance: random.Random, *, share: float) -> None:
        self._chance = chance
        self._share = share
        driver: Any = service.store._driver
        driver.read = self._around(driver.read)
        driver.write = self._around(driver.write)

    def _around(self, real: Any) -> Any:
        async def call(*arguments: Any) -> Any:
            await self._trouble()
            result = await real(*arguments)
            await self._trouble()
            return result

        return call

    async def _trouble(self) -> None:
        kind = self._chance.random()
        if kind < self._share / 2:
            raise StoreUnavailable("lost on the way")
        if kind < 4 * self._share:
            await asyncio.sleep(self._chance.random() * LONGEST_DELAY)


class History:
    """Of one job."""

    def __init__(self, services: list[Service], name: str, seed: int) -> None:
        self._services = services
        self._name = name
        self._chance = random.Random(seed)
        self._moments = itertools.count()
        self.operations: list[Operation] = []

    async def record(self) -> list[Operation]:
        clients = [self._client(random.Random(self._chance.random())) for _ in range(CLIENTS)]
        await asyncio.gather(*clients)
        return self.operations

    async def _client(self, chance: random.Random) -> None:
        for _ in range(REQUESTS):
            kind, service = chance.choice(KINDS), chance.choice(self._services)
            asked = Operation(kind, next(self._moments), None)
            patience = chance.random() * LONGEST_DELAY if chance.random() < 0.05 else None
            try:
                async with asyncio.timeout(patience):
                    answer = await self._ask(service, kind)
            except (StoreUnavailable, TimeoutError):
                self.operations.append(asked)  # its outcome is unknown
            else:
                self.operations.append(
                    replace(asked, answered_at=next(self._moments), answer=answer)
                )

    async def _ask(self, service: Service, kind: str) -> str | State:
        try:
            if kind == "get":
                await service.catch_up()
                return _state(service.get("team", self._name).job)
            if kind == "create":
                spec = a_spec(nodes=1, name=self._name)
                return _state((await service.submit(ANN, "team", spec)).job)
            verb = getattr(service, kind)
            return _state((await verb(ANN, "team", self._name)).job)
        except NotFound:
            return "missing"
        except Conflict:
            return "taken" if kind == "create" else "refused"


def _state(job: Job) -> State:
    return State(job.uid, job.is_suspended, job.is_deleting)


async def check_histories(
    data: Path, database: str | None, count: int, seed: int, *, first: int = 0, share: float = 0.05
) -> dict[str, Any]:
    """Records and judges so many, of jobs with the numbers from `first`; `wrong` has the first that is wrong."""
    engine, chance = FakeEngine(), random.Random(seed)
    wrong: list[Any] = []
    requests = unanswered = 0
    async with AsyncExitStack() as stack:
        services = [
            await stack.enter_async_context(serving(data, engine, database=database))
            for _ in range(SERVERS)
        ]
        for each in services:
            Faults(each, random.Random(chance.random()), share=share)
        for number in range(first, first + count):
            history = History(services, f"job{number}", chance.randrange(1 << 30))
            operations = await history.record()
            requests += len(operations)
            unanswered += sum(each.answered_at is None for each in operations)
            if not is_linearizable(operations) and not wrong:
                wrong = [str(each) for each in operations]
    return {
        "histories": count,
        "requests": requests,
        "unanswered": unanswered,
        "wrong": wrong,
        "seed": seed,
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--database", choices=("sqlite", "postgresql"), default="sqlite")
    options = parser.parse_args()
    service_module.JOIN_SECONDS = 0.0
    with (
        tempfile.TemporaryDirectory() as folder,
        running_postgres() if options.database == "postgresql" else nullcontext() as url,
    ):
        totals, wrong = Counter[str](), []
        for first in range(0, options.count, AT_ONCE):
            count, seed = min(AT_ONCE, options.count - first), options.seed + first
            found = asyncio.run(check_histories(Path(folder), url, count, seed, first=first))
            wrong += [{"seed": seed, "history": found["wrong"]}] if found["wrong"] else []
            totals.update({name: found[name] for name in ("histories", "requests", "unanswered")})
    print(
        json.dumps({"database": options.database, "seed": options.seed, **totals, "wrong": wrong})
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
