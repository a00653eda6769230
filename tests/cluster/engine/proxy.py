"""A proxy in the test's own process between the engine and the API server, which makes trouble when told to."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
from cluster.layout import API_PORT, NODE_IP

from astrago_trainer.engines.kubernetes.credentials import Access, Auth
from astrago_trainer.engines.kubernetes.engine import KubernetesEngine
from astrago_trainer.engines.kubernetes.handshakes import close_if_cut

GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}


@dataclass
class Trouble:
    """What goes wrong. Nothing, unless told."""

    cut_after: float | None = None
    """Seconds after which every watch is cut off, in the middle."""
    expire_watches: int = 0
    """So many times each watch is told, by an event in it, that its place is no longer kept."""
    refuse_watches: int = 0
    """So many times each is answered so at once (410), before that."""
    forgotten: Counter[str] = field(default_factory=Counter)
    """How often watches were told so, by what they watch."""
    lose_answer: Callable[[str, str], bool] = lambda _method, _path: False
    """Whether the request is done and its answer lost."""
    refuse: Callable[[str, str], int | None] = lambda _method, _path: None
    """The code to answer with instead of asking."""
    hang: Callable[[str, str], bool] = lambda _method, _path: False
    """Whether the request is taken and never answered."""
    hold: Callable[[str], bool] = lambda _path: False
    """Whether what this watch says stays on its way for now."""
    is_down: bool = False
    """Nobody is there: open connections are cut, new ones at once."""
    asked: list[str] = field(default_factory=list)
    """Paths of all requests that are neither a watch nor a log: those go on by themselves."""


@asynccontextmanager
async def proxy(access: Access, trouble: Trouble) -> AsyncIterator[Access]:
    """The way to the API server through the proxy; plain HTTP, on this machine only."""
    async with httpx.AsyncClient(
        base_url=f"https://{NODE_IP}:{API_PORT}",
        verify=access.tls or True,
        timeout=None,
        event_hooks={"request": [close_if_cut]},
    ) as upstream:
        busy: set[asyncio.Task[None]] = set()
        open_: set[asyncio.StreamWriter] = set()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            open_.add(writer)
            try:
                if not trouble.is_down:
                    await _answer(upstream, trouble, reader, writer)
            except (ConnectionError, httpx.HTTPError, asyncio.IncompleteReadError):
                pass
            finally:
                open_.discard(writer)
                writer.close()

        async def cut() -> None:
            while True:
                await asyncio.sleep(0.05)
                for writer in open_ if trouble.is_down else ():
                    writer.transport.abort()

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(serve(reader, writer))
            busy.add(task)
            task.add_done_callback(busy.discard)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        busy.add(asyncio.create_task(cut()))
        try:
            yield Access(f"http://127.0.0.1:{port}", None, Auth(), {})
        finally:
            server.close()
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)


@asynccontextmanager
async def engine_behind(
    trouble: Trouble, access: Access, namespace: str, data: Path
) -> AsyncIterator[KubernetesEngine]:
    """An engine whose way to the API server is as bad as `trouble` says."""
    async with proxy(access, trouble) as way:
        engine = KubernetesEngine(data, access=way, namespaces=[namespace])
        try:
            yield engine
        finally:
            await engine.close()


async def _answer(
    upstream: httpx.AsyncClient,
    trouble: Trouble,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    method, target, _ = head.split("\r\n", 1)[0].split(" ")
    headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
    body = await reader.readexactly(int(headers.get("Content-Length", 0)))
    path = urlsplit(target).path
    is_watch = "watch=true" in target
    if not is_watch and not path.endswith("/log"):
        trouble.asked.append(path)
    if trouble.hang(method, path):
        await reader.read()  # until the client has had enough
        return None
    code = trouble.refuse(method, path)
    if code is not None:
        return _send(writer, code, json.dumps({"kind": "Status", "code": code}).encode())
    if is_watch and (answer := _forgotten(trouble, target)) is not None:
        return _send(writer, *answer)
    kept = {key: headers[key] for key in ("Content-Type",) if key in headers}
    async with upstream.stream(method, target, content=body, headers=kept) as response:
        if trouble.lose_answer(method, path):
            await response.aread()
            return None
        writer.write(f"HTTP/1.1 {response.status_code} X\r\nConnection: close\r\n\r\n".encode())
        try:
            async with asyncio.timeout(trouble.cut_after if is_watch else None):
                async for chunk in response.aiter_bytes():
                    if trouble.is_down:  # from that very moment nothing comes through
                        writer.transport.abort()
                        return None
                    while is_watch and trouble.hold(path):
                        await asyncio.sleep(0.01)
                    writer.write(chunk)
                    await writer.drain()
        except TimeoutError:
            writer.transport.abort()
    return None


def _forgotten(trouble: Trouble, target: str) -> tuple[int, bytes] | None:
    """What a watch is told instead of an answer; None when it has been told often enough."""
    parts = urlsplit(target)
    selector = parse_qs(parts.query).get("labelSelector", [""])[0]
    watched = f"{parts.path.rpartition('/')[2]} {selector}"
    before = trouble.forgotten[watched]
    if before >= trouble.refuse_watches + trouble.expire_watches:
        return None
    trouble.forgotten[watched] += 1
    if before < trouble.refuse_watches:
        return 410, json.dumps(GONE).encode()
    return 200, json.dumps({"type": "ERROR", "object": GONE}).encode() + b"\n"


def _send(writer: asyncio.StreamWriter, code: int, body: bytes) -> None:
    writer.write(
        f"HTTP/1.1 {code} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        + body
    )
