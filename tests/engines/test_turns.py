"""Whose turn it is: namespaces share a machine equally, and nobody overtakes within one."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from astrago_trainer.engines.local.turns import Waiting, next_turn, shares_of

MACHINE = {"cpu": 4000, "memory": 2**30, "gpus": [0, 1, 2, 3]}


def waiting(*jobs: tuple[str, float]) -> dict[str, list[Waiting]]:
    found: dict[str, list[Waiting]] = {}
    for namespace, since in jobs:
        found.setdefault(namespace, []).append(Waiting(since, f"{namespace}-{since:g}", namespace))
    return found


def held(namespace: str, cpu: int = 0, memory: int = 0, gpus: int = 0) -> dict:
    holds = {"cpu": cpu, "memory": memory, "gpus": list(range(gpus))}
    return {"namespace": namespace, "holds": holds}


def test_the_namespace_with_the_smaller_share_comes_first():
    jobs = waiting(("ann", 1), ("ben", 2))
    turn = next_turn(jobs, [held("ann", cpu=1000)], MACHINE, {})
    assert turn is not None
    assert turn.uid == "ben-2"


def test_a_share_is_the_largest_fraction_of_any_resource():
    found = [held("ann", cpu=1000, gpus=3), held("ben", cpu=2000), held("ben", memory=2**29)]
    assert shares_of(found, MACHINE) == {"ann": 0.75, "ben": 0.5}
    assert shares_of([held("ann", cpu=1000)], {**MACHINE, "gpus": []}) == {"ann": 0.25}


def test_among_equal_shares_the_one_whose_last_start_is_longest_ago_comes_first():
    jobs = waiting(("ann", 1), ("ben", 2), ("eve", 3))
    turn = next_turn(jobs, [], MACHINE, {"ann": 5, "ben": 4, "eve": 6})
    assert turn is not None
    assert turn.namespace == "ben"


def test_nobody_waits_means_no_turn():
    assert next_turn({}, [], MACHINE, {}) is None


@given(st.lists(st.sampled_from("abcde"), min_size=1, max_size=60))
def test_starts_are_shared_equally_as_long_as_all_have_jobs(namespaces):
    """One job at a time: after each start the counts of those that still wait differ by one at most."""
    jobs = waiting(*((each, float(place)) for place, each in enumerate(namespaces)))
    last_start: dict[str, int] = {}
    counts: Counter[str] = Counter(dict.fromkeys(jobs, 0))
    for start in range(len(namespaces)):
        turn = next_turn(jobs, [], MACHINE, last_start)
        assert turn is not None
        assert turn == min(jobs[turn.namespace])
        jobs[turn.namespace].remove(turn)
        last_start[turn.namespace] = start
        counts[turn.namespace] += 1
        assert counts[turn.namespace] <= 1 + min(counts[each] for each in jobs)
        if not jobs[turn.namespace]:
            del jobs[turn.namespace]
    assert not jobs
