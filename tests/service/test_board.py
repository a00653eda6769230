"""The board: pages, filters, changes, compared with a plain list of all jobs."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.service.board import MOST_LOOKED_AT, Board, Query
from astrago_trainer.service.feed import MOST_WAITING, RESYNC
from astrago_trainer.service.installation_key import InstallationKey
from astrago_trainer.service.page_tokens import PageTokens, scope_of
from tests.service.test_decide import NEW


def a_job(number: int, **fields):
    return NEW._replace(**{"number": number, "uid": f"u{number}", "name": f"job{number}", **fields})


def names(page):
    return [record.job.name for record in page.records]


def all_pages(board, namespace="", query=None, limit=50):
    found, token = [], None
    while True:
        page = board.page(namespace, query, limit=limit, token=token)
        found += names(page)
        token = page.next_token
        if token is None:
            return found


def test_pages_are_newest_first_and_meet_without_gap_or_repeat():
    board = Board()
    board.load(a_job(number) for number in range(1, 121))

    assert names(board.page(limit=3)) == ["job120", "job119", "job118"]
    assert all_pages(board, limit=7) == [f"job{number}" for number in range(120, 0, -1)]


def test_a_page_after_changes_goes_on_where_the_last_one_ended():
    board = Board()
    board.load(a_job(number) for number in range(1, 7))
    first = board.page(limit=3)
    board.put(a_job(7))
    board.remove(4)
    board.remove(2)

    rest = board.page(limit=3, token=first.next_token)

    assert (names(first), names(rest)) == (["job6", "job5", "job4"], ["job3", "job1"])


def test_a_search_looks_at_so_many_and_says_how_to_go_on():
    board = Board()
    board.load(a_job(number) for number in range(1, 2 * MOST_LOOKED_AT))
    query = Query(text="JOB1")

    short = board.page(query=Query(text="nothing like it"))

    assert (short.records, short.next_token is not None) == ((), True)
    assert len(all_pages(board, query=query)) == sum(
        "job1" in f"job{number}" for number in range(1, 2 * MOST_LOOKED_AT)
    )


@pytest.mark.parametrize("token", ["x", "j29", "é", "====", "A" * 27, "A" * 28, "A" * 1000, "-1"])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(InvalidRequest, match="page_token: is no token of this list"):
        Board().page(token=token)


def test_a_token_that_is_damaged_or_of_another_list_is_refused(tmp_path):
    key = tmp_path / "job-key"
    board = Board(PageTokens(InstallationKey(key)))
    board.load(a_job(number) for number in range(1, 9))
    query = Query(phases=frozenset([NEW.phase]), owner=NEW.owner)
    place = NEW.namespace
    token = board.page(place, query, limit=3).next_token

    bad = [token[:length] for length in range(1, len(token))]
    bad += [
        f"{token[:index]}{'A' if letter != 'A' else 'B'}{token[index + 1 :]}"
        for index, letter in enumerate(token)
    ]
    for each in [*bad, f"{token}A", f"{token}="]:
        with pytest.raises(InvalidRequest, match="is no token of this list"):
            board.page(place, query, limit=3, token=each)
    for other in [("other", query), (place, None), (place, Query(owner=NEW.owner)), ("", query)]:
        with pytest.raises(InvalidRequest, match="is no token of this list"):
            board.page(*other, token=token)

    other_server = Board(PageTokens(InstallationKey(key)))
    other_server.load(a_job(number) for number in range(1, 9))
    assert names(other_server.page(place, query, limit=3, token=token)) == ["job5", "job4", "job3"]
    with pytest.raises(InvalidRequest, match="is no token of this list"):
        Board(PageTokens(InstallationKey(tmp_path / "other"))).page(place, query, token=token)


def test_a_token_shows_no_number():
    tokens = PageTokens()
    made = [tokens.token(scope_of("team"), number) for number in range(1, 300)]

    assert len({each[:4] for each in made}) > 250
    assert len({each[-4:] for each in made}) > 250
    assert {len(each) for each in made} == {27}


def test_an_older_version_changes_nothing():
    board = Board()
    board.put(a_job(1, version=3, phase="Running"))
    board.put(a_job(1, version=2, phase="Pending"))

    assert board.find("team", "job1").job.phase == "Running"
    assert board.counts("team") == {"Running": 1}


def test_the_answer_is_encoded_once_and_has_its_tag():
    board = Board()
    first = board.put(a_job(1))
    body = first.body
    second = board.put(a_job(1, version=2, phase="Failed", reason="Exit1", finished_at=1.5))

    assert first.body is body
    assert (first.etag, second.etag) == ('"u1.1"', '"u1.2"')
    said = json.loads(second.body)
    assert (said["phase"], said["state"], said["finished_at"]) == (
        "Failed", "Failed", "1970-01-01T00:00:01.500Z",
    )  # fmt: skip
    assert json.loads(body)["meaning"] == "waits for nodes that have room for its pods"


def test_a_name_that_was_given_again_means_the_new_job():
    board = Board()
    board.put(a_job(1, name="same"))
    new = board.put(a_job(2, name="same"))
    board.remove(1)

    assert board.find("team", "same") is new


changes = some.lists(
    some.tuples(
        some.integers(1, 12),
        some.sampled_from(["Pending", "Running", "Failed", "gone"]),
        some.sampled_from(["ann", "bob"]),
        some.sampled_from(["team", "other"]),
        some.sampled_from(["pytorch", "tensorflow"]),
    ),
    max_size=40,
)
queries = some.builds(
    Query,
    phases=some.frozensets(some.sampled_from(["Pending", "Running", "Failed"])),
    owner=some.sampled_from(["", "ann", "bob", "nobody"]),
    framework=some.sampled_from(["", "pytorch"]),
    text=some.sampled_from(["", "1", "JOB", "ann"]),
)


@settings(max_examples=200, deadline=None)
@given(changes, queries, some.sampled_from(["", "team", "other", "none"]), some.integers(1, 5))
def test_it_finds_what_a_plain_list_would(story, query, namespace, limit):
    board, plain, version, gone = Board(), {}, 0, set()
    for number, phase, owner, place, framework in story:
        version += 1
        if phase == "gone":
            board.remove(number)
            plain.pop(number, None)
            gone.add(number)
            continue
        if number in gone:  # an older read of it: the database gives no number twice
            board.put(a_job(number, version=version))
            continue
        known = plain.get(number)
        fixed = (
            {"owner": owner, "namespace": place, "framework": framework}
            if known is None
            else {"owner": known.owner, "namespace": known.namespace, "framework": known.framework}
        )
        plain[number] = a_job(number, phase=phase, version=version, **fixed)
        board.put(plain[number])

    def fits(job):
        return (
            namespace in ("", job.namespace)
            and (not query.phases or job.phase in query.phases)
            and query.owner in ("", job.owner)
            and query.framework in ("", job.framework)
            and (query.text.lower() in job.name or query.text.lower() in job.owner)
        )

    expected = [plain[number].name for number in sorted(plain, reverse=True) if fits(plain[number])]
    assert all_pages(board, namespace, query, limit) == expected
    assert sum(board.counts().values()) == len(board) == len(plain)


class TestASubscription:
    def test_hears_what_changes_in_its_namespace_from_now_on(self):
        async def scenario():
            board = Board()
            board.put(a_job(1))
            with board.subscribe("team") as news, board.subscribe() as everything:
                board.put(a_job(2))
                board.put(a_job(3, namespace="other"))
                board.remove(1)
                heard = [await anext(news) for _ in range(2)]
                everywhere = [await anext(everything) for _ in range(3)]
            return heard, everywhere

        heard, everywhere = asyncio.run(scenario())

        assert [(each.kind, each.record.job.number) for each in heard] == [
            ("changed", 2),
            ("removed", 1),
        ]
        assert [each.record.job.number for each in everywhere] == [2, 3, 1]

    def test_hears_the_newest_of_a_job_that_changed_often(self):
        async def scenario():
            board = Board()
            with board.subscribe() as news:
                for version in range(1, 5000):
                    board.put(a_job(1, version=version))
                    board.put(a_job(2, version=version))
                return [await anext(news) for _ in range(2)], len(news._waiting)

        heard, left = asyncio.run(scenario())

        assert [each.record.job.version for each in heard] == [4999, 4999]
        assert left == 0

    def test_that_is_slow_is_told_to_look_again_and_costs_little(self):
        async def scenario():
            board = Board()
            with board.subscribe() as news:
                for number in range(1, 10 * MOST_WAITING):
                    board.put(a_job(number))
                waiting = len(news._waiting)
                return waiting, await anext(news), await anext(news)

        waiting, first, second = asyncio.run(scenario())

        assert waiting <= MOST_WAITING
        assert (first, second.kind) == (RESYNC, "changed")

    def test_ends_when_it_is_closed_and_is_forgotten(self):
        async def scenario():
            board = Board()
            news = board.subscribe()
            waiting = asyncio.create_task(anext(news, None))
            await asyncio.sleep(0)
            news.close()
            return await waiting, board.feed._listeners

        assert asyncio.run(scenario()) == (None, {})


def test_a_job_that_is_gone_does_not_come_back_from_an_older_read():
    board = Board()
    board.put(a_job(1))
    board.remove(1)

    late = board.put(a_job(1, version=2))

    assert late.job.version == 2
    assert len(board) == 0
    assert board.find(late.job.namespace, late.job.name) is None
