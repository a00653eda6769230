"""People and series of numbers in the database, on both of its kinds."""

from __future__ import annotations

from itertools import pairwise

import pytest

from astrago_trainer.store.access import (
    AccessChange,
    Invitation,
    Member,
    Tenant,
    Token,
    User,
    change_access,
    forget_invitations,
    load_access,
)
from astrago_trainer.store.audit import AuditRow
from astrago_trainer.store.metrics import (
    MOST_OF_OTHERS,
    MOST_POINTS,
    MOST_SERIES,
    Point,
    Points,
    insert_points,
    load_points,
)
from tests.store.databases import NOW, accept, on_database, with_store

AUDIT = AuditRow(NOW, "root", "", "test", "object")


def a_token(name: str) -> Token:
    return Token(name, "ann", "laptop", name * 8, NOW, None, None)


SIGN_UP = AccessChange(
    AUDIT,
    new=(Tenant("ann", "Ann's", NOW), User("ann", False, NOW), Member("ann", "ann", "member")),
)


def test_a_change_is_made_as_a_whole_or_not_at_all(url):
    async def scenario(store):
        first = await store.write(change_access, SIGN_UP)
        clash = AccessChange(AUDIT, new=(User("bob", False, NOW), Tenant("ann", "mine", NOW)))
        second = await store.write(change_access, clash)
        return first, second, await store.read(load_access)

    first, second, found = with_store(url, scenario)

    assert (first, second) == (True, False)
    assert [user.name for user in found.users] == ["ann"], "bob came with what was refused"
    assert found.tenants == [Tenant("ann", "Ann's", NOW)]
    assert on_database(url, "SELECT count(*) FROM audit") == [(1,)]


def test_a_role_is_replaced_and_a_member_removed_once(url):
    async def scenario(store):
        await store.write(change_access, SIGN_UP)
        await store.write(change_access, AccessChange(AUDIT, put=(Member("ann", "ann", "viewer"),)))
        viewer = (await store.read(load_access)).members
        removal = AccessChange(AUDIT, remove=(Member("ann", "ann", ""),))
        return viewer, [await store.write(change_access, removal) for _ in range(2)]

    viewer, removals = with_store(url, scenario)

    assert viewer == [Member("ann", "ann", "viewer")]
    assert removals == [True, False]


def test_an_invitation_is_taken_as_it_was_read_and_expired_ones_go(url):
    async def scenario(store):
        await store.write(change_access, SIGN_UP)
        first = Invitation("ann", "bob", "member", "ann", NOW + 0.1, NOW + 10)
        second = first._replace(role="viewer")
        other = first._replace(user="carol", expires_at=NOW + 20)
        for row in (first, second, other):
            assert await store.write(change_access, AccessChange(AUDIT, put=(row,)))
        taken = [
            await store.write(change_access, AccessChange(AUDIT, take=(row,)))
            for row in (first, second, second)
        ]
        await store.write(forget_invitations, NOW + 15)
        left = (await store.read(load_access)).invitations
        await store.write(forget_invitations, NOW + 25)
        return taken, left == [other], (await store.read(load_access)).invitations

    assert with_store(url, scenario) == ([False, True, False], True, [])


def test_a_token_is_revoked_once_and_others_learn_of_it(url):
    async def scenario(store):
        await store.write(change_access, SIGN_UP)
        await store.write(change_access, AccessChange(AUDIT, new=(a_token("a"), a_token("b"))))
        before = await store.read(load_access)
        done = [
            await store.write(change_access, AccessChange(AUDIT, revoke=("a",))) for _ in range(2)
        ]
        return before, done, await store.read(load_access)

    before, done, after = with_store(url, scenario)

    assert done == [True, False]
    assert after.stamp > before.stamp
    assert {token.id: token.revoked_at for token in after.tokens} == {"a": NOW, "b": None}


def test_series_come_back_in_the_order_they_came(url):
    async def scenario(store):
        job = await accept(store)
        for step in range(0, 30, 10):
            for series in ("loss", "accuracy"):
                points = tuple(Point(each, NOW + each, each / 3) for each in range(step, step + 10))
                await store.write(insert_points, Points(job.number, 1, series, points))
        return await store.read(lambda c: load_points(c, job.number, 1))

    found = with_store(url, scenario)

    assert set(found[0]) == {"loss", "accuracy"}
    assert found[0]["loss"] == [Point(each, NOW + each, each / 3) for each in range(30)]


def test_a_long_series_is_thinned_evenly_and_keeps_its_end(url):
    async def scenario(store):
        job = await accept(store)
        for first in range(0, 20_000, 500):
            points = tuple(Point(each, NOW, 0.0) for each in range(first, first + 500))
            await store.write(insert_points, Points(job.number, 1, "loss", points))
        return await store.read(lambda c: load_points(c, job.number, 1))

    steps = [point.step for point in with_store(url, scenario)[0]["loss"]]

    assert MOST_POINTS / 2 <= len(steps) <= 2 * MOST_POINTS
    assert steps[-1] == 19_999
    assert steps == sorted(set(steps))
    assert max(b - a for a, b in pairwise(steps)) <= 32


def test_many_small_batches_become_one_row(url):
    async def scenario(store):
        job = await accept(store)
        for step in range(150):
            batch = Points(job.number, 1, "loss", (Point(step, NOW, 1.0),))
            await store.write(insert_points, batch)
        return await store.read(lambda c: load_points(c, job.number, 1))

    found = with_store(url, scenario)

    assert [point.step for point in found[0]["loss"]] == list(range(150))
    assert on_database(url, "SELECT count(*) FROM metrics")[0][0] <= 100


def test_ranks_have_series_of_their_own(url):
    async def scenario(store):
        job = await accept(store)
        for rank, name in ((0, "loss"), (3, "loss"), (3, "accuracy")):
            points = (Point(1, NOW, float(rank)),)
            await store.write(insert_points, Points(job.number, 1, name, points, rank))
        asked = ({}, {"ranks": (0,)}, {"names": ("accuracy",)})
        return [
            await store.read(lambda c, each=each: load_points(c, job.number, 1, **each))
            for each in asked
        ]

    whole, of_rank, of_name = with_store(url, scenario)

    first, third = [Point(1, NOW, 0.0)], [Point(1, NOW, 3.0)]
    assert whole == {0: {"loss": first}, 3: {"loss": third, "accuracy": third}}
    assert of_rank == {0: {"loss": first}, 3: {}}, "every rank is named, also without its series"
    assert of_name == {0: {}, 3: {"accuracy": third}}


def test_each_rank_is_thinned_by_itself(url):
    async def scenario(store):
        job = await accept(store)
        for rank, end in ((0, 18_000), (1, 900)):
            for first in range(0, end, 900):
                points = tuple(Point(each, NOW, 0.0) for each in range(first, first + 900))
                await store.write(insert_points, Points(job.number, 1, "loss", points, rank))
        return await store.read(lambda c: load_points(c, job.number, 1))

    long, short = (
        [point.step for point in with_rank["loss"]]
        for with_rank in with_store(url, scenario).values()
    )

    assert MOST_POINTS / 2 <= len(long) <= 2 * MOST_POINTS
    assert long[-1] == 17_999
    assert short == list(range(900))


def test_other_ranks_are_bounded_and_take_no_place_from_rank_0(url):
    async def scenario(store):
        job = await accept(store)

        async def put(name, rank):
            return await store.write(
                insert_points, Points(job.number, 1, name, (Point(1, NOW, 1.0),), rank)
            )

        places = [(f"s{number // 7}", 1 + number % 7) for number in range(MOST_OF_OTHERS)]
        kept = [await put(*place) for place in places]
        return all(kept), await put("one more", 1), await put("s0", 1), await put("loss", 0)

    assert with_store(url, scenario) == (True, False, True, True)


@pytest.mark.parametrize("what", ["a series too many", "a job that is gone"])
def test_points_without_a_place_are_dropped(url, what):
    async def scenario(store):
        job = await accept(store)
        point = (Point(1, NOW, 1.0),)
        if what == "a job that is gone":
            return await store.write(insert_points, Points(job.number + 1, 1, "loss", point))
        for number in range(MOST_SERIES):
            assert await store.write(insert_points, Points(job.number, 1, f"s{number}", point))
        return await store.write(insert_points, Points(job.number, 1, "one more", point))

    assert with_store(url, scenario) is False
