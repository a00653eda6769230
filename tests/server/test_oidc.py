"""Tokens of an issuer: a real small one, over HTTP on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from astrago_trainer.server.oidc import PAUSE_SECONDS, Issuer
from astrago_trainer.server.user_names import user_name
from astrago_trainer.service.identity import Role
from tests.server.serving import BOSS, a_request, a_site, bearer


class SmallIssuer:
    """Publishes keys and signs tokens, as an identity provider does."""

    def __init__(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                body = json.dumps(issuer.pages().get(self.path, {})).encode()
                self.send_response(200 if issuer.is_up else 503)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.asked: list[str] = []
        self.is_up = True
        self.keys: dict[str, Any] = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.name = self.url
        self.rotate("k1")

    def rotate(self, kid: str, kind: str = "RS256") -> None:
        new: Any = (
            rsa.generate_private_key(65537, 2048)
            if kind == "RS256"
            else ec.generate_private_key(ec.SECP256R1())
        )
        self.keys = {kid: (kind, new)}

    def pages(self) -> dict[str, Any]:
        public = []
        for kid, (kind, key) in self.keys.items():
            shape: Any = RSAAlgorithm if kind == "RS256" else ECAlgorithm
            found = shape.to_jwk(key.public_key(), as_dict=True)
            public.append({**found, "kid": kid, "use": "sig", "alg": kind})
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.name,
                "jwks_uri": f"{self.url}/keys",
            },
            "/keys": {"keys": public},
        }

    def token(self, *, headers: dict[str, Any] | None = None, **changes: Any) -> str:
        kid, (kind, key) = next(iter(self.keys.items()))
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "astrago",
            "sub": "ann",
            "iat": now,
            "exp": now + 600,
            **changes,
        }
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, key, kind, headers={"kid": kid, **(headers or {})})


AnIssuer = TypeVar("AnIssuer", bound=SmallIssuer)


@contextmanager
def serving(made: AnIssuer) -> Iterator[AnIssuer]:
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def issuer() -> Iterator[SmallIssuer]:
    with serving(SmallIssuer()) as made:
        yield made


def test_somebody_of_the_issuer_signs_up_and_works(tmp_path, issuer):
    async def story():
        settings = {
            "auth": "tokens",
            "oidc_issuer": issuer.url,
            "oidc_audience": "astrago",
            "signup": "open",
        }
        async with a_site(tmp_path, **settings) as site:
            mine = bearer(issuer.token(sub="user123"))
            who = (await site.client.get("/api/v1/whoami", headers=mine)).json()
            assert (who["name"], who["roles"]) == ("user123", {})
            assert who["authentication"] == "tokens and oidc"
            jobs = "/api/v1/namespaces/user-123/jobs"
            body = a_request(user="user123")
            assert (await site.client.post(jobs, json=body, headers=mine)).status_code == 404
            stolen = await site.client.post("/api/v1/signup", json={"user": "bob"}, headers=mine)
            assert stolen.status_code == 403
            made = await site.client.post("/api/v1/signup", json={}, headers=mine)
            assert made.json()["namespace"] == "user-123"
            assert (await site.client.post(jobs, json=body, headers=mine)).status_code == 201
            await site.service.access.remove_member(BOSS, "user-123", "user123")
            assert (await site.client.get(jobs, headers=mine)).status_code == 404
            await site.service.access.set_member(BOSS, "user-123", "user123", Role.VIEWER)
            assert (await site.client.get(jobs, headers=mine)).status_code == 200

    asyncio.run(story())


def test_only_good_tokens_count(issuer):
    other = SmallIssuer()
    other.server.server_close()
    secret = jwt.encode({"sub": "ann"}, "s" * 32, "HS256", headers={"kid": "k1"})
    bad = {
        "another audience": issuer.token(aud="other"),
        "another issuer": issuer.token(iss="https://evil.example"),
        "too old": issuer.token(exp=int(time.time()) - 120),
        "no end": issuer.token(exp=None),
        "no audience": issuer.token(aud=None),
        "not yet": issuer.token(nbf=int(time.time()) + 3600),
        "no user": issuer.token(sub=None),
        "a user that is no text": issuer.token(sub="", name=1),
        "somebody else's key": other.token(iss=issuer.url),
        "an unknown key": issuer.token(headers={"kid": "k9"}),
        "a shared secret": secret,
        "no algorithm": jwt.encode({"sub": "ann"}, None, "none", headers={"kid": "k1"}),
        "a changed byte": issuer.token()[:-2] + "AA",
        "no token": "a.b.c",
    }

    async def story():
        async with asyncio.timeout(20):
            made = Issuer(issuer.url, "astrago")
            assert await made.subject_of(issuer.token()) == "ann"
            found = {name: await made.subject_of(token) for name, token in bad.items()}
            assert {name for name, user in found.items() if user is not None} == set()

    asyncio.run(story())


def test_keys_are_fetched_once_kept_and_changed(issuer):
    async def story():
        now = 0.0
        made = Issuer(issuer.url, "astrago", monotonic=lambda: now)
        first = issuer.token()
        users = await asyncio.gather(*(made.subject_of(first) for _ in range(20)))
        assert set(users) == {"ann"}
        assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
        issuer.rotate("k2", "ES256")
        second = issuer.token()
        assert await made.subject_of(second) is None  # asked a moment ago
        now += PAUSE_SECONDS
        assert await made.subject_of(second) == "ann"
        assert await made.subject_of(first) is None  # its key was taken back
        issuer.is_up = False
        now += 10_000
        assert await made.subject_of(issuer.token(sub="bob")) == "bob"  # the known keys serve on
        assert len(issuer.asked) == 5

    asyncio.run(story())


def test_an_issuer_that_calls_itself_something_else_is_not_believed(issuer):
    async def story():
        issuer.name = "https://evil.example"
        assert await Issuer(issuer.url, "astrago").subject_of(issuer.token()) is None

    asyncio.run(story())


def test_no_two_claims_name_one_user():
    claims = [
        "ann",
        "Ann",
        "ann@x.org",
        "ann-x-org",
        "",
        "1",
        "über",
        "a" * 29,
        "a" * 30,
        "-",
        "a-b",
        "a.b",
    ]
    claims += [user_name(each) for each in claims]
    names = {each: user_name(each) for each in claims}
    assert len(set(names.values())) == len(set(claims))
    assert names["ann"] == "ann"
    assert all(len(each) <= 29 for each in names.values())


def test_an_account_belongs_to_who_verified_its_owner(tmp_path, issuer):
    """Sign-up is anonymous: a name that is taken there says nothing about the person of that name at the issuer."""

    async def story():
        settings = {
            "auth": "tokens",
            "oidc_issuer": issuer.url,
            "oidc_audience": "astrago",
            "signup": "open",
        }
        async with a_site(tmp_path, **settings) as site:
            taken = (await site.client.post("/api/v1/signup", json={"user": "carol"})).json()
            carol = bearer(issuer.token(sub="carol"))
            who = (await site.client.get("/api/v1/whoami", headers=carol)).json()
            assert who["name"].startswith("carol-")
            assert who["roles"] == {}
            made = (await site.client.post("/api/v1/signup", json={}, headers=carol)).json()
            assert made["user"] == who["name"]
            assert made["namespace"] != taken["namespace"]
            again = (await site.client.get("/api/v1/whoami", headers=carol)).json()
            assert again["roles"] == {made["namespace"]: "administrator"}

            admin = bearer(issuer.token(sub="admin"))
            who = (await site.client.get("/api/v1/whoami", headers=admin)).json()
            assert not who["is_administrator"]
            assert who["name"] != "admin"

    asyncio.run(story())


def test_who_was_made_by_an_administrator_is_taken_by_the_person_of_that_name_once(
    tmp_path, issuer
):
    async def story():
        settings = {"auth": "tokens", "oidc_issuer": issuer.url, "oidc_audience": "astrago"}
        async with a_site(tmp_path, **settings) as site:
            access = site.service.access
            await access.create_tenant(BOSS, "team")
            for user in ("dan", "eve"):
                await access.create_user(BOSS, user)
                await access.set_member(BOSS, "team", user, Role.MEMBER)
            await access.create_token(BOSS, "eve")  # who is given a token comes with it
            roles = {}
            for name in ("dan", "eve"):
                headers = bearer(issuer.token(sub=name))
                roles[name] = (await site.client.get("/api/v1/whoami", headers=headers)).json()
            assert roles["dan"]["roles"] == {"team": "member"}
            assert (roles["eve"]["name"] == "eve", roles["eve"]["roles"]) == (False, {})
            (bound,) = (row for row, _ in access.users() if row.name == "dan")
            assert (bound.issuer, bound.subject) == (issuer.url, "dan")
            other = await access.of_issuer("https://other.example", "dan", "dan", "dan-0")
            assert other.name == "dan-0"
            await access.set_disabled(BOSS, "dan", is_disabled=True)
            dan = bearer(issuer.token(sub="dan"))
            assert (await site.client.get("/api/v1/whoami", headers=dan)).status_code == 401

    asyncio.run(story())
