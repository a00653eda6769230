"""The client below its methods: answers in pieces, streams that break off, servers that are none."""

from __future__ import annotations

import json
import socket

import pytest

from astrago_trainer.client import (
    ClientError,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    TrainerClient,
    Unauthenticated,
    Unavailable,
    Unexpected,
)
from astrago_trainer.client.calls import Call
from astrago_trainer.client.session import Session
from astrago_trainer.client.sse import Parser, ServerEvent
from astrago_trainer.core.errors import InvalidRequest

from .servers import Scripted, answer, chunked

LINE = {"attempt": 0, "rank": 1, "pod": "a-node-0-1", "next": 9, "time": 1.0, "ended": True}


def event(offset: int, text: str, name: str = "") -> str:
    data = json.dumps({**LINE, "offset": offset, "text": text})
    return f"{f'event: {name}' if name else ''}\nid: 0:1:{offset}\ndata: {data}\n\n"


def problem(status: int, **more: object) -> bytes:
    return answer(status, json.dumps({"status": status, "detail": "because.", **more}))


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, Unauthenticated),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (429, Unavailable),
        (503, Unavailable),
        (500, Unexpected),
    ],
)
def test_a_refusal_is_what_the_caller_does_next(status: int, kind: type[ClientError]) -> None:
    with Scripted([problem(status, request_id="r1")]) as server:
        client = TrainerClient(server.url, namespace="team")
        with pytest.raises(kind, match="because") as caught:
            client.get("a")
    assert caught.value.request_id == "r1"


def test_a_refused_request_has_all_its_problems() -> None:
    errors = [{"path": "nodes", "message": "must be at least 1."}, {"path": "x", "message": "no."}]
    with (
        Scripted([problem(422, errors=errors)]) as server,
        pytest.raises(Refused) as caught,
    ):
        TrainerClient(server.url, namespace="team").submit(framework="pytorch", nodes=0)
    assert [each.path for each in caught.value.problems] == ["nodes", "x"]
    assert isinstance(caught.value, InvalidRequest)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (answer(200, "<html>hello"), "as no Astrago server does"),
        (answer(404, "<html>nothing"), "as no Astrago server does"),
        (b"SSH-2.0-OpenSSH\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 300, "too many headers"),
    ],
)
def test_another_server_is_recognised(sent: bytes, says: str) -> None:
    with Scripted([sent]) as server, pytest.raises(Unexpected, match=says):
        Session(server.url).call(Call("GET", "/"))


def test_a_lost_answer_says_whether_it_is_safe_to_repeat() -> None:
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    with Scripted([cut, cut, b"", answer(502, "bad gateway")]) as server:
        session = Session(server.url)
        with pytest.raises(Unavailable, match="Try again"):
            session.call(Call("GET", "/"))
        with pytest.raises(Unavailable, match="look before you repeat it"):
            session.call(Call("POST", "/", {}))
        with pytest.raises(Unavailable, match="no answer"):
            session.call(Call("GET", "/"))
        with pytest.raises(Unavailable, match="does not answer now"):
            session.call(Call("GET", "/"))


def test_nobody_there_is_said_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(
        Unavailable, match=f"no server answers at http://127.0.0.1:{port}.*astrago up"
    ):
        TrainerClient(f"http://127.0.0.1:{port}", namespace="team").get("a")


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://[::1", "http://h:port", "http://h?q"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="must be the address of a server"):
        Session(url)


def test_names_and_tokens_cannot_change_the_request() -> None:
    body = answer(200, json.dumps({"items": [], "next_page_token": None}))
    with Scripted([answer(404, '{"status": 404}'), body]) as server:
        client = TrainerClient(server.url, namespace="a/b?c")
        with pytest.raises(NotFound):
            client.get("x y/../z HTTP/1.1\r\nX: 1")
        assert server.requests[0].startswith(
            "GET /api/v1/namespaces/a%2Fb%3Fc/jobs/x%20y%2F..%2Fz%20HTTP%2F1.1%0D%0AX%3A%201 HTTP/1.1\r\n"
        )
        with pytest.raises(InvalidRequest, match="control characters"):
            next(TrainerClient(server.url, "a\r\nX: 1", namespace="n").list())


def test_a_stream_that_breaks_off_goes_on_where_it_was() -> None:
    first = chunked(
        event(0, "one")[:20], event(0, "one")[20:] + event(4, "tw")[:30], is_whole=False
    )
    ended = chunked(event(4, "two"))
    last = chunked(event(8, "three"), "event: end\ndata: {}\n\n")
    with Scripted([first, ended, last]) as server:
        client = TrainerClient(server.url, namespace="team")
        lines = list(client.logs("a", follow=True))
    assert [(each.offset, each.text) for each in lines] == [(0, "one"), (4, "two"), (8, "three")]
    assert "Last-Event-ID" not in server.requests[0]
    assert "Last-Event-ID: 0:1:0\r\n" in server.requests[1]
    assert "Last-Event-ID: 0:1:4\r\n" in server.requests[2]


def test_a_stream_that_is_refused_is_not_asked_for_again() -> None:
    with Scripted([problem(404), problem(404)]) as server:
        with pytest.raises(NotFound):
            list(TrainerClient(server.url, namespace="team").logs("a", follow=True))
        assert len(server.requests) == 1


def test_events_are_read_in_whatever_pieces_they_come() -> None:
    text = ": hello\nevent: a\r\nid: 1\ndata: one\ndata: two\n\ndata:three\n\nid: 2\n\nevent: b\n\n"
    whole = [ServerEvent("a", "one\ntwo", "1"), ServerEvent("message", "three", "1")]
    for size in (1, 2, 3, 7, 1000):
        parser = Parser()
        data = text.encode()
        found = [
            each
            for place in range(0, len(data), size)
            for each in parser.feed(data[place : place + size])
        ]
        assert found == whole
        assert parser.last_id == "2"
