"""A kubelet for fake nodes that does one thing: it gives out logs. KWOK itself has none.

The log of a container is one line. That of a job whose name begins with `running` stays open, as of a training that
goes on; others are at their end.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from cluster.layout import HOST_IP, Layout

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
_LINE = b"2026-01-01T00:00:00.000000001Z epoch 1 loss 0.5\n"


class FakeKubelet:
    """At `port` on this machine's side of the cluster's link."""

    def __init__(self) -> None:
        self.port = 0
        self.requests = 0
        self.open = 0
        self.most = 0
        """That were open at once."""

    async def start(self, layout: Layout) -> asyncio.Server:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Any certificate does: this cluster's API server does not ask kubelets who they are.
        tls.load_cert_chain(layout.pki / "apiserver.crt", layout.pki / "apiserver.key")
        server = await asyncio.start_server(self._serve, HOST_IP, 0, ssl=tls, backlog=1024)
        self.port = server.sockets[0].getsockname()[1]
        return server

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while not reader.at_eof():
                await self._answer(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        writer.close()

    async def _answer(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.requests += 1
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            writer.write(_HEAD + f"{len(_LINE):x}\r\n".encode() + _LINE + b"\r\n")
            await writer.drain()
            pod = head.split(b" ")[1].split(b"/")[3]
            if pod.startswith(b"running") and b"follow=true" in head:
                await reader.read()  # until the other side has enough of it
            else:
                writer.write(b"0\r\n\r\n")
                await writer.drain()
        finally:
            self.open -= 1


@contextmanager
def fake_kubelet(layout: Layout) -> Iterator[FakeKubelet]:
    """In a thread, because who uses it waits for other things."""
    kubelet, loop = FakeKubelet(), asyncio.new_event_loop()
    server = loop.run_until_complete(kubelet.start(layout))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield kubelet
    finally:
        asyncio.run_coroutine_threadsafe(_end(server), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end(server: asyncio.Server) -> None:
    server.close()
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
