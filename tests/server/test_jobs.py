"""The API of jobs, on the fake engine, without a port."""

from __future__ import annotations

import asyncio
import json

import pytest

from astrago_trainer.core.lifecycle import Phase
from astrago_trainer.engines.fake import FakeEngine
from astrago_trainer.engines.local.engine import LocalEngine
from astrago_trainer.manifests import parse_documents
from astrago_trainer.service import service as service_module
from astrago_trainer.service.identity import Role
from tests.server.serving import JOBS, a_request, a_site, bearer


def run(coroutine):
    return asyncio.run(coroutine)


def test_a_job_is_submitted_shown_listed_and_deleted(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            made = await site.client.post(JOBS, json=a_request(name="hello"))
            job = made.json()
            assert (made.status_code, job["name"], job["phase"]) == (201, "hello", "Pending")
            assert made.headers["location"] == f"{JOBS}/hello"
            await site.until("hello", "Running")

            shown = await site.client.get(f"{JOBS}/hello")
            assert shown.json()["phase"] == "Running"
            assert shown.json().keys() == job.keys()
            page = (await site.client.get(JOBS)).json()
            assert page == {"items": [shown.json()], "next_page_token": None}

            gone = await site.client.delete(f"{JOBS}/hello")
            assert (gone.status_code, gone.json()["phase"]) == (202, "Deleting")
            with site.service.subscribe() as news:
                while site.service.board.find("team", "hello"):
                    await anext(news)
            assert (await site.client.get(f"{JOBS}/hello")).status_code == 404

    run(story())


def test_reads_are_answered_from_their_tags(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            for path in (f"{JOBS}/hello", JOBS):
                tag = (await site.client.get(path)).headers["etag"]
                same = await site.client.get(path, headers={"if-none-match": f'"x", W/{tag}'})
                assert (same.status_code, same.content) == (304, b"")
                await site.client.post(f"{JOBS}/hello:suspend")
                changed = await site.client.get(path, headers={"if-none-match": tag})
                assert changed.status_code == 200
                await site.client.post(f"{JOBS}/hello:resume")

    run(story())


def test_pages_go_on_where_they_ended(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            for number in range(5):
                await site.submit(name=f"job-{number}")
            names, token = [], ""
            while token is not None:
                page = (
                    await site.client.get(JOBS, params={"limit": 2, "page_token": token})
                ).json()
                names += [each["name"] for each in page["items"]]
                token = page["next_page_token"]
            assert names == [f"job-{number}" for number in (4, 3, 2, 1, 0)]
            found = await site.client.get(JOBS, params={"q": "JOB-3", "owner": "ann"})
            assert [each["name"] for each in found.json()["items"]] == ["job-3"]
            everywhere = await site.client.get("/api/v1/namespaces/-/jobs")
            assert len(everywhere.json()["items"]) == 5

    run(story())


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=501", "limit=x", "limit=٣", "page_token=zz", "phase=Nope", "q=" + "x" * 201],
)
def test_a_bad_question_is_explained(tmp_path, query):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.get(f"{JOBS}?{query}")
            assert answer.status_code == 422
            assert answer.headers["content-type"] == "application/problem+json"
            assert [each["path"] for each in answer.json()["errors"]] == [query.split("=")[0]]

    run(story())


def test_every_mistake_of_a_body_is_told_at_once(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.post(JOBS, json=a_request(nodes=0, framework="caffe", nde=1))
            problem = answer.json()
            assert answer.status_code == 422
            assert {each["path"] for each in problem["errors"]} == {"nodes", "framework", "nde"}
            assert problem["request_id"] == answer.headers["x-request-id"]
            assert problem["code"] == "invalid-request"

    run(story())


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'"\\ud800"', "application/json", 400),
        (b"[" * 100_000, "application/json", 400),
        (b"NaN", "application/json", 400),
        (b"9" * 5000, "application/json", 400),
        (b"[]", "application/json", 422),
        (b"null", "application/json", 422),
        (b'{"a":1}', "text/plain", 415),
        (b"a=b", "application/x-www-form-urlencoded", 415),
        (b" " * (2 << 20) + b"{}", "application/json", 413),
    ],
)
def test_what_is_no_json_is_refused(tmp_path, body, kind, status):
    async def story():
        async with a_site(tmp_path) as site:
            for path in (JOBS, "/api/trainjob/create"):
                answer = await site.client.post(path, content=body, headers={"content-type": kind})
                assert answer.status_code == status, answer.text
                assert answer.json()["detail"]

    run(story())


@pytest.mark.parametrize(
    "fields",
    [
        {"resources": {"cpu": "1e-9", "memory": "1Gi"}},
        {"resources": {"cpu": {"request": "0.5m", "limit": "1"}, "memory": "1Gi"}},
        {"resources": {"cpu": "1", "memory": "1e-9"}},
        {"shared_memory": "500m"},
        {"volumes": [{"name": "x", "mount_path": "/x", "empty_dir": {"size": "1e-9"}}]},
    ],
    ids=["cpu", "cpu request", "memory", "shared memory", "scratch"],
)
def test_amounts_below_the_smallest_are_refused(tmp_path, fields):
    async def story():
        async with a_site(tmp_path) as site:
            return await site.client.post(JOBS, json=a_request(**fields))

    answer = run(story())
    assert answer.status_code == 422, answer.text
    (error,) = answer.json()["errors"]
    assert error["code"] == "FieldValueInvalid"
    assert "byte" in error["message"] or "1m" in error["message"]


def test_a_repeated_key_gets_the_first_answer(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            key = {"idempotency-key": "once"}
            answers = await asyncio.gather(
                *(site.client.post(JOBS, json=a_request(), headers=key) for _ in range(8))
            )
            assert {each.status_code for each in answers} == {201}
            assert len({each.content for each in answers}) == 1
            other = await site.client.post(JOBS, json=a_request(nodes=3), headers=key)
            assert other.status_code == 422
            assert other.json()["errors"][0]["path"] == "Idempotency-Key"
            assert len(site.service.board) == 1

    run(story())


def test_a_preview_stores_nothing_and_is_what_runs(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            body = a_request(name="same")
            shown = (await site.client.post(f"{JOBS}:preview", json=body)).json()
            assert (shown["is_refused"], shown["objects"][0]["kind"]) == (False, "JobSet")
            assert len(site.service.board) == 0
            await site.submit(name="same")
            kept = (await site.client.get(f"{JOBS}/same/manifest")).json()
            assert kept["effective"][0] == shown["objects"][0]
            assert kept["provenance"] == shown["provenance"]
            yaml = await site.client.get(f"{JOBS}/same/manifest?format=yaml")
            assert "kind: TrainJob" in yaml.text

    run(story())


def test_the_verbs(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            assert (await site.client.post(f"{JOBS}/hello:suspend")).json()["is_suspended"]
            await site.until("hello", "Suspended")
            assert (await site.client.post(f"{JOBS}/hello:resume")).status_code == 202
            await site.until("hello", "Running")
            site.engine.finish(site.handle("hello"))
            await site.until("hello", "Complete")
            refused = await site.client.post(f"{JOBS}/hello:suspend")
            assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
            assert (await site.client.post(f"{JOBS}/hello:restart")).status_code == 202
            copy = await site.client.post(f"{JOBS}/hello:clone", json={"nodes": 4, "name": "copy"})
            assert (copy.status_code, copy.json()["nodes"]) == (201, 4)
            bare = await site.client.post(f"{JOBS}/hello:clone")
            assert bare.status_code == 201
            other = await site.client.delete(f"{JOBS}/copy?uid=another")
            assert other.status_code == 409
            taken = await site.client.post(JOBS, json=a_request(name="copy"))
            assert taken.status_code == 409

    run(story())


def test_a_clone_knows_its_original(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            first = await site.submit(name="first")
            assert first["cloned_from"] is None
            assert (await site.client.get(f"{JOBS}/first/manifest")).json()["original"] is None
            origin = {"name": "first", "uid": first["uid"]}
            ask = {"nodes": 4, "name": "second"}
            second = (await site.client.post(f"{JOBS}/first:clone", json=ask)).json()
            assert second["cloned_from"] == origin
            by_form = await site.client.post(
                JOBS, params={"cloned_from": "second"}, json=a_request(name="third")
            )
            assert by_form.json()["cloned_from"] == {"name": "second", "uid": second["uid"]}
            await site.client.delete(f"{JOBS}/first")
            with site.service.subscribe("team") as news:
                while site.service.board.find("team", "first") is not None:
                    await anext(news)
            assert (await site.client.get(f"{JOBS}/second")).json()["cloned_from"] == origin
            manifest = (await site.client.get(f"{JOBS}/second/manifest")).json()
            assert (manifest["spec"]["nodes"], manifest["original"]["nodes"]) == (4, 2)
            assert manifest["original"]["name"] == "first"
            late = await site.client.post(
                JOBS, params={"cloned_from": "first"}, json=a_request(name="fourth")
            )
            assert (late.status_code, late.json()["errors"][0]["path"]) == (422, "cloned_from")
            assert (await site.client.get(f"{JOBS}/fourth")).status_code == 404

    run(story())


def test_nothing_of_another_tenant_is_learned_by_naming_its_job_as_the_original(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            ann = bearer(await site.token("ann", team=Role.MEMBER))
            bob = bearer(await site.token("bob", others=Role.MEMBER))
            made = await site.client.post(JOBS, json=a_request(name="secret"), headers=ann)
            assert made.status_code == 201
            there = "/api/v1/namespaces/others/jobs"
            answers = [
                await site.client.post(
                    there,
                    params={"cloned_from": name},
                    json=a_request(user="bob"),
                    headers={**bob, "x-request-id": "same"},
                )
                for name in ("secret", "absent")
            ]
            said = [each.text.replace("absent", "secret") for each in answers]
            assert answers[0].status_code == 422
            assert said[0] == said[1]
            assert (await site.client.get(there, headers=bob)).json()["items"] == []

    run(story())


def test_what_is_known_of_a_job(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            site.engine.finish(site.handle("hello"), Phase.FAILED, "BackoffLimitExceeded")
            await site.until("hello", "Failed")
            get = site.client.get
            pods = (await get(f"{JOBS}/hello/pods")).json()["items"]
            assert [(each["rank"], each["phase"]) for each in pods] == [
                (0, "Failed"),
                (1, "Failed"),
            ]
            assert [(each["node"], each["address"]) for each in pods] == [
                ("here", "192.0.2.1"),
                ("here", "192.0.2.2"),
            ]
            events = (await get(f"{JOBS}/hello/events")).json()["items"]
            assert events[0]["reason"] == "Accepted"
            later = await get(f"{JOBS}/hello/events", params={"after": 0, "limit": 1})
            assert later.json()["items"][0]["number"] == 1
            told = (await get(f"{JOBS}/hello/explain")).json()
            assert "BackoffLimitExceeded" in told["summary"]
            assert told["next_steps"][0].startswith("astrago logs hello")
            none = (await get(f"{JOBS}/hello/checkpoints")).json()
            assert (none["items"], "not told where" in none["note"]) == ([], True)
            assert (await get(f"{JOBS}/hello/metrics")).json() == {
                "run": 1,
                "progress": None,
                "ranks": [],
                "series": {},
                "other_ranks": [],
            }

    run(story())


def test_what_the_engine_cannot_do_names_the_ability(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            site.engine.abilities = frozenset()
            answer = await site.client.get("/api/v1/nodes")
            assert (answer.status_code, answer.json()["ability"]) == (422, "nodes")
            await site.running(name="hello")
            answer = await site.client.post(f"{JOBS}/hello:suspend")
            assert (answer.status_code, answer.json()["ability"]) == (422, "suspend")

    run(story())


def test_the_catalogue(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            items = (await site.client.get("/api/v1/runtimes")).json()["items"]
            assert "pytorch-simple" in [each["name"] for each in items]
            one = (await site.client.get("/api/v1/runtimes/pytorch-simple")).json()
            assert one["manifest"]["kind"] == "ClusterTrainingRuntime"
            assert (await site.client.get("/api/v1/runtimes/nope")).status_code == 404

    run(story())


@pytest.mark.req("M57")
def test_a_mistake_of_ours_says_nothing_of_itself(tmp_path, monkeypatch):
    async def story():
        async with a_site(tmp_path) as site:

            def broken(*_, **__):
                raise RuntimeError("password=hunter2")

            monkeypatch.setattr(site.service, "preview", broken)
            monkeypatch.setattr(site.service.board, "page", broken)
            for answer in (
                await site.client.post(f"{JOBS}:preview", json=a_request()),
                await site.client.get(JOBS),
            ):
                assert answer.status_code == 500
                assert "hunter2" not in answer.text
                assert "Traceback" not in answer.text
                assert answer.json()["request_id"] == answer.headers["x-request-id"]

    run(story())


def test_a_training_reports_by_the_contract_of_the_trainer(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.running(name="hello")
            path = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/team/trainjobs/hello/status"
            status = {
                "progressPercentage": 45,
                "estimatedRemainingSeconds": 120,
                "metrics": [
                    {"name": "loss", "value": "0.5"},
                    {"name": "current_step", "value": "7"},
                ],
                "lastUpdatedTime": "2026-01-31T12:00:00Z",
            }
            answer = await site.client.post(path, content=json.dumps({"trainerStatus": status}))
            assert (answer.status_code, answer.json()) == (200, {"trainerStatus": status})
            found = (await site.client.get(f"{JOBS}/hello/metrics")).json()
            assert found["progress"] == {"fraction": 0.45, "remaining_seconds": 120.0}
            assert [point[0::2] for point in found["series"]["loss"]] == [[7, 0.5]]
            del status["lastUpdatedTime"]
            refused = await site.client.post(path, json={"trainerStatus": status})
            assert refused.status_code == 422
            large = await site.client.post(path, content=b" " * 70_000)
            assert large.status_code == 413
            assert (await site.client.post(path, content=b"{")).status_code == 400

    run(story())


def test_a_job_is_told_again_for_another_door_and_is_the_same_job(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            request = a_request(name="hello", env=[{"name": "A", "value": "$(id) 'x'"}])
            forms = {}
            for form in ("cli", "curl", "python", "trainjob"):
                answer = await site.client.post(
                    f"{JOBS}:retell",
                    params={"form": form, "server": "https://trainer.example"},
                    json=request,
                )
                assert answer.status_code == 200, answer.text
                assert answer.json()["form"] == form
                forms[form] = answer.json()["text"]
            assert "https://trainer.example/api/v1/namespaces/team/jobs" in forms["curl"]
            body = json.loads(forms["curl"].partition("<<'EOF'\n")[2].rpartition("EOF")[0])
            assert (await site.client.post(JOBS, json=body)).status_code == 201
            manifest = (await site.client.get(f"{JOBS}/hello/manifest")).json()
            assert manifest["spec"]["env"] == request["env"]
            read = parse_documents(forms["trainjob"].encode(), "pasted")
            assert read[-1]["spec"] == manifest["objects"][-1]["spec"]
            for wrong in ({"form": "perl"}, {}, {"form": "cli", "server": "javascript:1"}):
                answer = await site.client.post(f"{JOBS}:retell", params=wrong, json=request)
                assert answer.status_code == 422, wrong

    run(story())


def test_a_form_is_offered_sizes_runtimes_and_a_sample_that_is_accepted(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            found = (await site.client.get("/api/v1/offers")).json()
            assert found["presets"][0] == {
                "name": "small",
                "gpus": 1,
                "cpu": "4",
                "memory": "16Gi",
            }
            assert [each["name"] for each in found["frameworks"]] == [
                "pytorch",
                "tensorflow",
                "horovod",
            ]
            known = (await site.client.get("/api/v1/runtimes")).json()["items"]
            images = {each["name"]: each["image"] for each in known}
            for each in found["frameworks"]:
                assert images[each["runtime"]] == each["image"]
            made = await site.client.post(JOBS, json=found["sample"])
            assert made.status_code == 201, made.text

    run(story())


def test_checkpoints_without_a_volume_are_warned_of_where_they_would_be_lost(tmp_path):
    async def story():
        body = a_request(checkpoints="/no-such-place/run")
        async with a_site(tmp_path / "fake") as site:
            found = (await site.client.post(f"{JOBS}:preview", json=body)).json()
            assert [each["code"] for each in found["problems"]] == ["checkpoints-go-with-the-pod"]
        engine = LocalEngine(tmp_path / "local", isolation="plain")
        async with a_site(tmp_path / "local", engine) as site:
            found = (await site.client.post(f"{JOBS}:preview", json=body)).json()
            assert found["problems"] == []
            made = await site.submit(checkpoints="/no-such-place/run")
            await site.until(made["name"], "Complete")
            kept = (await site.client.get(f"{JOBS}/{made['name']}/checkpoints")).json()
            assert (kept["directory"], kept["items"], kept["note"]) == (
                "/no-such-place/run",
                [],
                "",
            )

    asyncio.run(story())


def test_what_was_written_at_one_server_is_read_at_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(service_module, "JOIN_SECONDS", 0.0)

    async def story():
        engine = FakeEngine(data=tmp_path / "fake")
        async with a_site(tmp_path, engine) as one, a_site(tmp_path, engine) as other:
            await one.service.catch_up()
            for number in range(10):
                first, second = (one, other) if number % 2 else (other, one)
                made = await first.client.post(JOBS, json=a_request(name=f"job{number}"))
                assert made.status_code == 201, made.text
                place = f"{JOBS}/job{number}"
                assert (await second.client.get(place)).status_code == 200
                listed = (await second.client.get(JOBS)).json()["items"]
                assert f"job{number}" in [each["name"] for each in listed]
                assert (await second.client.post(f"{place}:suspend")).status_code == 202
                assert (await first.client.get(place)).json()["is_suspended"]
                assert (await first.client.delete(place)).status_code == 202
                left = await second.client.get(place)
                assert left.status_code == 404 or left.json()["phase"] == "Deleting"

    asyncio.run(story())
