"""A backend acts for any user in the namespaces that were named for it, and nowhere else."""

from __future__ import annotations

import asyncio

import pytest

from astrago_trainer.server.rules import RULES, Where
from astrago_trainer.service.identity import Role
from tests.server.serving import BOSS, a_request, a_site, bearer

SEED = {
    "user_id": "user123",
    "namespace": "user-123",
    "framework": "pytorch",
    "training_code": "print(1)",
    "config": {"num_nodes": 1, "gpu_per_node": 0, "cpu_per_node": 1, "memory_per_node": "1Gi"},
}


def run(story):
    asyncio.run(story)


async def administrator(site) -> dict[str, str]:
    await site.service.access.create_user(BOSS, "root", is_administrator=True)
    return bearer((await site.service.access.create_token(BOSS, "root")).secret)


async def backend(site, *namespaces: str, name: str = "portal") -> dict[str, str]:
    await site.service.access.set_backend(BOSS, name, namespaces)
    return bearer((await site.service.access.create_token(BOSS, name)).secret)


async def tenants(site, *names: str) -> None:
    for name in names:
        await site.service.access.create_tenant(BOSS, name)


@pytest.mark.req("M21", "M22", "M23", "M26")
def test_a_backend_creates_reads_and_deletes_jobs_of_any_user(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            await tenants(site, "user-123", "user-77")
            token = await backend(site, "user-*")
            for user, namespace in (
                ("user123", "user-123"),
                ("kim", "user-123"),
                ("lee", "user-77"),
            ):
                body = {**SEED, "user_id": user, "namespace": namespace}
                made = await site.client.post("/api/trainjob/create", json=body, headers=token)
                assert made.status_code == 200, made.text
                name = made.json()["trainjob_name"]
                assert name.startswith(f"{user}-job-")
                place = f"?namespace={namespace}"
                status = await site.client.get(f"/api/trainjob/{name}/status{place}", headers=token)
                assert status.status_code == 200
                gone = await site.client.delete(f"/api/trainjob/{name}{place}", headers=token)
                assert gone.status_code == 200
            strict = await site.client.post(
                "/api/v1/namespaces/user-77/jobs", json=a_request(user="lee"), headers=token
            )
            assert (strict.status_code, strict.json()["owner"]) == (201, "lee")
            clone = await site.client.post(
                f"/api/v1/namespaces/user-77/jobs/{strict.json()['name']}:clone", headers=token
            )
            assert (clone.status_code, clone.json()["owner"]) == (201, "lee")

    run(story())


def test_the_audit_has_who_called_and_for_whom(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            await tenants(site, "user-123")
            token = await backend(site, "user-*")
            made = await site.client.post("/api/trainjob/create", json=SEED, headers=token)
            name = made.json()["trainjob_name"]
            await site.client.delete(f"/api/trainjob/{name}?namespace=user-123", headers=token)
            rows = await site.service.audit("user-123", action="job")
            found = [(row.action, row.actor, row.detail) for _, row in rows]
            assert ("job.submit", "portal", "for user123") in found
            assert ("job.delete", "portal", "for user123") in found
            own = await site.token("ann", user_123=Role.MEMBER)
            await site.client.post(
                "/api/trainjob/create", json={**SEED, "user_id": "ann"}, headers=bearer(own)
            )
            (newest, *_) = await site.service.audit("user-123", action="job.submit")
            assert (newest[1].actor, newest[1].detail) == ("ann", "")

    run(story())


def test_other_namespaces_look_as_if_they_did_not_exist(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            await tenants(site, "user-123", "team-a", "default")
            token = await backend(site, "user-*")
            everywhere = await backend(site, "*", name="wide")
            body = {**SEED, "namespace": "team-a"}
            refused = await site.client.post("/api/trainjob/create", json=body, headers=token)
            assert (refused.status_code, refused.json()["detail"]) == (
                404,
                "there is no namespace 'team-a'.",
            )
            for path in (
                "/api/v1/namespaces/team-a/jobs",
                "/api/v1/namespaces/-/jobs",
                "/api/v1/namespaces/-/stream",
                "/api/trainjob/x/status?namespace=team-a",
            ):
                answer = await site.client.get(path, headers=token)
                assert answer.status_code == 404, path
            # A pattern means no reserved namespace, and `-` is no namespace.
            for path in ("/api/v1/namespaces/default/jobs", "/api/v1/namespaces/-/jobs"):
                answer = await site.client.get(path, headers=everywhere)
                assert answer.status_code == 404, path
            listed = (await site.client.get("/api/v1/tenants", headers=token)).json()["items"]
            assert [each["namespace"] for each in listed] == ["user-123"]

    run(story())


def test_a_backend_manages_no_tokens_users_tenants_members_or_backends(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", signup="open") as site:
            await tenants(site, "user-123")
            token = await backend(site, "*")
            (id_,) = [each.id for each in site.service.access.tokens("portal")]
            attempts = [
                ("GET", "/api/v1/tokens", None),
                ("POST", "/api/v1/tokens", {}),
                ("POST", "/api/v1/tokens", {"user": "admin"}),
                ("DELETE", f"/api/v1/tokens/{id_}", None),
                ("POST", "/api/v1/users", {"name": "eve", "is_administrator": True}),
                ("GET", "/api/v1/users", None),
                ("POST", "/api/v1/tenants", {"namespace": "team-b"}),
                ("PUT", "/api/v1/backends/portal", {"namespaces": ["*", "default"]}),
                ("PUT", "/api/v1/backends/second", {"namespaces": ["*"]}),
                ("DELETE", "/api/v1/backends/portal", None),
                ("PUT", "/api/v1/tenants/user-123/members/portal", {"role": "administrator"}),
                ("GET", "/api/v1/tenants/user-123/members", None),
                ("GET", "/api/v1/audit", None),
                ("GET", "/api/v1/audit?namespace=user-123", None),
                ("POST", "/api/v1/signup", {"user": "someone-else"}),
            ]
            for method, path, body in attempts:
                answer = await site.client.request(method, path, json=body, headers=token)
                assert answer.status_code == 403, (method, path, answer.text)
            assert site.service.access.find("portal").backend == ("*",)
            assert site.service.access.find("eve") is None

    run(story())


def test_every_rule_for_installations_refuses_a_backend(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            token = await backend(site, "*")
            paths = [key for key, rule in RULES.items() if rule.where is Where.INSTALLATION]
            for method, template in paths:
                path = template.replace("{user}", "x")
                answer = await site.client.request(method, path, json={}, headers=token)
                assert answer.status_code == 403, (method, path)

    run(story())


def test_an_administrator_makes_changes_and_removes_a_backend(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            boss = await administrator(site)
            put, path = site.client.put, "/api/v1/backends/portal"
            made = await put(path, json={"namespaces": ["user-*"]}, headers=boss)
            assert (made.status_code, made.json()) == (
                200,
                {"name": "portal", "namespaces": ["user-*"]},
            )
            token = await site.client.post("/api/v1/tokens", json={"user": "portal"}, headers=boss)
            mine = bearer(token.json()["secret"])
            who = (await site.client.get("/api/v1/whoami", headers=mine)).json()
            assert (who["name"], who["backend"], who["is_administrator"]) == (
                "portal",
                ["user-*"],
                False,
            )
            await put(path, json={"namespaces": ["team-a"]}, headers=boss)
            who = (await site.client.get("/api/v1/whoami", headers=mine)).json()
            assert who["backend"] == ["team-a"]
            for bad in ([], ["kube-system"], ["Bad Name"], ["a"] * 101):
                answer = await put(path, json={"namespaces": bad}, headers=boss)
                assert answer.status_code == 422, bad
            person = await put("/api/v1/backends/root", json={"namespaces": ["*"]}, headers=boss)
            assert (person.status_code, "no person" in person.json()["detail"]) == (409, True)
            users = (await site.client.get("/api/v1/users", headers=boss)).json()["items"]
            assert {each["name"]: each["backend"] for each in users}["portal"] == ["team-a"]
            assert (await site.client.delete(path, headers=boss)).status_code == 204
            assert (await site.client.get("/api/v1/whoami", headers=mine)).status_code == 401
            assert (await site.client.delete(path, headers=boss)).status_code == 404
            again = await put(path, json={"namespaces": ["user-*"]}, headers=boss)
            assert again.status_code == 200
            assert (await site.client.get("/api/v1/whoami", headers=mine)).status_code == 401
            rows = await site.service.audit(None, action="backend")
            assert [(row.action, row.detail) for _, row in reversed(rows)] == [
                ("backend.set", "user-*"),
                ("backend.set", "team-a"),
                ("backend.remove", ""),
                ("backend.set", "user-*"),
            ]

    run(story())


def test_a_backend_survives_a_restart(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            await tenants(site, "user-123")
            token = await backend(site, "user-*")
        async with a_site(tmp_path, auth="tokens") as site:
            made = await site.client.post("/api/trainjob/create", json=SEED, headers=token)
            assert made.status_code == 200, made.text

    run(story())
