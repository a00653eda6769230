"""The campaigns in short, with a fixed seed and limits for a busy machine; and that they notice faults."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable

import pytest

from tests.figures import Table, percentile, slope
from tests.server import neighbours_campaign, requests_campaign, soak
from tests.server.generating import Request
from tests.server.requests_campaign import foreign_canaries


def check(campaign: Callable[[], Table]) -> None:
    with warnings.catch_warnings():
        # httpx leaves the sockets of cancelled requests to the collector, which may run in a later test.
        warnings.simplefilter("ignore", ResourceWarning)
        table = campaign()
        gc.collect()
    assert table.failed == 0, "\n".join(table.lines)
    assert table.passed > 0


def test_generated_requests_break_nothing_and_leak_nothing(tmp_path):
    limits = requests_campaign.Limits(health=0.5, held=5.0)
    check(lambda: requests_campaign.run_campaign(tmp_path, 700, seed=1, limits=limits))


def test_a_quiet_tenant_does_not_wait_for_noisy_ones(tmp_path):
    limits = neighbours_campaign.Limits().times(5)
    check(lambda: neighbours_campaign.run_campaign(tmp_path, 4.0, seed=1, limits=limits))


def test_nothing_is_lost_or_doubled_by_a_fault_every_other_second(tmp_path):
    plan = soak.Plan(seconds=10.0, fault_every=1.0, pause=0.7, lock=0.7)
    check(lambda: soak.run_campaign(tmp_path, plan, seed=1))


@pytest.mark.parametrize(
    ("text", "letter", "found"),
    [
        ("nothing of anybody", "a", []),
        ("canarya-1 is mine", "a", []),
        ("canaryb-1 was asked for", "a", []),
        ("canaryb-2 was not", "a", ["canaryb-2"]),
        ("canaryb9secret is in a log", "a", ["canaryb9secret"]),
        ("canarya-1", "", ["canarya-1"]),
    ],
)
def test_what_belongs_to_another_tenant_is_noticed(text, letter, found):
    request = Request("GET", "/api/v1/namespaces/canaryb-ns/jobs/canaryb-1")
    assert foreign_canaries(text, letter, request) == found


def test_what_a_caller_stored_itself_is_no_leak():
    request = Request("GET", "/api/v1/tokens")
    assert foreign_canaries("canaryb-user canaryb-5", "a", request, {"canaryb-user"}) == [
        "canaryb-5"
    ]


def test_figures():
    assert percentile([3, 1, 2], 50) == 2
    assert percentile(range(1, 101), 99) == 99
    assert slope([(0, 5), (1, 7), (2, 9)]) == pytest.approx(2)
    table = Table()
    table.at_most("fits", 1, 1)
    table.at_most("does not fit", 2, 1)
    table.at_most("was not measured", percentile([], 99), 1)
    table.equal("differs", 1, 0)
    assert (table.passed, table.failed, table.print()) == (1, 3, 1)
