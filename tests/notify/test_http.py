"""Webhooks over real connections, to good receivers and to bad ones."""

from __future__ import annotations

import asyncio
import json
import ssl
from ipaddress import ip_address, ip_network

import pytest
import trustme
from tests.notify.receivers import LIMIT, LOOPBACK, a_delivery, answer, listening, receiving, run

from astrago_trainer.notify.addresses import Policy
from astrago_trainer.notify.http import HttpSender
from astrago_trainer.notify.notices import Chat, Mail, Webhook
from astrago_trainer.notify.senders import SendFailed, SendRefused
from astrago_trainer.notify.signing import is_genuine, new_secret


def resolved_to(*addresses: str):
    """A resolver that says these, and how often it was asked."""
    asked: list[str] = []

    async def resolve(host: str, port: int):
        asked.append(host)
        return [ip_address(address) for address in addresses]

    return resolve, asked


def test_a_receiver_gets_a_signed_message_with_a_stable_id():
    async def main():
        secret = new_secret()
        async with receiving() as receiver:
            delivery = a_delivery(Webhook(url=receiver.url, secrets=(secret,)))
            for now in (1000.0, 2000.0):
                await HttpSender(LOOPBACK).send(delivery, now)

        first, second = receiver.requests
        assert first.line == "POST /hook?token=t HTTP/1.1"
        assert first.headers["content-type"] == "application/json"
        assert first.headers["host"] == f"127.0.0.1:{receiver.port}"
        assert is_genuine(first.headers, first.body, secret, 1000.0)
        assert is_genuine(second.headers, second.body, secret, 2000.0)
        assert not is_genuine(first.headers, first.body, secret, 2000.0)
        assert {each.headers["webhook-id"] for each in receiver.requests} == {delivery.id}
        assert json.loads(first.body)["id"] == delivery.id

    run(main())


def test_a_chat_gets_its_text_without_our_headers():
    async def main():
        async with receiving(answer("200 OK")) as receiver:
            await HttpSender(LOOPBACK).send(a_delivery(Chat(url=receiver.url)), 0.0)

        assert list(json.loads(receiver.requests[0].body)) == ["text"]
        assert "webhook-id" not in receiver.requests[0].headers

    run(main())


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        ("500 Oops", SendFailed, "answered 500"),
        ("404 Not Found", SendFailed, "answered 404"),
        ("302 Found", SendFailed, "redirects are not followed"),
        ("410 Gone", SendRefused, "no more messages"),
    ],
)
def test_an_answer_that_is_no_success_is_told(status, error, says):
    async def main():
        async with (
            receiving() as inner,
            receiving(answer(status, f"location: {inner.url}")) as outer,
        ):
            with pytest.raises(error, match=says) as failed:
                await HttpSender(LOOPBACK).send(a_delivery(Webhook(url=outer.url)), 0.0)

        assert inner.connections == 0
        assert "token" not in str(failed.value), "an address may hold a secret"

    run(main())


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("120", 120.0), ("999999", 3600.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)],
)
def test_a_busy_receiver_can_ask_for_time(header, seconds):
    async def main():
        async with receiving(answer("429 Slow Down", f"retry-after: {header}")) as receiver:
            with pytest.raises(SendFailed) as failed:
                await HttpSender(LOOPBACK).send(a_delivery(Webhook(url=receiver.url)), 0.0)
        assert failed.value.retry_after == seconds

    run(main())


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0"]
)
def test_loopback_is_refused_however_it_is_spelled(host):
    async def main():
        async with receiving() as receiver:
            target = Webhook(url=f"http://{host}:{receiver.port}/")
            with pytest.raises(SendRefused, match="no public address"):
                await HttpSender(Policy(allows_http=True)).send(a_delivery(target), 0.0)
        assert receiver.connections == 0

    run(main())


def test_a_name_is_looked_up_once_and_the_checked_address_is_used():
    """The system does not know this name at all: a second look-up would fail."""

    async def main():
        resolve, asked = resolved_to("127.0.0.1")
        async with receiving() as receiver:
            target = Webhook(url=f"http://rebinding.invalid:{receiver.port}/x")
            await HttpSender(LOOPBACK, resolve=resolve).send(a_delivery(target), 0.0)

        assert asked == ["rebinding.invalid"]
        assert receiver.requests[0].headers["host"] == f"rebinding.invalid:{receiver.port}"

    run(main())


def test_a_name_with_one_bad_address_is_refused():
    async def main():
        resolve, _ = resolved_to("127.0.0.1", "169.254.169.254")
        async with receiving() as receiver:
            target = Webhook(url=f"http://mixed.invalid:{receiver.port}/x")
            with pytest.raises(SendRefused, match=r"169\.254\.169\.254"):
                await HttpSender(LOOPBACK, resolve=resolve).send(a_delivery(target), 0.0)
        assert receiver.connections == 0

    run(main())


def test_the_next_address_is_tried_when_one_cannot_be_reached():
    async def main():
        resolve, _ = resolved_to("127.0.0.2", "127.0.0.1")  # nobody listens on the first
        async with receiving() as receiver:
            target = Webhook(url=f"http://two.invalid:{receiver.port}/x")
            await HttpSender(LOOPBACK, resolve=resolve).send(a_delivery(target), 0.0)
        assert len(receiver.requests) == 1

    run(main())


def test_tls_checks_the_name_that_was_asked_for():
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("hooks.invalid").configure_cert(server)
    authority.configure_trust(client)

    async def main():
        resolve, _ = resolved_to("127.0.0.1")
        async with receiving(tls=server) as receiver:

            async def send(host: str, context: ssl.SSLContext | None) -> None:
                sender = HttpSender(LOOPBACK, resolve=resolve, context=context)
                await sender.send(a_delivery(Webhook(url=f"https://{host}:{receiver.port}/x")), 0.0)

            await send("hooks.invalid", client)
            with pytest.raises(SendFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await send("other.invalid", client)
            with pytest.raises(SendFailed, match="CERTIFICATE_VERIFY_FAILED"):
                await send("hooks.invalid", None)

        assert receiver.names == ["hooks.invalid", "other.invalid", "hooks.invalid"]
        assert len(receiver.requests) == 1

    run(main())


def test_what_cannot_be_reached_or_found_is_told():
    async def main():
        async with listening(lambda reader, writer: asyncio.sleep(0)) as port:
            pass
        with pytest.raises(SendFailed, match="cannot be reached"):
            await HttpSender(LOOPBACK).send(
                a_delivery(Webhook(url=f"http://127.0.0.1:{port}/")), 0.0
            )

        async def resolve(host: str, port: int):
            raise OSError(-2, "Name or service not known")

        with pytest.raises(SendFailed, match="was not found: Name or service not known"):
            await HttpSender(LOOPBACK, resolve=resolve).send(
                a_delivery(Webhook(url="https://nobody.invalid/")), 0.0
            )

    run(main())


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1 << 20)
    await asyncio.Event().wait()


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")


async def endless_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while not writer.is_closing():
        writer.write(b"x-more: " + b"x" * 8000 + b"\r\n")
        await writer.drain()


async def endless_informations(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while not writer.is_closing():
        writer.write(b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)
        await writer.drain()


async def no_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    await silent(reader, writer)


@pytest.mark.parametrize(
    ("behaviour", "limit", "says"),
    [
        (silent, 0.2, "did not answer within 0.2 s"),
        (hangs_up, LIMIT, "broke off"),
        (endless_headers, LIMIT, "broke off"),
        (endless_informations, 0.2, "did not answer within 0.2 s"),
        (no_http, 0.2, "did not answer within 0.2 s"),
    ],
)
def test_a_hostile_receiver_costs_a_bounded_time(behaviour, limit, says):
    async def main():
        async with listening(behaviour) as port:
            sender = HttpSender(LOOPBACK, limit_seconds=limit)
            with pytest.raises(SendFailed, match=says):
                await sender.send(a_delivery(Webhook(url=f"http://127.0.0.1:{port}/")), 0.0)

    run(main())


def test_an_endless_body_is_not_read():
    async def main():
        sent = 0

        async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            while not writer.is_closing():
                writer.write(b"ffff\r\n" + b"x" * 0xFFFF + b"\r\n")
                sent += 0xFFFF
                await writer.drain()

        async with listening(flood) as port:
            await HttpSender(LOOPBACK).send(
                a_delivery(Webhook(url=f"http://127.0.0.1:{port}/")), 0.0
            )
        assert sent < 64 << 20

    run(main())


def test_proxies_of_this_machine_are_not_used(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")

    async def main():
        async with receiving() as receiver:
            await HttpSender(LOOPBACK).send(a_delivery(Webhook(url=receiver.url)), 0.0)
        assert len(receiver.requests) == 1

    run(main())


def test_a_mail_is_not_sent_by_http():
    with pytest.raises(SendRefused):
        run(HttpSender(LOOPBACK).send(a_delivery(Mail(address="a@b.example")), 0.0))


def test_an_address_of_ipv6_is_used_as_it_is():
    async def main():
        received = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            assert (
                f"host: [::1]:{port}\r\n".encode() in (await reader.readuntil(b"\r\n\r\n")).lower()
            )
            received.set()
            writer.write(answer("200 OK"))
            await writer.drain()
            writer.close()

        try:
            server = await asyncio.start_server(serve, "::1", 0)
        except OSError as error:
            pytest.skip(f"this machine has no IPv6: {error}")
        port = server.sockets[0].getsockname()[1]
        try:
            sender = HttpSender(Policy(networks=(ip_network("::1/128"),)))
            await sender.send(a_delivery(Webhook(url=f"http://[::1]:{port}/")), 0.0)
        finally:
            server.close()
        assert received.is_set()

    run(main())
