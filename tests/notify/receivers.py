"""Real servers on loopback that receive what is sent, politely or not."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from astrago_trainer.notify.addresses import Policy
from astrago_trainer.notify.notices import Chat, Delivery, Mail, Notice, Webhook, deliveries

LOOPBACK = Policy(networks=(ipaddress.ip_network("127.0.0.0/8"),))
LIMIT = 20.0
"""Seconds after which a test has failed; none waits that long."""

Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def a_notice(**changes) -> Notice:
    fields = {
        "kind": "failed",
        "namespace": "team-a",
        "job": "mnist",
        "uid": "u-1",
        "time": 1_800_000_000.0,
        "reason": "BackoffLimitExceeded",
        "message": "rank 1 exited with 1",
        "attempt": 1,
        "max_restarts": 3,
        "duration_seconds": 754.0,
    }
    return Notice(**{**fields, **changes})


def a_delivery(target: Webhook | Chat | Mail, now: float = 0.0, **changes) -> Delivery:
    return deliveries(a_notice(**changes), [target], now)[0].claimed()


def run(main: Awaitable[None]) -> None:
    asyncio.run(asyncio.wait_for(main, LIMIT))


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """An HTTP server; `answers` are given in turn, the last one for ever."""

    answers: list[bytes]
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    names: list[str | None] = field(default_factory=list)
    """What TLS clients asked for."""
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?token=t"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head[1:-2]}
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests.append(Request(head[0], headers, body))
        writer.write(self.answers[0] if len(self.answers) == 1 else self.answers.pop(0))
        await writer.drain()


def answer(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "content-length: 0", *headers, "", ""]).encode()


@asynccontextmanager
async def listening(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server with this behaviour; gives its port, and ends its conversations when the test is done."""
    tasks: set[asyncio.Task[None]] = set()
    transports: list[asyncio.WriteTransport] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        transports.append(writer.transport)
        try:
            await behaviour(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for transport in transports:  # what a client has not read must not keep it open
            transport.abort()
        await asyncio.sleep(0)


@asynccontextmanager
async def receiving(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    receiver = Receiver(list(answers) or [answer("204 No Content")])
    if tls is not None:
        tls.sni_callback = lambda _socket, name, _context: receiver.names.append(name)
    async with listening(receiver.serve, tls) as port:
        receiver.port = port
        yield receiver
