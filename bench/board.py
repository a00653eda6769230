"""Status and lists from memory, at 100 to 100,000 jobs (performance goals C1, C2, G1, I1, J).

These are the costs inside the server: what HTTP adds is measured with the API.
"""

from __future__ import annotations

import asyncio
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.store.databases import a_new_job

from astrago_trainer.service.board import Board, Query

SIZES = (100, 1_000, 10_000, 100_000)
CALLS = 2_000
_PHASES = ("Complete",) * 90 + ("Failed",) * 8 + ("Running", "Pending")


def run() -> Iterator[dict[str, Any]]:
    before = _resident()
    boards = [_board(SIZES[-1])]
    memory = _resident() - before
    boards = [_board(size) for size in SIZES[:-1]] + boards
    yield {
        "id": f"board memory, {SIZES[-1]} jobs, every answer encoded",
        "unit": "MB",
        "goal": "server <= 400",
        "ours": round(memory / 1e6, 1),
        "peer": None,
        "bytes_per_job": round(memory / SIZES[-1]),
    }
    chance = random.Random(1)
    queries: dict[str, Callable[[Board, int], object]] = {
        "status": lambda board, size: _status(board, chance.randrange(size)),
        "page of 50": lambda board, size: _page(board, None, chance.randrange(1, size)),
        "page of 50, running": lambda board, size: _page(
            board, Query(phases=frozenset({"Running"}))
        ),
        "page of 50, one owner": lambda board, size: _page(board, Query(owner="user7")),
        "page of 50, search": lambda board, size: _page(board, Query(text="no such name")),
    }
    for name, query in queries.items():
        yield _growth(name, boards, query)
    yield asyncio.run(_freshness(boards[-1]))


def _board(size: int) -> Board:
    board = Board()
    chance = random.Random(size)
    for number in range(1, size + 1):
        owner = f"user{chance.randrange(50)}"
        job = a_new_job(
            f"{owner}-job-202611151200{number:06d}",
            number=number,
            owner=owner,
            phase=chance.choice(_PHASES),
            message="every pod ended with success",
            reason="AllJobsCompleted",
            started_at=1.8e9 + number,
            finished_at=1.8e9 + number + 60,
            settled_at=1.8e9 + number + 60,
            server="1234-abcdef012345",
        ).job
        assert board.put(job).body
    return board


def _status(board: Board, index: int) -> bytes:
    record = board.find_number(index + 1)
    assert record is not None
    found = board.find("team", record.job.name)
    assert found is not None
    return found.body


def _page(board: Board, query: Query | None, before: int | None = None) -> bytes:
    token = None if before is None else f"j{before:x}"
    page = board.page("team", query, limit=50, token=token)
    return b"[" + b",".join(record.body for record in page.records) + b"]"


def _growth(
    name: str, boards: list[Board], query: Callable[[Board, int], object]
) -> dict[str, Any]:
    """The exponent k in cost ~ jobs^k, by least squares over the medians."""
    medians, last = [], 0.0
    for size, board in zip(SIZES, boards, strict=True):
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            query(board, size)
            times.append(time.perf_counter() - start)
        times.sort()
        medians.append(times[CALLS // 2])
        last = times[CALLS * 99 // 100]
    points = [(math.log(size), math.log(cost)) for size, cost in zip(SIZES, medians, strict=True)]
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)
    return {
        "id": f"board {name}",
        "unit": "us, p99 at 100,000 jobs",
        "ours": round(last * 1e6, 1),
        "peer": None,
        "n": CALLS,
        "jobs": SIZES,
        "us": [round(cost * 1e6, 2) for cost in medians],
        # From 100 jobs on a page is full; a filter finds less in a small list, and is quicker there for that.
        **({} if "," in name else {"growth_k": round(slope, 3)}),
    }


async def _freshness(board: Board) -> dict[str, Any]:
    """From a change on the board to a hundred listeners that have it, encoded."""
    listeners = [board.subscribe("team") for _ in range(100)]
    record = board.find_number(7)
    assert record is not None
    times = []
    for version in range(2, 302):
        start = time.perf_counter()
        board.put(record.job._replace(version=version))
        for news in await asyncio.gather(*(anext(each) for each in listeners)):
            assert news.record is not None
            assert news.record.body
        times.append(time.perf_counter() - start)
    for each in listeners:
        each.close()
    times.sort()
    return {
        "id": "board change to 100 listeners, p99",
        "unit": "ms",
        "goal": "<= 200 with HTTP",
        "ours": round(times[len(times) * 99 // 100] * 1000, 2),
        "peer": None,
        "n": len(times),
    }


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
