"""Reads that the page needs beside those of jobs: how to sign in, who there is, parts of the audit, short series."""

from __future__ import annotations

import asyncio

from astrago_trainer.engines.base import Quota
from astrago_trainer.server.page import policy
from astrago_trainer.service.identity import Role
from astrago_trainer.store.metrics import Point
from tests.server.serving import BOSS, JOBS, a_site, bearer

OIDC = {
    "auth": "tokens",
    "oidc_issuer": "https://login.example.com/realms/a",
    "oidc_audience": "astrago",
}


def test_a_stranger_learns_how_to_sign_in_and_nothing_else(tmp_path):
    async def story():
        async with a_site(tmp_path, signup="open", **OIDC) as site:
            answer = await site.client.get("/api/v1/sign-in")
            assert answer.json() == {
                "sign_up": "open",
                "oidc": {"issuer": OIDC["oidc_issuer"], "client_id": "astrago"},
            }
            page = await site.client.get("/")
            assert page.headers["content-security-policy"] == policy(OIDC["oidc_issuer"])

    asyncio.run(story())


def test_the_policy_lets_the_page_ask_the_issuer_and_nobody_else():
    assert "connect-src 'self';" in policy()
    with_issuer = policy("https://user@login.example.com:8443/realms/a")
    assert "connect-src 'self' https://login.example.com:8443;" in with_issuer
    assert with_issuer.replace(" https://login.example.com:8443", "") == policy()


def test_users_come_with_their_roles_for_administrators(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            await site.token("ann", team=Role.VIEWER)
            await site.service.access.create_user(BOSS, "root", is_administrator=True)
            root = bearer((await site.service.access.create_token(BOSS, "root")).secret)
            found = (await site.client.get("/api/v1/users", headers=root)).json()["items"]
            common = {"is_disabled": False, "issuer": "", "backend": []}
            assert found[1:] == [
                {
                    **common,
                    "name": "ann",
                    "is_administrator": False,
                    "roles": {"team": "viewer"},
                },
                {**common, "name": "root", "is_administrator": True, "roles": {}},
            ]
            tenants = (await site.client.get("/api/v1/tenants", headers=root)).json()
            assert tenants["quota"] == {}  # on a cluster alone

    asyncio.run(story())


def test_the_audit_is_asked_for_by_actor_and_by_the_beginning_of_an_action(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.submit(name="hello")
            await site.token("ann", team=Role.VIEWER)

            async def actions(**asked):
                answer = await site.client.get("/api/v1/audit", params=asked)
                return [each["action"] for each in answer.json()["items"]]

            assert await actions(action="job") == ["job.submit"]
            assert await actions(action="tenant.create", actor="boss") == ["tenant.create"]
            assert await actions(action="job", actor="boss") == []
            assert await actions(action="%") == []

    asyncio.run(story())


def test_a_series_is_thinned_evenly_and_keeps_its_newest_point(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            points = [("loss", Point(step, 1.8e9 + step, float(step))) for step in range(100)]
            site.service.record_metric("team", "hello", [*points, ("lr", Point(0, 1.8e9, 0.1))])

            async def series(**asked):
                answer = await site.client.get(f"{JOBS}/hello/metrics", params=asked)
                return answer.json()["series"]

            assert {name: len(each) for name, each in (await series()).items()} == {
                "loss": 100,
                "lr": 1,
            }
            short = await series(series="loss,other", points=4)
            assert {name: [point[0] for point in each] for name, each in short.items()} == {
                "loss": [24, 49, 74, 99]
            }

    asyncio.run(story())


def test_a_form_offers_the_images_of_earlier_jobs_each_once(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            for name, image in (("a", "x/a:1"), ("b", "x/b:2"), ("c", None), ("d", "x/a:1")):
                await site.submit(name=name, image=image)
            found = await site.client.get("/api/v1/namespaces/team/images")
            assert found.json() == {"items": ["x/a:1", "x/b:2"]}
            other = await site.client.get("/api/v1/namespaces/other/images")
            assert other.json() == {"items": []}

    asyncio.run(story())


def test_a_form_knows_what_is_used_of_the_quota(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            quota = {"resource": "requests.nvidia.com/gpu", "hard": "8", "used": "3"}
            site.engine.ceilings = {"team": [Quota(**quota)]}
            found = await site.client.get("/api/v1/namespaces/team/quota")
            assert found.json() == {"items": [quota]}
            site.engine.abilities = frozenset()  # as on one machine: nothing is rationed
            found = await site.client.get("/api/v1/namespaces/team/quota")
            assert found.json() == {"items": []}

    asyncio.run(story())
