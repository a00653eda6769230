"""What several ranks told, as one answer. Pure."""

from __future__ import annotations

import pytest

from astrago_trainer.server.metric_view import mean_of, metrics_view

FIRST = [(1, 100.0, 4.0), (2, 101.0, 2.0)]
SECOND = [(1, 100.5, 2.0), (3, 102.0, 7.0)]


@pytest.mark.parametrize(
    ("ranks", "starts", "mean"),
    [
        pytest.param([FIRST], (), FIRST, id="of one rank it is as it came"),
        pytest.param(
            [[(1, 1.0, 5.0), (1, 2.0, 6.0)]],
            (),
            [(1, 1.0, 5.0), (1, 2.0, 6.0)],
            id="of one rank a step may come twice",
        ),
        pytest.param(
            [FIRST, SECOND],
            (),
            [(1, 100.5, 3.0), (2, 101.0, 3.25), (3, 102.0, 7.0)],
            id="by step, over the ranks that have it or lie on both sides, at the time of the last",
        ),
        pytest.param(
            [[*FIRST, (1, 200.0, 8.0)], [*SECOND, (1, 201.0, 6.0)]],
            (100.2, 199.0),
            [(1, 100.5, 3.0), (2, 101.0, 3.25), (3, 102.0, 7.0), (1, 201.0, 7.0)],
            id="attempts apart; what came before the first was seen to begin is of it",
        ),
        pytest.param(
            [[(1, 1.0, 2.0), (1, 2.0, 4.0)], [(1, 1.0, 8.0)]],
            (),
            [(1, 2.0, 6.0)],
            id="a step that a rank told twice counts once",
        ),
        pytest.param(
            [[(1, 1.0, None), (2, 1.0, None)], [(1, 1.0, 8.0), (2, 2.0, None)]],
            (),
            [(1, 1.0, 8.0), (2, 2.0, None)],
            id="what is no number is left out, unless there is nothing else",
        ),
        pytest.param(
            [[(1, 1.0, 1.5e308)], [(1, 1.0, 1.5e308)]],
            (),
            [(1, 1.0, 1.5e308)],
            id="large ones do not become infinite",
        ),
    ],
)
def test_a_mean(ranks, starts, mean):
    by_rank = {number: {"loss": points} for number, points in enumerate(ranks)}

    assert mean_of(by_rank, starts) == {"loss": mean}


def test_a_mean_has_the_series_of_every_rank():
    assert mean_of({0: {"loss": FIRST}, 1: {"lr": SECOND}}, ()) == {"loss": FIRST, "lr": SECOND}


BY_RANK = {
    0: {"loss": FIRST, "progress": [(2, 101.0, 0.5)], "remaining_seconds": [(2, 101.0, 9.0)]},
    2: {"loss": SECOND},
}
PROGRESS = {"fraction": 0.5, "remaining_seconds": 9.0}


@pytest.mark.parametrize(
    ("asked", "series", "others"),
    [
        ("0", {"loss": FIRST}, []),
        ("2", {"loss": SECOND}, []),
        ("1", {}, []),
        ("mean", mean_of({0: {"loss": FIRST}, 2: {"loss": SECOND}}, ()), []),
        ("all", {"loss": FIRST}, [{"rank": 2, "series": {"loss": SECOND}}]),
    ],
)
def test_what_is_asked_for(asked, series, others):
    assert metrics_view(3, BY_RANK, asked) == {
        "run": 3,
        "progress": PROGRESS,
        "ranks": [0, 2],
        "series": series,
        "other_ranks": others,
    }


def test_each_series_is_thinned_by_itself_after_the_mean():
    by_rank = {
        rank: {"loss": [(step, 1.0, float(rank)) for step in range(10)]} for rank in range(2)
    }

    mean = metrics_view(1, by_rank, "mean", points=2)
    each = metrics_view(1, by_rank, "all", points=2)

    assert mean["series"] == {"loss": [(4, 1.0, 0.5), (9, 1.0, 0.5)]}
    assert each["series"] == {"loss": [(4, 1.0, 0.0), (9, 1.0, 0.0)]}
    assert each["other_ranks"][0]["series"] == {"loss": [(4, 1.0, 1.0), (9, 1.0, 1.0)]}
