"""The first API, to the letter: both bodies, the answers of both."""

from __future__ import annotations

import asyncio
import re

import pytest

from astrago_trainer.server.openapi import FLAT_EXAMPLE, NESTED_EXAMPLE
from tests.server.serving import a_site

CREATE = "/api/trainjob/create"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"


@pytest.mark.req("M21", "M22", "M51", "M52", "M53", "M55")
@pytest.mark.parametrize("body", [NESTED_EXAMPLE, FLAT_EXAMPLE], ids=["nested", "flat"])
def test_both_bodies_get_the_answer_of_both(tmp_path, body):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.post(CREATE, json=body)
            assert answer.status_code == 200, answer.text
            made = answer.json()
            assert list(made) == ["status", "trainjob_name", "namespace", "created_at"]
            assert (made["status"], made["namespace"]) == ("success", "user-123")
            assert re.fullmatch(r"user123-job-\d{14}", made["trainjob_name"])
            assert re.fullmatch(TIME, made["created_at"])

    asyncio.run(story())


def test_what_was_converted_or_ignored_is_named_in_the_answer(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            config = {**NESTED_EXAMPLE["config"], "num_nodes": "2", "cpu_per_node": "4"}
            body = {**NESTED_EXAMPLE, "config": config, "priority": "high"}
            answer = await site.client.post(CREATE, json=body)
            assert answer.status_code == 200, answer.text
            made = answer.json()
            assert made["warnings"] == [
                {
                    "path": "config.num_nodes",
                    "code": "value-converted",
                    "message": "a whole number is expected; the value was read as 2.",
                },
                {
                    "path": "priority",
                    "code": "field-ignored",
                    "message": "there is no such field; it was ignored.",
                },
            ]
            job = site.service.get("user-123", made["trainjob_name"]).job
            assert job.nodes == 2
            strict = {"user": "user123", "framework": "pytorch", "command": "true", "nodes": "2"}
            there = "/api/v1/namespaces/user-123/jobs"
            answer = await site.client.post(there, json={**strict, "priority": "high"})
            assert answer.status_code == 422
            assert [each["path"] for each in answer.json()["errors"]] == ["nodes", "priority"]

    asyncio.run(story())


@pytest.mark.req("M23", "M24", "M25", "M26", "M27", "M28")
def test_the_life_of_a_job(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            made = (await site.client.post(CREATE, json=NESTED_EXAMPLE)).json()
            name, there = made["trainjob_name"], {"namespace": "user-123"}
            get = site.client.get
            status = (await get(f"/api/trainjob/{name}/status", params=there)).json()
            assert (status["state"], status["completed_at"]) == ("Running", None)
            for rank in (0, 1):
                text = f'RANK {rank}\n"quoted" \\ \x1b[31m ü\n'.encode() + b"\xff\n"
                site.log(name, rank, namespace="user-123").write_bytes(text)
            logs = await get(f"/api/trainjob/{name}/logs", params={**there, "worker": 1})
            assert logs.json() == {
                "trainjob_name": name,
                "namespace": "user-123",
                "worker": 1,
                "logs": 'RANK 1\n"quoted" \\ \x1b[31m ü\n\ufffd\n',
            }
            tail = await get(f"/api/trainjob/{name}/logs", params={**there, "tail": 1})
            assert (tail.json()["worker"], tail.json()["logs"]) == (0, "\ufffd\n")
            missing = await get(f"/api/trainjob/{name}/logs", params={**there, "worker": 9})
            assert missing.status_code == 404
            assert "0 to 1" in missing.json()["detail"]

            with site.service.subscribe() as news:
                while site.service.get("user-123", name).job.phase != "Running":
                    await anext(news)
                site.engine.finish(site.handle(name, "user-123"))
                while site.service.get("user-123", name).job.phase != "Complete":
                    await anext(news)
                status = (await get(f"/api/trainjob/{name}/status", params=there)).json()
                assert status["state"] == "Complete"
                assert re.fullmatch(TIME, status["completed_at"])
                gone = await site.client.delete(f"/api/trainjob/{name}", params=there)
                assert gone.json() == {
                    "status": "success",
                    "trainjob_name": name,
                    "namespace": "user-123",
                }
                while site.service.board.find("user-123", name):
                    await anext(news)
            for path in ("status", "logs"):
                answer = await get(f"/api/trainjob/{name}/{path}", params=there)
                assert (answer.status_code, isinstance(answer.json()["detail"], str)) == (404, True)

    asyncio.run(story())


@pytest.mark.req("M56", "M44")
def test_a_body_that_breaks_rules_gets_the_answer_of_the_framework(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            config = {**NESTED_EXAMPLE["config"], "num_nodes": "two"}
            body = {**NESTED_EXAMPLE, "framework": "caffe", "config": config}
            answer = await site.client.post(CREATE, json=body)
            assert (answer.status_code, answer.headers["content-type"]) == (422, "application/json")
            detail = answer.json()["detail"]
            places = [each["loc"] for each in detail]
            assert ["body", "framework"] in places
            assert ["body", "config", "num_nodes"] in places
            assert all(each["msg"] and each["type"] for each in detail)
            nowhere = await site.client.get("/api/trainjob/x/status")
            assert nowhere.status_code == 422
            assert isinstance(nowhere.json()["detail"], list)

    asyncio.run(story())
