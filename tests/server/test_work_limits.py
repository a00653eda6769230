"""One request never stops the others: bounded structure, bounded problems, work in threads, fair shares."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import pytest

from astrago_trainer.core.errors import MAX_PROBLEMS, Unreadable
from astrago_trainer.server import app, log_answers
from astrago_trainer.server.body_limits import (
    MAX_DEPTH,
    MAX_MEMBERS,
    MAX_VALUES,
    check_structure,
)
from astrago_trainer.server.context import PLANS
from astrago_trainer.server.loop_times import LoopTimes
from astrago_trainer.service.identity import Role
from astrago_trainer.service.submission import Planner
from tests.server.serving import (
    JOBS,
    PATIENCE,
    a_process,
    a_request,
    a_site,
    bearer,
    health_seconds,
)


def variables(count):
    return [{"name": f"V{number}", "value": "x"} for number in range(count)]


def nested(depth):
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


# --- the structure of a body


def refusal_of(body):
    with pytest.raises(Unreadable) as caught:
        check_structure(body)
    (problem,) = caught.value.problems
    return problem


def test_a_list_that_is_too_long_is_named_with_the_limit_and_what_was_found():
    problem = refusal_of({"a": [{"env": [1] * (MAX_MEMBERS + 1)}]})
    assert (problem.path, problem.code) == ("a[0].env", "too-large")
    assert problem.message == "must have at most 5,000 entries; found 5,001."


def test_an_object_with_too_many_fields_is_refused():
    problem = refusal_of({"labels": {str(number): "x" for number in range(MAX_MEMBERS + 1)}})
    assert problem.path == "labels"


def test_many_lists_that_are_each_short_enough_are_refused_together():
    problem = refusal_of([[1] * 1000] * (MAX_VALUES // 1000))
    assert "at most 50,000 values" in problem.message


def test_a_body_that_is_too_deep_is_refused_at_its_limit():
    check_structure(nested(MAX_DEPTH))
    problem = refusal_of({"x": nested(MAX_DEPTH)})
    assert problem.path == "x" + "[0]" * (MAX_DEPTH - 1)
    assert "at most 32 levels" in problem.message


@pytest.mark.parametrize("body", [None, 1, "text", [], {}])
def test_small_bodies_of_any_kind_pass(body):
    check_structure(body)


def test_the_check_reads_no_more_than_it_has_to():
    class Counted(list):
        read = 0

        def __iter__(self):
            for each in super().__iter__():
                Counted.read += 1
                yield each

    with pytest.raises(Unreadable):
        check_structure(Counted([0] * 1_000_000))
    assert Counted.read == 0


# --- over HTTP


def test_a_job_with_more_variables_than_a_cluster_takes_is_refused_on_every_route(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            await site.submit(name="hello")
            too_many = {"env": variables(MAX_MEMBERS + 1)}
            body = a_request(**too_many)
            for path, content in (
                (JOBS, body),
                (f"{JOBS}:preview", body),
                (f"{JOBS}:retell?form=cli", body),
                (f"{JOBS}/hello:clone", too_many),
                ("/api/trainjob/create", {"env_vars": too_many["env"]}),
            ):
                answer = await site.client.post(path, json=content)
                assert answer.status_code == 413, (path, answer.text)
                found = answer.json()
                assert found["code"] == "too-large"
                assert found["errors"][0]["path"] in ("env", "env_vars")
                assert "at most 5,000 entries; found 5,001" in found["errors"][0]["message"]
                assert found["errors"][0]["remedy"]

    asyncio.run(story())


def test_a_large_job_that_makes_sense_is_accepted(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            secret = {"name": "keys", "key": "token"}
            env = [{"name": f"V{number}", "secret": secret} for number in range(2000)]
            answer = await site.client.post(f"{JOBS}:preview", json=a_request(env=env))
            assert answer.status_code == 200
            assert not answer.json()["is_refused"]
            await site.submit(env=env)

    asyncio.run(story())


def test_problems_are_listed_up_to_a_limit(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            answer = await site.client.post(f"{JOBS}:preview", json=a_request(env=[1] * 3000))
            assert answer.status_code == 422
            *shown, last = answer.json()["errors"]
            assert len(shown) == MAX_PROBLEMS
            assert last["code"] == "more-problems"

    asyncio.run(story())


def test_a_body_that_describes_no_job_may_be_small_only(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens", signup="open") as site:
            fields = {f"field{number}": 1 for number in range(10_000)}
            answer = await site.client.post("/api/v1/signup", json=fields)
            assert answer.status_code == 413
            assert "at most 65,536 bytes" in answer.json()["detail"]
            answer = await site.client.post("/api/v1/signup", json={"user": "ann", "x": 1})
            assert answer.status_code == 422

    asyncio.run(story())


# --- the event loop


def test_jobs_are_planned_in_threads(tmp_path, monkeypatch):
    here, elsewhere = threading.get_ident(), set()

    def noted(name):
        real = getattr(Planner, name)

        def work(self, *args, **kwargs):
            elsewhere.add((name, threading.get_ident() != here))
            return real(self, *args, **kwargs)

        monkeypatch.setattr(Planner, name, work)

    for name in ("preview", "plan", "rendered", "origins"):
        noted(name)

    async def story():
        async with a_site(tmp_path) as site:
            await site.submit(name="hello")
            client = site.client
            assert (await client.post(f"{JOBS}:preview", json=a_request())).status_code == 200
            path = f"{JOBS}:retell?form=trainjob"
            assert (await client.post(path, json=a_request())).status_code == 200
            assert (await client.post(f"{JOBS}/hello:clone", json={})).status_code == 201
            assert (await client.get(f"{JOBS}/hello/manifest")).status_code == 200

    asyncio.run(story())
    assert elsewhere == {(name, True) for name in ("preview", "plan", "rendered", "origins")}


def test_others_are_answered_while_the_largest_job_is_previewed(tmp_path):
    volumes = [
        {"name": f"v{number}", "mount_path": f"/m{number}", "claim": "data"}
        for number in range(MAX_MEMBERS)
    ]
    body = a_request(framework="horovod", env=variables(MAX_MEMBERS), volumes=volumes)
    with (
        a_process(tmp_path / "data", ASTRAGO_ENGINE="fake") as server,
        httpx.Client(timeout=PATIENCE) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        health_seconds(client, server)
        heavy = pool.submit(
            httpx.post, f"{server.address}{JOBS}:preview", json=body, timeout=PATIENCE
        )
        seconds = [health_seconds(client, server)]
        while not heavy.done():
            seconds.append(health_seconds(client, server))
        assert heavy.result().status_code == 200, heavy.result().text
        assert max(seconds) < 1.0
        numbers = client.get(f"{server.address}/metrics").text
        held = next(
            line
            for line in numbers.splitlines()
            if line.startswith("astrago_event_loop_held_seconds_max ")
        )
        assert 0 <= float(held.split()[1]) < 5.0


def test_a_held_event_loop_is_counted_and_logged(caplog):
    async def story():
        times = LoopTimes()
        times.start()
        loop = asyncio.get_running_loop()
        times._measure(loop, time.monotonic() - 3)
        times.stop()
        return times

    times = asyncio.run(story())
    assert 3 <= times.longest < 3 + PATIENCE
    assert times.total == times.longest
    assert sum(times.buckets) == 1
    assert "the event loop was held for" in caplog.text


def test_the_longest_hold_of_the_event_loop_is_in_the_metrics(tmp_path):
    async def story():
        async with a_site(tmp_path) as site:
            site.context.loop_times.note(0.3)
            text = (await site.client.get("/metrics")).text
            assert "astrago_event_loop_held_seconds_max 0.3" in text
            assert 'astrago_event_loop_held_seconds_bucket{le="0.5"}' in text
            assert "astrago_plans_waiting 0" in text

    asyncio.run(story())


# --- shares


def held_back(real, is_held):
    """`real`, waiting for an event where `is_held` says so."""
    may_end = threading.Event()

    def work(*args, **kwargs):
        if is_held(*args) and not may_end.wait(PATIENCE):
            may_end.set()  # the others need not wait as well
            raise AssertionError("nobody else was answered meanwhile")
        return real(*args, **kwargs)

    return work, may_end


def test_a_caller_with_many_previews_does_not_keep_another_from_one(tmp_path, monkeypatch):
    monkeypatch.setattr(app, "PLANS", replace(PLANS, waiting_each=64))

    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            loud, quiet = (
                bearer(await site.token("loud", team=Role.MEMBER)),
                bearer(await site.token("quiet", team=Role.MEMBER)),
            )
            work, may_end = held_back(Planner.preview, lambda _self, _ns, spec: spec.user == "loud")
            monkeypatch.setattr(Planner, "preview", work)

            async def preview(user, headers):
                body = a_request(user=user)
                return await site.client.post(f"{JOBS}:preview", json=body, headers=headers)

            many = [asyncio.create_task(preview("loud", loud)) for _ in range(100)]
            refused, _ = await asyncio.wait(many, return_when=asyncio.FIRST_COMPLETED)
            assert {each.result().status_code for each in refused} == {429}
            assert all(each.result().headers["retry-after"] for each in refused)
            assert (await preview("quiet", quiet)).status_code == 200
            assert (await site.client.get("/healthz")).status_code == 200
            may_end.set()
            codes = [each.status_code for each in await asyncio.gather(*many)]
            assert set(codes) == {200, 429}
            assert codes.count(200) >= PLANS.running_each + 64
            assert site.context.plans.slots.running == 0

    asyncio.run(story())


def test_a_tenant_with_many_searches_does_not_keep_another_from_one(tmp_path, monkeypatch):
    async def story():
        async with a_site(tmp_path) as site:
            for namespace in ("team", "other"):
                jobs = f"/api/v1/namespaces/{namespace}/jobs"
                await site.client.post(jobs, json=a_request(name="hello", nodes=1))
                site.log("hello", namespace=namespace).write_bytes(b"one\ntwo\n")
            held_log = site.log("hello")
            work, may_end = held_back(log_answers._search, lambda place, *_: place.path == held_log)
            monkeypatch.setattr(log_answers, "_search", work)

            async def search(namespace):
                path = f"/api/v1/namespaces/{namespace}/jobs/hello/logs"
                return await site.client.get(path, params={"grep": "tw."})

            many = [asyncio.create_task(search("team")) for _ in range(8)]
            async with asyncio.timeout(PATIENCE):
                while site.context.searches.running + site.context.searches.waiting < 8:
                    await asyncio.sleep(0)
            found = await search("other")
            assert (found.status_code, found.text) == (200, "two\n")
            may_end.set()
            assert {each.status_code for each in await asyncio.gather(*many)} == {200}

    asyncio.run(story())


# --- headers


async def status_of(site, headers, version="1.1"):
    """Of a request with exactly these headers."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": version,
        "method": "GET",
        "path": "/api/v1/whoami",
        "raw_path": b"/api/v1/whoami",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    await site.app(scope, receive, send)
    text = b"".join(each.get("body", b"") for each in sent)
    return sent[0]["status"], json.loads(text).get("detail", "")


def test_headers_that_decide_who_calls_come_once(tmp_path):
    async def story():
        async with a_site(tmp_path, auth="tokens") as site:
            token = f"Bearer {await site.token('ann')}".encode()
            host, known = (b"host", b"localhost"), (b"authorization", token)
            other = (b"authorization", b"Bearer x")
            assert (await status_of(site, [host, known]))[0] == 200
            assert (await status_of(site, [host, known, (b"accept", b"a"), (b"accept", b"b")]))[
                0
            ] == 200
            assert (await status_of(site, [known], "1.0"))[0] == 200
            for headers, name in (
                ([host, known, known], "Authorization"),
                ([host, other, known], "Authorization"),
                ([host, known, other], "Authorization"),
                ([host, host, known], "Host"),
                ([known], "Host"),
            ):
                status, detail = await status_of(site, headers)
                assert status == 400, headers
                assert name in detail

    asyncio.run(story())


# --- clients that go away


def cut(address, text):
    """Send this and reset the connection."""
    host, port = address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as made:
        made.sendall(text.encode())
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_clients_that_go_away_leave_no_traceback_and_no_error(tmp_path):
    head = "HTTP/1.1\r\nHost: localhost\r\ncontent-type: application/json\r\n"
    started = "content-length: 100\r\n\r\n{"
    cases = [
        f"POST {JOBS}:preview {head}{started}",
        f"POST {JOBS} {head}{started}",
        f"POST {JOBS} {head}transfer-encoding: chunked\r\n\r\n5\r\nab",
        f"POST /api/v1/signup {head}{started}",
    ]
    gone = 'status="499"'
    with (
        a_process(tmp_path / "data", ASTRAGO_ENGINE="fake") as server,
        httpx.Client(timeout=PATIENCE) as client,
    ):
        for text in cases:
            cut(server.address, text)
            cut(server.address, "GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = client.get(f"{server.address}/metrics").text.splitlines()
            if sum(int(line.split()[-1]) for line in lines if gone in line) == len(cases):
                break
            assert time.monotonic() < deadline, lines
        assert not [line for line in lines if 'status="500"' in line]
        assert server.stop() == 0
    log = server.stderr.read_text()
    assert "Traceback" not in log
    assert '"level": "error"' not in log
