"""A tenant gets what the engine has for it before its rows are written; nodes are shown without others' names."""

from __future__ import annotations

import asyncio

import pytest

from astrago_trainer.engines.base import Amounts, Node, NodeShare
from astrago_trainer.service.identity import Role
from tests.server.serving import BOSS, a_site, bearer

TOKENS = {"auth": "tokens", "signup": "open"}
WHOLE = Amounts(8.0, 16 * 2**30, 4)
HALF = Amounts(4.0, 8 * 2**30, 2)


@pytest.mark.req("M5", "X17")
def test_a_sign_up_makes_the_namespace_first(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            answer = await site.client.post("/api/v1/signup", json={"user": "user123"})
            assert (answer.status_code, answer.json()["namespace"]) == (201, "user-123")
            assert site.engine.namespaces == ["user-123"]
            again = await site.client.post("/api/v1/signup", json={"user": "user123"})
            assert again.status_code == 409
            assert site.engine.namespaces == ["user-123"]

    run(story())


def test_a_namespace_that_the_engine_does_not_give_out_makes_no_user(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            site.engine.taken = frozenset({"user-123"})
            answer = await site.client.post("/api/v1/signup", json={"user": "user123"})
            assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
            assert "somebody else's" in answer.json()["detail"]
            assert site.service.access.find("user123") is None
            site.engine.taken = frozenset()
            answer = await site.client.post("/api/v1/signup", json={"user": "user123"})
            assert answer.status_code == 201

    run(story())


def test_an_engine_that_does_not_answer_makes_no_tenant(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            site.engine.trouble.fail_calls = frozenset({len(site.engine.calls) + 1})
            answer = await site.client.post("/api/v1/signup", json={"user": "user123"})
            assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
            assert site.service.access.tenants() == []

    run(story())


def test_tenants_that_were_there_before_are_brought_up_to_date_at_the_start(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            await site.token("boss", team=Role.ADMINISTRATOR)
            assert site.engine.namespaces == []  # made behind the engine's back
        async with a_site(tmp_path, **TOKENS) as site:
            await until_namespaces(site)
            assert site.engine.namespaces == ["team"]

    run(story())


def run(story):
    asyncio.run(story)


async def until_namespaces(site) -> None:
    while not site.engine.namespaces:
        await asyncio.sleep(0)


@pytest.mark.req("M113", "X15")
def test_nodes_show_how_full_they_are_and_only_ones_own_jobs_by_name(tmp_path):
    async def story():
        async with a_site(tmp_path, **TOKENS) as site:
            site.engine.machines = [
                Node(
                    "node-1",
                    is_ready=True,
                    capacity=WHOLE,
                    used=WHOLE,
                    instance_type="g6e.48xlarge",
                    zone="a",
                    capacity_type="spot",
                    shares=(
                        NodeShare("team", "mine", 1, HALF),
                        NodeShare("other", "secret", 1, HALF),
                    ),
                ),
                Node("node-2", is_ready=True, capacity=Amounts(2.0, 2**30), used=Amounts()),
            ]
            member = await site.token("ann", team=Role.VIEWER)
            answer = await site.client.get("/api/v1/nodes", headers=bearer(member))
            first, second = answer.json()["items"]
            shared = {"pods": 1, "cpu": 4.0, "memory": 8 * 2**30, "gpus": 2}
            assert first["jobs"] == [
                {"namespace": "team", "name": "mine", **shared},
                {"namespace": None, "name": "another tenant", **shared},
            ]
            assert "secret" not in answer.text
            assert "other" not in answer.text.replace("another", "")
            assert (first["gpus"], first["free"]) == (4, {"cpu": 0.0, "memory": 0, "gpus": 0})
            assert (first["instance_type"], first["capacity_type"]) == ("g6e.48xlarge", "spot")
            assert (second["gpus"], second["jobs"]) == (None, [])
            boss = await site.service.access.create_user(BOSS, "root", is_administrator=True)
            token = (await site.service.access.create_token(BOSS, boss.name)).secret
            answer = await site.client.get("/api/v1/nodes", headers=bearer(token))
            assert "secret" in answer.text

    run(story())
