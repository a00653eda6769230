"""Connections without a request give way to others; headers are counted whatever else the connection does."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from astrago_trainer.server.connections import Connections
from astrago_trainer.server.edge import PLACE
from tests import patient
from tests.server.serving import JOBS, PATIENCE, a_process, a_request, a_site


class AConnection:
    is_cut = False

    def cut(self) -> None:
        self.is_cut = True


def test_the_oldest_of_the_address_with_most_gives_way():
    known = Connections(16)
    loud = [AConnection() for _ in range(14)]
    quiet = [AConnection() for _ in range(2)]
    assert all(known.enter(each, "loud") for each in loud)
    assert all(known.enter(each, "quiet") for each in quiet)
    known.work(loud[0])  # it has a request
    new = [AConnection() for _ in range(3)]
    assert all(known.enter(each, "new") for each in new)
    assert [each.is_cut for each in loud[:5]] == [False, True, True, True, False]
    assert not any(each.is_cut for each in (*quiet, *new))
    known.rest(loud[0])
    assert known.enter(AConnection(), "new")
    assert loud[4].is_cut, "who rested last goes last"
    assert len(known) == 16


def test_one_address_never_has_all_of_them():
    known = Connections(16)
    loud = [AConnection() for _ in range(20)]
    came = []
    for each in loud:
        came.append(known.enter(each, "loud"))
        known.work(each)
    assert came == [True] * 14 + [False] * 6
    assert known.enter(AConnection(), "probe")
    for each in loud:
        known.leave(each)
        known.leave(each)
    assert len(known) == 1


def test_connections_without_a_token_give_way_first():
    known = Connections(16)
    callers = [AConnection() for _ in range(10)]
    strangers = [AConnection() for _ in range(6)]
    assert all(known.enter(each, "office") for each in callers)
    for each in callers:
        known.know(each)
    assert all(known.enter(each, "elsewhere") for each in strangers)
    new = [AConnection() for _ in range(6)]
    assert all(known.enter(each, f"new-{index}") for index, each in enumerate(new))
    for each in new:
        known.work(each)
    assert all(each.is_cut for each in strangers)
    assert not any(each.is_cut for each in callers)
    assert known.enter(AConnection(), "last")
    assert [each.is_cut for each in callers[:2]] == [True, False], "with no others, the oldest"


def test_the_reserve_begins_when_all_other_places_work():
    known = Connections(32)
    held = [AConnection() for _ in range(31)]
    for index, each in enumerate(held):
        known.enter(each, f"address-{index}")
    assert not known.is_scarce, "they rest, and give way"
    for each in held[:30]:
        known.work(each)
    assert not known.is_scarce
    known.work(held[30])
    assert known.is_scarce
    known.leave(held[30])
    assert not known.is_scarce


def connect(address: str, source: str = "127.0.0.1") -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), PATIENCE, source_address=(source, 0))


def test_resting_connections_lock_nobody_out(tmp_path):
    limits = {"ASTRAGO_ENGINE": "fake", "ASTRAGO_MAX_CONNECTIONS": "64"}
    with a_process(tmp_path / "data", **limits) as server:
        held = []
        try:
            for _ in range(200):
                each = connect(server.address)
                held.append(each)
                each.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert each.recv(4096).startswith(b"HTTP/1.1 200")
            assert patient.get(f"{server.address}/healthz").status_code == 200
        finally:
            for each in held:
                each.close()


HALF = (
    b"POST /api/v1/signup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 100\r\n\r\n{"
)
"""A request whose body does not come to its end."""


@pytest.mark.parametrize(
    "begin", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"], ids=["alone", "pipelined"]
)
def test_half_bodies_lock_nobody_out(tmp_path, begin):
    limits = {"ASTRAGO_ENGINE": "fake", "ASTRAGO_MAX_CONNECTIONS": "64", "ASTRAGO_AUTH": "tokens"}
    with a_process(tmp_path / "data", ASTRAGO_SIGNUP="open", **limits) as server:
        token = (tmp_path / "data" / "admin-token").read_text().strip()
        held = []
        try:
            for index in range(200):
                held.append(connect(server.address, f"127.0.0.{1 + index % 2}"))
                with suppress(ConnectionError):  # the place of an earlier one may go to a later one
                    held[-1].sendall(begin + HALF)
                    if begin:
                        assert held[-1].recv(4096).startswith(b"HTTP/1.1 200")
            assert patient.get(f"{server.address}/healthz").status_code == 200
            headers = {"Authorization": f"Bearer {token}"}
            found = patient.get(f"{server.address}/api/v1/whoami", headers=headers)
            assert found.json()["name"] == "admin"
            # Half bodies give way, so that not even the reserve is touched.
            assert patient.get(f"{server.address}/api/v1/sign-in").status_code == 200
        finally:
            for each in held:
                each.close()


def test_the_reserve_serves_probes_and_callers_with_a_token(tmp_path):
    async def story():
        settings = {"auth": "tokens", "local_users": "trusted"}
        async with a_site(tmp_path, **settings) as site:
            place = APlace()
            secret = (tmp_path / "admin-token").read_text().strip()
            told = [
                await answered(site.app, place, "/healthz"),
                await answered(site.app, place, "/api/v1/sign-in"),
                await answered(site.app, place, "/api/v1/whoami", secret),
            ]
            assert told == [200, 503, 200]
            assert place.knows == 1
            place.is_scarce = False
            assert await answered(site.app, place, "/api/v1/sign-in") == 200

    asyncio.run(story())


class APlace:
    is_scarce = True
    knows = 0

    def know(self) -> None:
        self.knows += 1


async def answered(app, place: APlace, path: str, secret: str = "") -> int:
    """The status of a request on a connection with this place."""
    headers = [(b"host", b"localhost")]
    if secret:
        headers.append((b"authorization", f"Bearer {secret}".encode()))
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "extensions": {PLACE: place},
    }
    sent: list[dict] = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


FLOOD = b"X: " + b"a" * (8 << 20)
UNFINISHED = {
    "a header behind a stream": b"GET {stream} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n",
    "a trailer": b"POST /api/v1/signup HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
    "many small trailers behind a stream": b"GET {stream} HTTP/1.1\r\nHost: localhost\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
}


@pytest.mark.parametrize("state", UNFINISHED)
def test_headers_are_counted_in_every_state(tmp_path, state):
    with a_process(tmp_path / "data", ASTRAGO_ENGINE="fake") as server:
        made = patient.post(f"{server.address}{JOBS}", json=a_request(name="job", user="user123"))
        assert made.status_code == 201, made.text
        path = f"/api/v1/namespaces/{made.json()['namespace']}/stream".encode()
        flood = b"X: a\r\n" * (1 << 20) if "many" in state else FLOOD
        before = resident(server.process.pid)
        held = []
        try:
            for _ in range(5):
                each = connect(server.address)
                held.append(each)
                each.sendall(UNFINISHED[state].replace(b"{stream}", path))
                with suppress(ConnectionError):  # cut off long before the end
                    for start in range(0, len(flood), 1 << 16):
                        each.sendall(flood[start : start + (1 << 16)])
                    while each.recv(1 << 16):
                        pass
            grown = resident(server.process.pid) - before
        finally:
            for each in held:
                each.close()
        assert grown < 16 << 20
        assert patient.get(f"{server.address}/healthz").status_code == 200


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
