"""Kills a service at every named point of a submit and of a deletion; says what the next one makes of it.

Run by a test as a program of its own: it forks for every point, which a process with threads should not do. A killed
service is followed by a new one on the same data, which must find its way without being told anything, or with the
client's one repetition of its request. One JSON line; AssertionError names the first point after which something is
wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from astrago_trainer.core.platform import Platform
from astrago_trainer.engines.base import Engine
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings
from astrago_trainer.store import crash
from tests.service.engines_for_crashes import ENGINES, Witness
from tests.service.jobs import ANN, a_spec, until, until_gone, until_phase

KEY = "the client's key"
PATIENCE = 60.0
"""Seconds in which everything has to be in order again; an undisturbed one takes a fraction of one."""

platform: Platform | None = None
"""What jobs are rendered for; whoever has another one sets it first."""

Scenario = Callable[[Service, Path], Awaitable[None]]


def spec_of(witness: Witness):
    return a_spec(name="job", nodes=1, command=witness.command, code=None)


async def submit(service: Service, data: Path, witness: Witness) -> None:
    record = await service.submit(ANN, "team", spec_of(witness), KEY)
    (data / "acknowledged").write_text(record.job.uid)
    await until_phase(service, "job", "Running")
    await until(service, lambda: service.get("team", "job").job.is_handed)
    await witness.until_started()


async def delete(service: Service, data: Path, witness: Witness) -> None:
    await until_phase(service, "job", "Running")
    await service.delete(ANN, "team", "job")
    (data / "acknowledged").write_text("deleted")
    await until_gone(service, "job")


ACTIONS = {"submit": submit, "delete": delete}


async def serve(data: Path, engine: Engine, scenario: Callable[[Service], Awaitable[None]]) -> None:
    async with asyncio.timeout(PATIENCE):
        async with Service(Settings(data=data), engine, platform=platform) as service:
            await scenario(service)


async def check_submit(service: Service, data: Path, witness: Witness, *, repeats: bool) -> None:
    """One job where there was an answer or the client repeats, none or one where not; and it runs once."""
    told = _acknowledged(data)
    if repeats:
        record = await service.submit(ANN, "team", spec_of(witness), KEY)
        assert told in ("", record.job.uid), (
            f"lost: {told} was acknowledged, {record.job.uid} is there"
        )
    if repeats or told:
        assert service.board.find("team", "job") is not None, "lost: it was acknowledged"
    if service.board.find("team", "job") is not None:
        job = await until_phase(service, "job", "Running")
        assert job.run == 1, f"doubled: this is run {job.run}"
        await witness.until_started()
        expected = [f"job-{job.uid}"]
    else:
        expected = []
    assert len(service.board) == len(expected), f"doubled: {len(service.board)} jobs"
    assert witness.running() == expected, f"{witness.running()} run, {expected} should"
    assert len(witness.starts()) == len(expected), f"doubled: started {witness.starts()}"


async def check_delete(service: Service, data: Path, witness: Witness, *, repeats: bool) -> None:
    """Gone with all that belonged to it where there was an answer or the client repeats; else gone, or untouched."""
    if service.board.find("team", "job") is not None and repeats:
        await service.delete(ANN, "team", "job")
    record = service.board.find("team", "job")
    if record is not None and not record.job.is_deleting:
        assert not _acknowledged(data), "forgotten: the deletion was acknowledged"
        assert witness.running() == [f"job-{record.job.uid}"], "it should run on"
        assert len(witness.starts()) == 1, f"doubled: started {witness.starts()}"
        return
    await until_gone(service, "job")
    assert witness.left() == [], f"left over: {witness.left()}"
    for table in ("jobs", "documents", "events", "pods", "attempts", "codes"):
        rows = await service.store.read(
            lambda connection, table=table: connection.exec_driver_sql(
                f"SELECT count(*) FROM {table}"
            ).scalar()
        )
        assert rows == 0, f"left over: {rows} rows in {table}"
    actions = [row.action for _, row in await service.audit("team")]
    assert sorted(actions) == ["job.delete", "job.removed", "job.submit"], f"audit: {actions}"


CHECKS = {"submit": check_submit, "delete": check_delete}


def _acknowledged(data: Path) -> str:
    path = data / "acknowledged"
    return path.read_text() if path.exists() else ""


def in_child(work: Callable[[], None]) -> int:
    """How a process ended that did it: 0, or minus the signal."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def act(data: Path, engine: str, action: str, listener: Callable[[str], None] | None) -> None:
    witness = ENGINES[engine](data)
    crash.listener = listener
    asyncio.run(
        serve(data, witness.engine, lambda service: ACTIONS[action](service, data, witness))
    )


def points_of(base: Path, engine: str, action: str) -> list[tuple[str, int]]:
    """All points that an undisturbed one passes, each with how often it was passed before."""
    data, told = prepared(base, engine, action), base / "points"

    def note(name: str) -> None:
        with told.open("a") as file:
            file.write(f"{name}\n")

    assert in_child(lambda: act(data, engine, action, note)) == 0
    clean_up(data, engine)
    counts: Counter[str] = Counter()
    points = []
    for name in told.read_text().splitlines():
        points.append((name, counts[name]))
        counts[name] += 1
    told.unlink()
    return points


def prepared(base: Path, engine: str, action: str) -> Path:
    data = Path(tempfile.mkdtemp(dir=base))
    if action == "delete":
        assert in_child(lambda: act(data, engine, "submit", None)) == 0
        (data / "acknowledged").unlink()
    return data


def clean_up(data: Path, engine: str) -> None:
    ENGINES[engine](data).clean_up()
    shutil.rmtree(data)


def kill_at(name: str, passed: int) -> Callable[[str], None]:
    seen = 0

    def listener(point: str) -> None:
        nonlocal seen
        if point == name:
            if seen == passed:
                os.kill(os.getpid(), signal.SIGKILL)
            seen += 1

    return listener


def try_point(
    base: Path, engine: str, action: str, point: tuple[str, int], *, repeats: bool
) -> bool:
    """Whether it was killed there; AssertionError when something was wrong afterwards."""
    data = prepared(base, engine, action)
    died = in_child(lambda: act(data, engine, action, kill_at(*point)))
    assert died in (0, -signal.SIGKILL), f"{action} failed before {point}"

    def check() -> None:
        witness = ENGINES[engine](data)
        asyncio.run(
            serve(
                data,
                witness.engine,
                lambda service: CHECKS[action](service, data, witness, repeats=repeats),
            )
        )

    ended = in_child(check)
    assert ended == 0, (
        f"{action} killed at {point[0]!r}, passed {point[1]} times before, with the client "
        f"{'repeating' if repeats else 'silent'}: see above"
    )
    clean_up(data, engine)
    return died != 0


def sweep(engine: str, action: str, rounds: int, *, only: str = "") -> dict[str, object]:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        points = [each for each in points_of(base, engine, action) if only in each[0]]
        kills = sum(
            try_point(base, engine, action, point, repeats=number % 2 == 0)
            for number in range(rounds)
            for point in points
        )
    return {
        "engine": engine, "action": action, "points": len(points), "kills": kills,
        "lost": 0, "doubled": 0, "left_over": 0,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engine", choices=sorted(ENGINES))
    parser.add_argument("action", choices=sorted(ACTIONS))
    parser.add_argument("rounds", type=int)
    parser.add_argument("--only", default="", help="points whose name holds this")
    options = parser.parse_args()
    logging.disable()  # what is retried is told, and is expected here
    try:
        print(json.dumps(sweep(options.engine, options.action, options.rounds, only=options.only)))
    except AssertionError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
