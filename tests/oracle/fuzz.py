"""Compares our merge with the controller on many random pairs: `python -m tests.oracle.fuzz`.

Says per version how many pairs were equal. A pair that differs is printed small, with both answers
and the number that replays it (`--pair`), once for each kind of difference, and the exit status is
1. It is 2 when there was no oracle to ask.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from astrago_trainer.core.merge import merge
from tests.oracle.build import VERSIONS, Oracle, OracleError, oracle_binary, skip_reason
from tests.oracle.compare import differences, is_xgboost
from tests.oracle.generate import SEEDS, make_pair
from tests.oracle.minimise import minimise

Json = dict[str, Any]

_BATCH = 100  # pairs on the way to the oracle at once: enough to keep it busy
_CHUNK = 1000  # pairs a worker takes; each has an oracle of its own, so plugin orders vary too
_KINDS = {"objects": "objects", "errors": "refusals", "undecodable": "refusals"}


@dataclass(slots=True)
class Mismatch:
    """A pair on which the two sides do not agree."""

    version: str
    seed: int
    found: list[str]

    @property
    def signature(self) -> str:
        """The first difference without names and values: one cause, one signature mostly."""
        line = re.sub(r"^(\w+)/[^.\[]*", r"\1", self.found[0])
        line = re.split(r": theirs |, ours | into Go ", line, maxsplit=1)[0]
        line = re.sub(r"\b(limits|requests|minResources|overhead)\.\S+", r"\1.*", line)
        return re.sub(r'"[^"]*"|0x[0-9a-f]+|\d+|n{5,}', "#", line)[:150]


@dataclass(slots=True)
class Tally:
    """How a number of comparisons went."""

    pairs: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    mismatches: list[Mismatch] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.pairs += other.pairs
        self.kinds += other.kinds
        self.mismatches += other.mismatches


def compare_seeds(oracle: Oracle, version: str, seeds: Sequence[int]) -> Tally:
    """Merges the pairs of `seeds` on both sides."""
    tally = Tally()
    for start in range(0, len(seeds), _BATCH):
        batch = seeds[start : start + _BATCH]
        pairs = [make_pair(seed, version) for seed in batch]
        for seed, pair, theirs in zip(batch, pairs, oracle.ask(pairs), strict=True):
            tally.pairs += 1
            tally.kinds[_KINDS.get(next(iter(theirs)), "crashes of the controller")] += 1
            found = compare_pair(pair, theirs, version)
            if found:
                tally.mismatches.append(Mismatch(version, seed, found))
    return tally


def compare_pair(pair: Json, theirs: Json, version: str) -> list[str]:
    """The differences on one pair; an exception of our merge is one, and so is a changed input."""
    before = json.dumps(pair)
    try:
        ours = merge(pair["runtime"], pair["trainJob"], version)
    except Exception as error:  # whatever it raises must be reported with the pair
        return [f"ours raised {type(error).__name__}: {error}"]
    if json.dumps(pair) != before:
        return ["ours changed its input"]
    return differences(ours, theirs, any_env_order=is_xgboost(pair))


def report(oracle: Oracle, mismatch: Mismatch) -> str:
    """The pair made small, both answers and how to see it again."""
    version = mismatch.version

    def still_fails(pair: Json) -> bool:
        [theirs] = oracle.ask([pair])
        found = compare_pair(pair, theirs, version)
        return bool(found) and Mismatch(version, 0, found).signature == mismatch.signature

    pair = minimise(make_pair(mismatch.seed, version), still_fails)
    [theirs] = oracle.ask([pair])
    found = compare_pair(pair, theirs, version) or mismatch.found
    for item in theirs.get("objects", []):
        if item["kind"] == "Secret":
            item["data"] = sorted(item["data"])
    lines = [
        f"trainer {VERSIONS[version]}: pair {mismatch.seed} differs; again with: "
        f"python -m tests.oracle.fuzz --version {version} --pair {mismatch.seed}",
        f"  made small: {json.dumps(pair, ensure_ascii=False)}",
        f"  theirs: {json.dumps(theirs, ensure_ascii=False)[:2000]}",
        *(f"  {line}" for line in found[:8]),
    ]
    return "\n".join(lines)


def _seeds(seed: int, version: str, count: int) -> list[int]:
    source = Random(f"{seed} {version}")
    return [source.randrange(SEEDS) for _ in range(count)]


def _chunk(binary: Path, version: str, seeds: Sequence[int]) -> Tally:
    with Oracle(binary) as oracle:
        return compare_seeds(oracle, version, seeds)


@dataclass(frozen=True, slots=True)
class _Work:
    """The comparisons to be made for one version."""

    version: str
    binary: Path
    seeds: Sequence[int]
    origin: str
    """Where the pairs come from, in words."""


def _run(work: _Work, pool: ProcessPoolExecutor) -> Tally:
    start = time.monotonic()
    total = Tally()
    chunks = [work.seeds[i : i + _CHUNK] for i in range(0, len(work.seeds), _CHUNK)]
    for future in [pool.submit(_chunk, work.binary, work.version, chunk) for chunk in chunks]:
        total.add(future.result())
    rate = total.pairs / max(time.monotonic() - start, 0.001)
    kinds = ", ".join(
        f"{total.kinds[kind]} {kind}"
        for kind in ("objects", "refusals", "crashes of the controller")
    )
    print(
        f"trainer {VERSIONS[work.version]}: {total.pairs} pairs, "
        f"{total.pairs - len(total.mismatches)} equal ({kinds}), {work.origin}, {rate:.0f} pairs/s",
        flush=True,
    )
    return total


def _explain(work: _Work, mismatches: Sequence[Mismatch], most: int) -> None:
    groups: dict[str, list[Mismatch]] = {}
    for mismatch in mismatches:
        groups.setdefault(mismatch.signature, []).append(mismatch)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    with Oracle(work.binary) as oracle:
        for signature, members in ordered[:most]:
            print(f"\n{len(members)} pairs: {signature}\n{report(oracle, members[0])}", flush=True)
    if len(ordered) > most:
        print(f"\n… and {len(ordered) - most} more kinds of difference (--groups)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20000, help="pairs per version (20000)")
    parser.add_argument("--seed", type=int, help="replays a whole run; drawn when absent")
    parser.add_argument("--version", choices=VERSIONS, help="only this one")
    parser.add_argument("--pair", type=int, help="only the pair of this number")
    parser.add_argument("--groups", type=int, default=10, help="kinds of difference to show (10)")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else secrets.randbelow(2**32)
    versions = [arguments.version] if arguments.version else list(VERSIONS)
    try:
        with ProcessPoolExecutor(max_workers=min(os.cpu_count() or 1, 8)) as pool:
            differ = False
            for version in versions:
                binary = oracle_binary(version)
                if binary is None:
                    print(skip_reason(version), file=sys.stderr)
                    return 2
                if arguments.pair is None:
                    seeds = _seeds(seed, version, arguments.pairs)
                    work = _Work(version, binary, seeds, f"seed {seed}")
                else:
                    work = _Work(version, binary, [arguments.pair], f"pair {arguments.pair}")
                total = _run(work, pool)
                _explain(work, total.mismatches, arguments.groups)
                differ |= bool(total.mismatches)
    except OracleError as error:
        print(error, file=sys.stderr)
        return 2
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
