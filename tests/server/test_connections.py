"""Connections without a request give way to others; headers are counted whatever else the connection does."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest

from astrago_trainer.server.connections import Connections
from tests import patient
from tests.server.serving import JOBS, PATIENCE, a_process, a_request


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


def connect(address: str) -> socket.socket:
    host, port = address.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


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
