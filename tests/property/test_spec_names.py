"""Laws of names: always valid, whatever the user is called; nobody shares a namespace."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import (
    check_namespace,
    check_trainjob_name,
    code_configmap_name,
    job_name,
    job_name_from_key,
    max_trainjob_name,
    tenant_namespace,
)

any_text = st.text(st.characters(codec=None), max_size=80)
user_ids = st.one_of(
    any_text,
    st.from_regex(r"[a-z]{1,8}[0-9]{0,4}", fullmatch=True),
    st.from_regex(r"[a-z0-9A-Z._@-]{0,70}", fullmatch=True),
)
times = st.from_regex(r"[0-9]{14}", fullmatch=True)
suffixes = st.from_regex(r"[a-z0-9]{0,4}", fullmatch=True)
limits = st.integers(33, 48)


@given(user_ids, times, suffixes, limits)
@settings(max_examples=200)
def test_every_job_name_is_valid(user_id: str, now: str, suffix: str, limit: int) -> None:
    name = job_name(user_id, now, suffix, limit=limit)
    assert check_trainjob_name(name, limit=limit) == []
    assert name == job_name(user_id, now, suffix, limit=limit)


@given(user_ids, any_text, limits)
@settings(max_examples=200)
def test_every_name_from_a_key_is_valid(user_id: str, key: str, limit: int) -> None:
    name = job_name_from_key(user_id, key, limit=limit)
    assert check_trainjob_name(name, limit=limit) == []


@given(user_ids, st.none() | st.from_regex(r"[0-9a-f]{64}", fullmatch=True))
@settings(max_examples=200)
def test_every_name_of_code_is_valid(user_id: str, digest: str | None) -> None:
    name = code_configmap_name(user_id, digest)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    assert len(name) <= 63


@given(st.lists(st.tuples(st.from_regex(r"[a-z]{1,20}", fullmatch=True), st.integers(1, 10**6))))
def test_the_longest_name_fits_and_one_more_letter_does_not(jobs: list[tuple[str, int]]) -> None:
    limit = max_trainjob_name(jobs)
    longest = max((len(f"-{name}-0-{count - 1}-abcde") for name, count in jobs), default=0)
    assert limit + longest == 63


@given(st.lists(user_ids, unique=True, min_size=2, max_size=60))
@settings(max_examples=200)
def test_no_two_users_share_a_namespace(users: list[str]) -> None:
    taken: dict[str, str] = {}
    for user in users:
        try:
            namespace = tenant_namespace(user)
        except InvalidRequest:
            continue
        assert check_namespace(namespace) == []
        assert taken.setdefault(namespace, user) == user


@given(user_ids)
@settings(max_examples=200)
def test_a_namespace_is_never_another_users_id_mapped_again(user_id: str) -> None:
    """Whoever takes a namespace's name as their id does not get into it."""
    try:
        namespace = tenant_namespace(user_id)
        again = tenant_namespace(namespace)
    except InvalidRequest:
        return
    assert namespace == user_id or again != namespace


def test_tens_of_thousands_of_users_live_apart() -> None:
    parts = [*"ab1-", "--", "a1", "user", "123"]
    users = {
        "".join((a, b, c, d, e))
        for a in parts
        for b in parts
        for c in parts
        for d in parts
        for e in (*parts, "A", "_", "é", "", "z9", "Z", ".", "@")
    }
    assert len(users) > 25_000
    assert len({tenant_namespace(user) for user in users}) == len(users)
