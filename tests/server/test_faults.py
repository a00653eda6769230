"""What a machine does to a server: a full disk, a locked database, a clock that is set, a thousand slow clients.

Over HTTP with the real parts. `ASTRAGO_LOCKED_SECONDS` is how long the database is locked; the campaign takes 30.
"""

from __future__ import annotations

import asyncio
import os
import re
import resource
import selectors
import shutil
import socket
import sqlite3
import time
from contextlib import ExitStack, closing, suppress

import httpx
import pytest

from tests.disks import a_small_disk
from tests.server.serving import (
    JOBS,
    PATIENCE,
    a_process,
    a_request,
    a_site,
    bearer,
    health_seconds,
)
from tests.server.test_process import _connections
from tests.service.jobs import SetClock

LOCKED_SECONDS = float(os.environ.get("ASTRAGO_LOCKED_SECONDS", "6"))
"""Longer than a write waits for the lock (5 s)."""


def fill(path) -> None:
    """To the last page of the disk; the server writes beside us."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))


def submit(client: httpx.Client, name: str) -> httpx.Response:
    """With a key, as a client that means to repeat it does."""
    headers = {"Idempotency-Key": name}
    return client.post(JOBS, json=a_request(name=name), headers=headers)


def names_of(client: httpx.Client) -> set[str]:
    found, token = set(), ""
    while token is not None:
        page = client.get(JOBS, params={"limit": 500, "page_token": token}).json()
        found |= {job["name"] for job in page["items"]}
        token = page["next_page_token"]
    return found


def test_a_full_disk_is_503_and_what_was_acknowledged_stays(tmp_path):
    with a_small_disk(tmp_path / "small", "4m") as folder:
        accepted, refused = set(), []
        with (
            a_process(folder / "data", ASTRAGO_ENGINE="fake") as server,
            httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
        ):
            assert submit(client, "first").status_code == 201
            fill(folder / "filler")
            for number in range(2000):
                answer = submit(client, f"job-{number}")
                if answer.status_code == 201:
                    accepted.add(f"job-{number}")
                else:
                    refused.append((f"job-{number}", answer))
                if len(refused) == 5:
                    break
            assert {each.status_code for _, each in refused} == {503}
            assert refused[0][1].headers["retry-after"]
            assert "nothing was changed" in refused[0][1].json()["detail"]
            # It is not well, says so, and still answers.
            assert client.get("/readyz").status_code == 503
            assert client.get("/healthz").status_code == 200
            assert names_of(client) >= accepted | {"first"}
            (folder / "filler").unlink()
            again = submit(client, refused[0][0])
            assert again.status_code == 201, again.text
            assert client.get("/readyz").status_code == 200
            server.kill()
        with (
            a_process(folder / "data", ASTRAGO_ENGINE="fake") as server,
            httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
        ):
            assert names_of(client) == accepted | {"first", refused[0][0]}


def test_a_database_that_is_locked_is_503_and_nothing_is_lost_or_doubled(tmp_path):
    data = tmp_path / "data"
    with (
        a_process(data, ASTRAGO_ENGINE="fake") as server,
        httpx.Client(base_url=server.address, timeout=PATIENCE + LOCKED_SECONDS) as client,
        closing(sqlite3.connect(data / "astrago.db", isolation_level=None)) as other,
    ):
        assert submit(client, "before").status_code == 201
        other.execute("BEGIN EXCLUSIVE")
        end = time.monotonic() + LOCKED_SECONDS
        answers = []
        while time.monotonic() < end:
            answers.append(submit(client, "while").status_code)
            begin = time.perf_counter()
            assert client.get(f"{JOBS}/before").status_code == 200
            assert time.perf_counter() - begin < 1, "reads wait for nobody"
        other.execute("ROLLBACK")
        assert set(answers) == {503}
        assert submit(client, "while").status_code == 201
        assert submit(client, "while").status_code == 201  # the same one again
        assert names_of(client) == {"before", "while"}


def test_a_data_folder_that_is_removed_is_503_and_no_job_is_accepted(tmp_path):
    data = tmp_path / "data"
    with (
        a_process(data, ASTRAGO_ENGINE="fake") as server,
        httpx.Client(base_url=server.address, timeout=PATIENCE) as client,
    ):
        assert submit(client, "before").status_code == 201
        assert client.get("/readyz").status_code == 200
        shutil.rmtree(data)
        for answer in (submit(client, "after"), client.get("/readyz")):
            assert answer.status_code == 503, answer.text
            assert "was removed or replaced" in answer.json()["detail"]
            assert str(data) not in answer.text
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("seconds", [3600, -3600])
def test_a_clock_that_is_set_keeps_jobs_tokens_and_order(tmp_path, seconds):
    clock = SetClock()

    async def scenario():
        async with a_site(tmp_path, clock=clock.clock, auth="tokens") as site:
            token = bearer((tmp_path / "admin-token").read_text().strip())
            site.client.headers.update(token)
            await site.client.post("/api/v1/tenants", json={"namespace": "team"})
            await site.running(name="ended", ttl_seconds=1800)
            site.engine.finish(site.handle("ended"))
            await site.until("ended", "Complete")
            await site.running(name="first")
            clock.set_by(seconds)
            await site.running(name="second")
            ended = (await site.client.get(f"{JOBS}/ended")).json()
            listed = (await site.client.get(JOBS)).json()["items"]
            verb = await site.client.post(f"{JOBS}/first:suspend")
            await site.until("first", "Suspended")
            events = (await site.client.get(f"{JOBS}/first/events")).json()["items"]
            return ended, [job["name"] for job in listed], verb.status_code, events

    ended, listed, status, events = asyncio.run(scenario())
    assert (ended["phase"], ended["is_expired"]) == ("Complete", False)
    assert listed == ["second", "first", "ended"]
    assert status == 202
    assert [each["number"] for each in events] == list(range(len(events)))


def test_a_thousand_slow_clients_and_two_hundred_readers_together(tmp_path):
    """Each slow client in its own way: headers, body, or an answer that it leaves unread."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"this user may open {hard} files; 1,200 connections need more")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        server = stack.enter_context(a_process(tmp_path / "data", ASTRAGO_ENGINE="fake"))
        client = stack.enter_context(httpx.Client(base_url=server.address, timeout=PATIENCE))
        logs = {}
        for name, size in (("big", 64 << 20), ("live", 0)):
            made = submit(client, name).json()
            log = tmp_path / f"data/fake/team/{name}-{made['uid']}/logs/0/{name}-node-0-0/node.log"
            log.parent.mkdir(parents=True)
            log.write_bytes(b"x" * size)
            logs[name] = log
        slow = [stack.enter_context(a_slow_client(server.address)) for _ in range(1000)]
        readers = stack.enter_context(_connections(server.address, 200))
        for each in readers:
            path = f"{JOBS}/live/logs?follow=true&format=sse&rank=0"
            each.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for number, each in enumerate(slow):
            each.sendall(_SLOW[number % 3])
        times = []
        with logs["live"].open("a") as file:
            for burst in range(40):
                file.write("".join(f"line {burst * 25 + n}\n" for n in range(25)))
                file.flush()
                for _ in range(10):
                    times.append(health_seconds(client, server))
        times.sort()
        assert times[len(times) * 99 // 100] < 0.5, times[-10:]
        read_to(readers, b"line 999")
        found = client.get("/metrics").text
        memory = re.search(r"^process_resident_memory_bytes (\S+)", found, re.M)
        assert memory is not None
        assert float(memory[1]) < 300e6


def a_slow_client(address: str) -> socket.socket:
    """With little room for what it does not read: on one machine it would be the kernel's memory for both of us."""
    host, port = address.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(PATIENCE)
    made.connect((host, int(port)))
    return made


def read_to(readers: list[socket.socket], last: bytes) -> None:
    """All of them at once, as people's browsers do, until each has seen it."""
    with selectors.DefaultSelector() as selector:
        seen = dict.fromkeys(readers, b"")
        for each in readers:
            selector.register(each, selectors.EVENT_READ)
        until = time.monotonic() + PATIENCE
        while left := len(selector.get_map()):
            ready = selector.select(timeout=1)
            assert time.monotonic() < until, (left, [text[-300:] for text in seen.values()][:3])
            for key, _ in ready:
                each = key.fileobj
                data = each.recv(1 << 18)
                assert data, (left, seen[each][:300])
                seen[each] += data
                if last in seen[each]:
                    selector.unregister(each)


_SLOW = (
    b"GET /healthz HTTP/1.1\r\nHost: loc",
    b"POST /api/v1/namespaces/team/jobs HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
    b"GET /api/v1/namespaces/team/jobs/big/logs?rank=0 HTTP/1.1\r\nHost: localhost\r\n\r\n",
)
