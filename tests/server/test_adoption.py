"""Namespaces that the cluster has become tenants by rule; refusals say what is so, and the command."""

from __future__ import annotations

import asyncio

import pytest

from astrago_trainer.engines.base import FoundNamespace
from astrago_trainer.service.identity import Role
from tests.server.serving import a_request, a_site, bearer
from tests.server.test_backends import SEED, administrator, backend

CREATE = "/api/trainjob/create"
CLUSTER = {"on_cluster": True}
THERE = FoundNamespace({})


def run(story):
    asyncio.run(story)


async def create(site, headers=None, **fields):
    return await site.client.post(CREATE, json={**SEED, **fields}, headers=headers or {})


@pytest.mark.req("M21", "M22", "X17")
def test_an_administrators_first_use_adopts_a_namespace(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": THERE}
            made = await create(site, boss)
            assert made.status_code == 200, made.text
            assert (site.engine.adopted, site.engine.namespaces) == (["user-123"], [])
            (tenant,) = (await site.client.get("/api/v1/tenants", headers=boss)).json()["items"]
            assert (tenant["namespace"], tenant["is_adopted"]) == ("user-123", True)
            again = await create(site, boss, user_id="kim")
            assert again.status_code == 200
            assert site.engine.adopted == ["user-123"]
            rows = await site.service.audit("user-123", action="tenant")
            assert [(row.action, row.actor) for _, row in rows] == [("tenant.adopt", "root")]

    run(story())


def test_a_backend_adopts_where_it_may_act(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            token = await backend(site, "user-*")
            site.engine.existing = {"user-123": THERE, "team-a": THERE}
            assert (await create(site, token)).status_code == 200
            other = await create(site, token, namespace="team-a")
            assert (other.status_code, other.json()["detail"]) == (
                404,
                "there is no namespace 'team-a'.",
            )
            strict = await site.client.post(
                "/api/v1/namespaces/user-123/jobs", json=a_request(user="kim"), headers=token
            )
            assert strict.status_code == 201

    run(story())


def test_a_namespace_that_the_cluster_does_not_have_is_404_with_the_commands(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            for headers in (await administrator(site), await backend(site, "*")):
                answer = await create(site, headers)
                assert answer.status_code == 404
                detail = answer.json()["detail"]
                assert "there is no namespace 'user-123' in the cluster" in detail
                assert "kubectl create namespace user-123" in detail
                assert "astrago tenants create user-123" in detail
            assert site.service.access.tenants() == []

    run(story())


@pytest.mark.parametrize("namespace", ["default", "kubeflow-system", "astrago-system"])
def test_reserved_namespaces_are_adopted_only_by_their_full_name(tmp_path, namespace):
    async def story():
        for listed, status in (("", 409), ("*", 409), (f"*,{namespace}", 200)):
            data = tmp_path / (listed.replace("*", "all") or "none")
            async with a_site(data, auth="tokens", namespaces=listed, **CLUSTER) as site:
                boss = await administrator(site)
                site.engine.existing = {namespace: THERE}
                answer = await create(site, boss, namespace=namespace)
                assert answer.status_code == status, answer.text
                if status == 409:
                    assert "exists in the cluster but is not adopted" in answer.json()["detail"]
                    assert f"ASTRAGO_NAMESPACES='*,{namespace}'" in answer.json()["detail"]

    run(story())


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease"])
def test_the_clusters_own_namespaces_are_never_adopted(tmp_path, namespace):
    async def story():
        async with a_site(tmp_path, **CLUSTER) as site:
            site.engine.existing = {namespace: THERE}
            assert (await create(site, namespace=namespace)).status_code == 422
            assert site.engine.adopted == []

    run(story())


def test_a_rule_in_the_settings_is_a_limit_for_administrators_and_backends(tmp_path):
    async def story():
        rule = {"namespaces": "user-*", "namespace_selector": "team=ml"}
        async with a_site(tmp_path, auth="tokens", **rule, **CLUSTER) as site:
            boss, wide = await administrator(site), await backend(site, "*")
            site.engine.existing = {
                "user-123": THERE,
                "labelled": FoundNamespace({"team": "ml"}),
                "team-a": FoundNamespace({"team": "web"}),
            }
            for headers in (boss, wide):
                refused = await create(site, headers, namespace="team-a")
                assert refused.status_code == 409
                detail = refused.json()["detail"]
                assert detail.startswith(
                    "namespace 'team-a' exists in the cluster but is not adopted"
                )
                assert "kubectl label namespace team-a team=ml" in detail
                assert "ASTRAGO_NAMESPACES='user-*,team-a'" in detail
            assert (await create(site, wide, namespace="labelled")).status_code == 200
            assert (await create(site, boss, namespace="user-123")).status_code == 200
            assert site.engine.adopted == ["labelled", "user-123"]

    run(story())


def test_ordinary_users_learn_nothing_of_namespaces_that_exist(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            ann = bearer(await site.token("ann", team=Role.ADMINISTRATOR))
            site.engine.existing = {"user-123": THERE}
            told = [
                (await create(site, ann, user_id="ann", namespace=each)).json()["detail"]
                for each in ("user-123", "user-999")
            ]
            assert told == [
                "there is no namespace 'user-123'.",
                "there is no namespace 'user-999'.",
            ]
            assert site.engine.adopted == []

    run(story())


def test_what_is_wrong_with_a_body_adopts_nothing(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": THERE}
            assert (await create(site, boss, framework="caffe")).status_code == 422
            jobs = "/api/v1/namespaces/user-123/jobs"
            bad = await site.client.post(jobs, json={"nodes": -1}, headers=boss)
            assert bad.status_code == 422
            assert (site.engine.adopted, site.service.access.tenants()) == ([], [])

    run(story())


def test_a_namespace_that_was_handed_over_gets_what_a_tenant_gets(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", namespaces="nothing", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": FoundNamespace({}, is_tenants=True)}
            assert (await create(site, boss)).status_code == 200
            assert (site.engine.namespaces, site.engine.adopted) == (["user-123"], [])
            assert not site.service.access.tenants()[0].is_adopted

    run(story())


def test_a_server_with_a_persons_rights_changes_no_tenant_of_another_server(tmp_path):
    async def story():
        async with a_site(tmp_path, **CLUSTER) as site:
            site.engine.existing = {"user-123": FoundNamespace({}, is_tenants=True)}
            assert (await create(site)).status_code == 200
            assert (site.engine.namespaces, site.engine.adopted) == ([], ["user-123"])
            assert site.service.access.tenants()[0].is_adopted

    run(story())


def test_one_that_is_being_removed_or_refused_becomes_no_tenant(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": FoundNamespace({}, is_leaving=True)}
            answer = await create(site, boss)
            assert (answer.status_code, "being removed" in answer.text) == (409, True)
            site.engine.existing = {"user-123": THERE}
            site.engine.taken = frozenset({"user-123"})
            assert (await create(site, boss)).status_code == 409
            site.engine.taken = frozenset()
            site.engine.trouble.fail_calls = frozenset({len(site.engine.calls) + 1})
            assert (await create(site, boss)).status_code == 503
            assert site.service.access.tenants() == []

    run(story())


def test_two_first_uses_at_once_are_both_accepted(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": THERE}
            answers = await asyncio.gather(create(site, boss), create(site, boss, user_id="kim"))
            assert [each.status_code for each in answers] == [200, 200]
            assert len(site.service.access.tenants()) == 1

    run(story())


def test_adopted_namespaces_are_not_changed_at_the_next_start(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            boss = await administrator(site)
            site.engine.existing = {"user-123": THERE}
            assert (await create(site, boss)).status_code == 200
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:
            while not site.engine.adopted:
                await asyncio.sleep(0)
            assert (site.engine.adopted, site.engine.namespaces) == (["user-123"], [])

    run(story())


@pytest.mark.req("M21", "M23")
def test_without_tokens_every_namespace_of_the_cluster_can_be_used(tmp_path):
    async def story():
        async with a_site(tmp_path, **CLUSTER) as site:
            site.engine.existing = {"user-123": THERE}
            made = await create(site)
            assert made.status_code == 200, made.text
            name = made.json()["trainjob_name"]
            place = "?namespace=user-123"
            assert (await site.client.get(f"/api/trainjob/{name}/status{place}")).is_success
            missing = await create(site, namespace="user-999")
            assert missing.status_code == 404
            assert "kubectl create namespace user-999" in missing.json()["detail"]
            evil = {"origin": "http://evil.example"}
            assert (await create(site, evil)).status_code == 403
            assert (await create(site, {"host": "evil.example"})).status_code == 403

    run(story())


def test_on_one_machine_with_tokens_the_hint_is_the_command_for_a_tenant(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            boss = await administrator(site)
            site.engine.abilities = frozenset()
            answer = await create(site, boss)
            assert (answer.status_code, "tenants create user-123" in answer.text) == (404, True)

    run(story())


def test_whoami_says_where_jobs_go(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", **CLUSTER) as site:

            async def who(headers):
                found = (await site.client.get("/api/v1/whoami", headers=headers)).json()
                return found["namespaces"], found["default_namespace"]

            boss = await administrator(site)
            assert await who(boss) == ([], None)
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            assert await who(ann) == (["team"], "team")
            assert await who(boss) == (["team"], "team")
            ann = bearer(await site.token("ann", ann=Role.MEMBER))
            assert await who(ann) == (["ann", "team"], "ann")
            assert await who(boss) == (["ann", "team"], None)
            viewer = bearer(await site.token("vic", team=Role.VIEWER))
            assert await who(viewer) == ([], "team")

    run(story())
