"""The campaign of the local queue in short; and that it notices an unfair order, a late start and a disorder."""

from __future__ import annotations

from tests.engines.queue_campaign import (
    Limits,
    Start,
    disorder,
    next_starts,
    run_campaign,
    unfairness,
)


def starts(*names: str) -> list[Start]:
    numbers: dict[str, int] = {}
    found = []
    for place, name in enumerate(names):
        numbers[name] = numbers.get(name, -1) + 1
        found.append(Start(name, numbers[name], place, place + 0.5))
    return found


def test_jobs_of_many_namespaces_run_once_and_in_turns():
    limits = Limits(idle=0.2, next_start=2.0)
    table = run_campaign(40, 10, seed=1, limits=limits, idle_seconds=1.0)
    assert table.failed == 0, "\n".join(table.lines)


def test_who_takes_turns_is_fair_and_who_comes_first_is_not():
    assert unfairness(starts("a", "b", "a", "b", "a", "b")) == 1
    assert unfairness(starts("a", "a", "a", "a", "b", "b")) == 3
    # Who has no job left does not count.
    assert unfairness(starts("a", "b", "a", "a", "a")) == 1


def test_a_job_before_an_earlier_one_of_its_namespace_is_noticed():
    assert disorder([Start("a", 0, 0, 1), Start("b", 5, 1, 2), Start("a", 1, 2, 3)]) == 0
    assert disorder([Start("a", 3, 0, 1), Start("b", 0, 1, 2), Start("a", 1, 2, 3)]) == 2


def test_each_end_is_followed_by_the_start_that_got_its_share():
    assert next_starts(starts("a", "b", "a", "b"), [1.5, 2.75]) == [0.5, 0.25]
