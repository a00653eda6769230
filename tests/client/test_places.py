"""Which server is meant, and who asks."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from astrago_trainer.client import places
from astrago_trainer.client.places import Place
from astrago_trainer.core.errors import InvalidRequest, Unreadable


def test_what_is_said_goes_before_the_environment_and_that_before_the_login(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert places.configured_place() is None
    with pytest.raises(InvalidRequest, match="astrago login"):
        places.find_place()
    path = places.write_login(Place("http://login", "secret", "team"))
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    assert places.configured_place() == Place("http://login", "secret", "team")
    assert places.configured_place("http://login/") == Place("http://login", "secret", "team")
    assert places.configured_place("http://said") == Place("http://said")
    monkeypatch.setenv("ASTRAGO_SERVER", "http://env/")
    monkeypatch.setenv("ASTRAGO_TOKEN", "other")
    assert places.configured_place(namespace="mine") == Place("http://env", "other", "mine")
    assert places.forget_login()
    assert not places.forget_login()


@pytest.mark.parametrize("text", ["", "[]", '{"token": "x"}', "\udcff"])
def test_a_login_that_is_none_is_said(text: str) -> None:
    file = Path(places.write_login(Place("http://x")))
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Unreadable, match="astrago login --forget"):
        places.configured_place()


@pytest.mark.parametrize(
    ("user", "name"),
    [("Kim", "kim"), ("kim.lee@corp", "kim-lee-corp"), ("1st", "user-1st"), ("ж", "user")],
)
def test_a_name_of_this_machine_becomes_one_of_objects(
    user: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ASTRAGO_USER")
    monkeypatch.setenv("USER", user)
    assert places.user_name() == name


def test_the_namespace_is_the_only_one_or_ones_own() -> None:
    def whoami(*roles: str, auth: str = "tokens", name: str = "ann") -> dict[str, object]:
        return {"name": name, "authentication": auth, "roles": dict.fromkeys(roles, "member")}

    assert places.namespace_of(whoami("team")) == "team"
    assert places.namespace_of(whoami("ann", "team")) == "ann"
    assert places.namespace_of(whoami(auth="off", name="anybody")) == "kim"
    with pytest.raises(InvalidRequest, match="a, b"):
        places.namespace_of(whoami("a", "b"))


def test_what_the_server_says_is_the_default_comes_first() -> None:
    who = {"name": "root", "authentication": "tokens", "roles": {}, "default_namespace": "team"}
    assert places.namespace_of(who) == "team"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"is_administrator": True, "engine": "kubernetes"},
            "astrago tenants create NAME, or use one",
        ),
        ({"is_administrator": True, "engine": "local"}, "astrago tenants create NAME."),
        ({"is_administrator": True, "namespaces": ["a", "b"]}, "root can use a, b"),
        ({"backend": ["user-*"]}, "backend for user-"),
        ({}, "Ask an administrator for one: astrago tenants add NAMESPACE root"),
        (
            {"authentication": "off", "engine": "kubernetes", "is_administrator": True},
            "--namespace NAME",
        ),
    ],
)
def test_somebody_without_a_namespace_is_told_how_to_get_one(
    fields: dict[str, object], said: str
) -> None:
    who = {"name": "root", "authentication": "tokens", "roles": {}, **fields}
    with pytest.raises(InvalidRequest) as error:
        places.namespace_of(who)
    (problem,) = error.value.problems
    assert said in f"{problem.message} {problem.remedy}"
