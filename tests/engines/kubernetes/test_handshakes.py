"""A connection that is given up is closed, not left to the garbage collector."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ssl

import pytest

from astrago_trainer.engines.kubernetes.client import Client
from astrago_trainer.engines.kubernetes.credentials import Access, Auth

PATIENCE = 30


@pytest.fixture
def no_collector():
    gc.disable()
    yield
    gc.enable()


def test_a_handshake_that_is_cancelled_closes_its_connection(no_collector):
    async def scenario() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def never_answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            begun.set()
            with contextlib.suppress(ConnectionError):
                await reader.read()  # what is left of the greeting, and the end
            ended.set()
            writer.close()

        server = await asyncio.start_server(never_answers, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = Client(
            Access(f"https://127.0.0.1:{port}", ssl.create_default_context(), Auth(), {})
        )
        async with server, asyncio.timeout(PATIENCE):
            asking = asyncio.create_task(client.read("/version"))
            await begun.wait()
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await ended.wait()
            await client.close()

    asyncio.run(scenario())
