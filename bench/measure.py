"""How a comparison is made: rounds in ABBA order, medians, and a bootstrap interval of the ratio."""

from __future__ import annotations

import os
import random
import statistics
import subprocess
from collections.abc import Callable, Sequence
from typing import Any


def interleaved(
    ours: Callable[[], float], peer: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """`rounds` measurements of each, in the order A B B A, so that a drift of the machine hits both."""
    mine: list[float] = []
    theirs: list[float] = []
    for index in range(rounds):
        order = [(mine, ours), (theirs, peer)]
        for results, measure in order if index % 2 == 0 else reversed(order):
            results.append(measure())
    return mine, theirs


def comparison(mine: Sequence[float], theirs: Sequence[float]) -> dict[str, Any]:
    """Medians and the ratio of ours to the peer's with its 95 % interval."""
    chance = random.Random(1)
    ratios = sorted(
        statistics.median(chance.choices(mine, k=len(mine)))
        / statistics.median(chance.choices(theirs, k=len(theirs)))
        for _ in range(2000)
    )
    return {
        "ours": round(statistics.median(mine), 2),
        "peer": round(statistics.median(theirs), 2),
        "ratio": round(statistics.median(mine) / statistics.median(theirs), 3),
        "ci95": [round(ratios[50], 3), round(ratios[1949], 3)],
        "n": len(mine),
    }


def cpu_ms(command: Sequence[str]) -> float:
    """CPU time of a command, user and system, in milliseconds; its output is thrown away."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000
