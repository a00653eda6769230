"""Who may do what: every route, every verb, every kind of caller."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from fastapi import Request

from astrago_trainer.server import sse
from astrago_trainer.server.app import ROUTERS
from astrago_trainer.server.edge import ABORT
from astrago_trainer.server.rules import RULES, Where
from astrago_trainer.service.identity import Role
from tests.server.serving import BOSS, JOBS, PATIENCE, a_request, a_site, bearer

BODIES = {
    "/api/trainjob/create": {
        "user_id": "ann", "namespace": "team", "framework": "pytorch", "training_code": "print(1)",
        "config": {"num_nodes": 1, "gpu_per_node": 0, "cpu_per_node": 1, "memory_per_node": "1Gi"},
    },
    JOBS: a_request(name="another"),
    f"{JOBS}:preview": a_request(),
    f"{JOBS}:retell": a_request(),
    f"{JOBS}/hello:clone": {},
    "/api/v1/tenants/team/members/bob": {"role": "viewer"},
    "/api/v1/tenants/team/invitations": {"user": "bob"},
    "/api/v1/tokens": {},
    "/api/v1/tenants": {"namespace": "newteam"},
    "/api/v1/users": {"name": "newone"},
    "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/hello/status": {},
}  # fmt: skip
STREAMS = {"/api/v1/namespaces/{namespace}/stream"}


def test_every_route_has_a_rule_and_every_rule_a_route():
    routes = {
        (method, route.path)
        for router in ROUTERS
        for route in router.routes
        for method in route.methods
    }
    assert routes | {("GET", "/openapi.json")} == set(RULES)
    for (_, path), rule in RULES.items():
        assert (rule.where is Where.NAMESPACE) == ("{namespace}" in path), path


def _path(template: str, name: str = "hello") -> str:
    path = template.replace("{namespace}", "team").replace("{trainjob_name}", name)
    return path.replace("{name}", name).replace("{user}", "bob").replace("{id}", "nope")


async def _ask(site, method, template, token, name="hello"):
    path = _path(template, name)
    params = {"namespace": "team"} if RULES[method, template].where is Where.REQUEST else {}
    body = BODIES.get(_path(template))
    answer = await site.client.request(
        method, path, params=params, json=body, headers=bearer(token) if token else {}
    )
    problem = answer.json() if answer.status_code >= 400 else {}
    problem.pop("request_id", None)
    return answer.status_code, problem


def test_the_rules_hold_for_every_route_and_caller(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            own = await site.token("ann", team=Role.ADMINISTRATOR)
            viewer = await site.token("vic", team=Role.VIEWER)
            await site.service.access.create_user(BOSS, "bob")
            foreign = await site.token("eve", other_team=Role.ADMINISTRATOR)
            spec = a_request(name="hello")
            made = await site.client.post(JOBS, json=spec, headers=bearer(own))
            assert made.status_code == 201
            for (method, template), rule in RULES.items():
                if rule.where is Where.ANYBODY or template in STREAMS:
                    continue
                for bad in (None, "astrago_nothing", "nothing", "x.y.z"):
                    status, _ = await _ask(site, method, template, bad)
                    assert status == 401, (method, template, bad)
                if rule.where is Where.SIGNED_IN:
                    continue
                status, told = await _ask(site, method, template, foreign)
                if rule.where is Where.INSTALLATION:
                    assert status == 403, (method, template)
                    continue
                assert status == 404, (method, template, told)
                if "name}" in template:
                    # The same words for another tenant's job as for one that nobody has.
                    status, missing = await _ask(site, method, template, foreign, "helle")
                    text = str(missing).replace("helle", "hello")
                    assert (status, text) == (404, str(told)), template
                if rule.role is not Role.VIEWER:
                    status, _ = await _ask(site, method, template, viewer)
                    assert status == 403, (method, template)
                elif method == "GET":
                    status, told = await _ask(site, method, template, viewer)
                    assert status == 200, (method, template, told)
            stream = await site.client.get(
                "/api/v1/namespaces/team/stream", headers=bearer(foreign)
            )
            assert stream.status_code == 404
            assert (await site.client.get("/api/v1/namespaces/team/stream")).status_code == 401
            assert site.service.get("team", "hello").job.phase != "Deleting"

    asyncio.run(story())


def test_unknown_paths_are_not_told_to_strangers(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            token = await site.token("ann", team=Role.VIEWER)
            answer = await site.client.get("/api/v1/nothing", headers=bearer(token))
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")
            wrong = await site.client.put("/api/v1/whoami", headers=bearer(token))
            assert (wrong.status_code, wrong.json()["code"]) == (405, "method-not-allowed")
            assert (
                await site.client.get("/api/v1/namespaces/-/jobs", headers=bearer(token))
            ).status_code == 404

    asyncio.run(story())


@pytest.mark.parametrize(
    "token",
    [
        "", " ", "null", "undefined", "Bearer", "astrago_", "astrago_" + "A" * 43, "a" * 9000,
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.", "..", "a.b.c", "\xff\xfe", "'; DROP TABLE tokens --",
    ],
)  # fmt: skip
def test_bad_tokens_open_nothing(tmp_path, token):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            header = {"authorization": b"Bearer " + token.encode("latin-1")}
            answer = await site.client.get("/api/v1/whoami", headers=header)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            basic = await site.client.get("/api/v1/whoami", headers={"authorization": "Basic YTpi"})
            assert basic.status_code == 401

    asyncio.run(story())


def test_nobody_acts_as_somebody_else(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            token = bearer(await site.token("bob", team=Role.MEMBER))
            answer = await site.client.post(JOBS, json=a_request(user="ann"), headers=token)
            assert (answer.status_code, "bob" in answer.json()["detail"]) == (403, True)
            body = BODIES["/api/trainjob/create"]
            answer = await site.client.post("/api/trainjob/create", json=body, headers=token)
            assert answer.status_code == 403
            other = {**body, "user_id": "bob", "namespace": "elsewhere"}
            answer = await site.client.post("/api/trainjob/create", json=other, headers=token)
            assert answer.status_code == 404
            crossed = a_request(user="bob", namespace="elsewhere")
            answer = await site.client.post(JOBS, json=crossed, headers=token)
            assert answer.status_code == 422
            mine = await site.client.post(JOBS, json=a_request(user="bob"), headers=token)
            assert (mine.status_code, mine.json()["owner"]) == (201, "bob")

    asyncio.run(story())


@pytest.mark.req("M5")
def test_signing_up_gives_a_namespace_and_a_token_that_can_be_revoked(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", signup="open") as site:
            post = site.client.post
            made = (await post("/api/v1/signup", json={"user": "user123"})).json()
            assert made["namespace"] == "user-123"
            mine = bearer(made["token"]["secret"])
            who = (await site.client.get("/api/v1/whoami", headers=mine)).json()
            assert who["roles"] == {"user-123": "administrator"}
            again = await post("/api/v1/signup", json={"user": "user123"})
            assert again.status_code == 409
            bad = await post("/api/v1/signup", json={"user": "Kube System"})
            assert bad.status_code == 422
            job = await post(
                "/api/v1/namespaces/user-123/jobs", json=a_request(user="user123"), headers=mine
            )
            assert job.status_code == 201
            token = (
                await post("/api/v1/tokens", json={"label": "x", "seconds": 60}, headers=mine)
            ).json()
            listed = (await site.client.get("/api/v1/tokens", headers=mine)).json()["items"]
            assert len(listed) == 2
            assert token["secret"] not in str(listed)
            assert (
                await post("/api/v1/tokens", json={"user": "admin"}, headers=mine)
            ).status_code == 403
            gone = await site.client.delete(f"/api/v1/tokens/{token['id']}", headers=mine)
            assert gone.status_code == 204
            dead = await site.client.get("/api/v1/whoami", headers=bearer(token["secret"]))
            assert dead.status_code == 401
            trail = await site.client.get("/api/v1/audit?namespace=user-123", headers=mine)
            actions = [each["action"] for each in trail.json()["items"]]
            assert actions == ["job.submit", "user.signup"]

    asyncio.run(story())


def test_a_stream_ends_with_the_token_or_the_right_that_opened_it(tmp_path, monkeypatch):
    monkeypatch.setattr(sse, "CHECK_SECONDS", 0.02)

    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            access, path = site.service.access, "/api/v1/namespaces/team/stream"
            vic, ann, bob = [
                await site.token(each, team=Role.VIEWER) for each in ("vic", "ann", "bob")
            ]
            streams = [
                asyncio.create_task(site.client.get(path, headers=bearer(each)))
                for each in (vic, ann, bob)
            ]
            while site.context.streams.total() < 3:
                await asyncio.sleep(0)
            (token,) = access.tokens("vic")
            await access.revoke_token(BOSS, token.id)
            await access.remove_member(BOSS, "team", "ann")
            done, going = await asyncio.wait(streams[:2], timeout=PATIENCE)
            assert (len(done), len(going)) == (2, 0)
            assert not streams[2].done()
            assert (await site.client.get(path, headers=bearer(vic))).status_code == 401
            assert (await site.client.get(path, headers=bearer(ann))).status_code == 404
            site.context.closing.set()
            assert (await streams[2]).status_code == 200

    asyncio.run(story())


def test_a_change_elsewhere_cuts_no_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(sse, "CHECK_SECONDS", 0.02)

    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            access, path = site.service.access, "/api/v1/namespaces/team/stream"
            ann = await site.token("ann", team=Role.MEMBER)
            await access.create_tenant(BOSS, "other")
            stream = asyncio.create_task(site.client.get(path, headers=bearer(ann)))
            while site.context.streams.total() < 1:
                await asyncio.sleep(0)
            asked = 0
            identify = site.context.gate.identify

            async def counted(headers):
                nonlocal asked
                asked += 1
                return await identify(headers)

            monkeypatch.setattr(site.context.gate, "identify", counted)
            await access.set_member(BOSS, "other", "ann", Role.VIEWER)
            await access.set_member(BOSS, "team", "ann", Role.VIEWER)
            while asked < 3:
                await asyncio.sleep(0.01)
            assert not stream.done()
            await access.remove_member(BOSS, "team", "ann")
            assert (await asyncio.wait_for(stream, PATIENCE)).status_code == 200

    asyncio.run(story())


def test_a_download_ends_with_the_token_that_opened_it(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            ann = await site.token("ann", team=Role.MEMBER)
            identity = await site.context.gate.identify(
                {b"authorization": f"Bearer {ann}".encode()}
            )
            aborted = []
            scope = {
                "type": "http",
                "method": "GET",
                "headers": [(b"authorization", f"Bearer {ann}".encode())],
                "path_params": {"namespace": "team", "name": "job"},
                "route": SimpleNamespace(path="/api/v1/namespaces/{namespace}/jobs/{name}/logs"),
                "extensions": {ABORT: lambda: aborted.append(True)},
            }

            async def endless():
                while True:
                    yield b"x"

            parts = sse.while_welcome(Request(scope), site.context, identity, endless())
            assert await anext(parts) == b"x"
            (token,) = site.service.access.tokens("ann")
            await site.service.access.revoke_token(BOSS, token.id)
            assert [part async for part in parts] == []
            assert aborted == [True]

    asyncio.run(story())


def test_sign_up_is_off_unless_told(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            answer = await site.client.post("/api/v1/signup", json={"user": "ann"})
            assert answer.status_code == 403

    asyncio.run(story())


def test_each_change_has_one_audit_row_with_the_id_of_its_request(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            changes = [
                ("POST", "/api/v1/users", {"name": "ann"}),
                ("POST", "/api/v1/tenants", {"namespace": "crew", "title": "Crew"}),
                ("PUT", "/api/v1/tenants/crew/members/ann", {"role": "member"}),
                ("DELETE", "/api/v1/tenants/crew/members/ann", None),
                ("POST", "/api/v1/tokens", {"user": "ann"}),
                ("POST", JOBS, a_request(name="hello")),
                ("POST", f"{JOBS}/hello:suspend", None),
                ("POST", f"{JOBS}/hello:resume", None),
                ("POST", f"{JOBS}/hello:restart", None),
                ("DELETE", f"{JOBS}/hello", None),
            ]
            for number, (method, path, body) in enumerate(changes):
                header = {"x-request-id": f"request-{number}"}
                answer = await site.client.request(method, path, json=body, headers=header)
                assert answer.is_success, answer.text
                assert answer.headers["x-request-id"] == f"request-{number}"
            rows = (await site.client.get("/api/v1/audit")).json()["items"]
            assert [each["request_id"] for each in reversed(rows)] == [
                f"request-{number}" for number in range(len(changes))
            ]

    asyncio.run(story())


def test_the_first_administrator_finds_a_token_in_a_private_file(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            path = tmp_path / "admin-token"
            assert path.stat().st_mode & 0o777 == 0o600
            header = bearer(path.read_text().strip())
            who = (await site.client.get("/api/v1/whoami", headers=header)).json()
            assert (who["name"], who["is_administrator"]) == ("admin", True)
        path.unlink()
        async with a_site(tmp_path, auth="tokens"):
            assert not path.exists()

    asyncio.run(story())


# --- without authentication: only this machine, and no page of another site

HOSTS = {
    "127.0.0.1:8000": 200, "localhost:8000": 200, "localhost": 200, "[::1]:8000": 200, "127.0.0.2": 200,
    "evil.example:8000": 403, "127.0.0.1.evil.example": 403, "": 403, "localhost.evil.example": 403,
    "evil.example@127.0.0.1": 200, "[": 403, "0.0.0.0": 403, "169.254.169.254": 403, "2130706433": 403,
}  # fmt: skip


@pytest.mark.parametrize(("host", "status"), HOSTS.items())
def test_a_name_that_was_bound_to_this_machine_is_refused(tmp_path, host, status):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.get("/api/v1/whoami", headers={"host": host})
            assert answer.status_code == status

    asyncio.run(story())


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"origin": "http://127.0.0.1:8000", "sec-fetch-site": "same-origin"}, 201),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_a_page_of_another_site_cannot_post(tmp_path, headers, status):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.post(JOBS, json=a_request(), headers=headers)
            assert answer.status_code == status
            assert "access-control-allow-origin" not in answer.headers

    asyncio.run(story())


def test_the_data_folder_is_its_owners_alone(tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o755)

    async def scenario():
        async with a_site(data, auth="tokens"):
            pass

    asyncio.run(scenario())
    assert data.stat().st_mode & 0o777 == 0o700
    open_files = [path for path in data.iterdir() if path.is_file() and path.stat().st_mode & 0o077]
    assert open_files == []
