"""Merges a second on one core, beside the operator's own code on the same pairs (performance goal F)."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

from tests.oracle.build import VERSIONS, oracle_binary
from tests.oracle.generate import make_pair

from astrago_trainer.catalogue import load_runtime, runtimes, sample_trainjob
from astrago_trainer.core.merge import compile_runtime, merge
from bench.measure import comparison, interleaved

PAIRS = 2000
ROUNDS = 15


def run() -> Iterator[dict[str, Any]]:
    for version in VERSIONS:
        pairs = [make_pair(seed, version) for seed in range(PAIRS)]
        yield {"id": "merge", "pairs": "generated", **_compare(pairs, version)}
    yield _catalogue()


def _compare(pairs: list[dict[str, Any]], version: str) -> dict[str, Any]:
    described = {
        "trainer": VERSIONS[version],
        "unit": "merges per second and core",
        "goal": ">= 5000 and > peer",
    }
    binary = oracle_binary(version)
    if binary is None:
        mine = [_ours(pairs, version) for _ in range(ROUNDS)]
        return {
            **described,
            "ours": round(sorted(mine)[ROUNDS // 2]),
            "peer": None,
            "why": "Go is missing",
        }
    lines = "".join(f"{json.dumps(pair)}\n" for pair in pairs)

    def peer() -> float:
        environment = {"GOMAXPROCS": "1", "PATH": "/usr/bin:/bin"}
        answer = subprocess.run(
            [str(binary), "bench"],
            input=lines,
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        timed = json.loads(answer.stdout)
        return float(timed["pairs"] / timed["seconds"])

    mine, theirs = interleaved(lambda: _ours(pairs, version), peer, ROUNDS)
    return {**described, **comparison(mine, theirs)}


def _ours(pairs: list[dict[str, Any]], version: str) -> float:
    start = time.process_time()
    for pair in pairs:
        merge(pair["runtime"], pair["trainJob"], version)
    return len(pairs) / (time.process_time() - start)


def _catalogue() -> dict[str, Any]:
    """A service merges many jobs with few runtimes, so it compiles each of these once."""
    names = [entry.name for entry in runtimes()]
    compiled = [
        (compile_runtime(load_runtime(name), "2.1", defaults=True), sample_trainjob(name))
        for name in names
    ]
    results = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(200):
            for runtime, trainjob in compiled:
                merge(runtime, trainjob, "2.1")
        results.append(200 * len(compiled) / (time.process_time() - start))
    return {
        "id": "merge",
        "pairs": "catalogue, runtime compiled once",
        "trainer": VERSIONS["2.1"],
        "unit": "merges per second and core",
        "ours": round(sorted(results)[ROUNDS // 2]),
        "peer": None,
        "n": ROUNDS,
    }
