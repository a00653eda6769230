"""Streams: server-sent events with a sign of life, that end when the server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from astrago_trainer.server.context import Context
from astrago_trainer.server.problems import ApiError
from astrago_trainer.service.identity import Identity

HEARTBEAT_SECONDS = 15.0
CHECK_SECONDS = 3.0
"""A token that is revoked is worth nothing 5 s later, streams included."""
_COMMENT = b": still here\n\n"


def event(data: bytes, *, name: str = "", id_: str = "") -> bytes:
    """One event; the data has no line breaks, because it is JSON."""
    head = f"event: {name}\n" if name else ""
    head += f"id: {id_}\n" if id_ else ""
    return head.encode() + b"data: " + data + b"\n\n"


def streamed(
    request: Request,
    context: Context,
    caller: Identity,
    source: AsyncGenerator[bytes, None],
    media_type: str,
) -> StreamingResponse:
    """An answer that goes on as long as its source, its client and the server do. Takes a place among the streams.

    It ends when the caller's token or rights change: who still may comes back, and is asked for them like anybody.
    """
    request.scope["is_stream"] = True
    place = context.stream(caller.name)
    place.__enter__()  # here, so that a refusal is an answer; given back when the answer ends

    async def is_welcome() -> bool:
        try:
            now = await context.gate.identify(dict(request.scope["headers"]))
        except ApiError:
            return False
        return now is not None and _rights(now) == _rights(caller)

    async def content() -> AsyncGenerator[bytes, None]:
        try:
            beat = _COMMENT if media_type == "text/event-stream" else b""
            async with aclosing(living(source, context.closing, beat, is_welcome)) as parts:
                async for part in parts:
                    yield part
        finally:
            place.__exit__(None, None, None)

    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return _Streamed(content(), media_type=media_type, headers=headers)


class _Streamed(StreamingResponse):
    """Closes its content whatever happens: a client that goes must give its place back at once."""

    def __init__(self, content: AsyncGenerator[bytes, None], **fields: Any) -> None:
        super().__init__(content, **fields)
        self._content = content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with suppress(RuntimeError):  # it is closing itself
                await self._content.aclose()


def _rights(identity: Identity) -> tuple[object, ...]:
    return identity.name, identity.roles, identity.is_administrator, identity.backend, identity.job


async def living(
    source: AsyncGenerator[bytes, None],
    closing: asyncio.Event,
    beat: bytes,
    is_welcome: Callable[[], Awaitable[bool]],
) -> AsyncGenerator[bytes, None]:
    """The parts of a source; a sign of life when it is quiet; its end when the server closes or the client must go."""
    end = asyncio.ensure_future(closing.wait())
    part: asyncio.Future[bytes] | None = None
    clock = asyncio.get_running_loop().time
    checked = told = clock()
    try:
        while True:
            if part is None:
                part = asyncio.ensure_future(anext(source))
            await asyncio.wait(
                (part, end), timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if clock() - checked >= CHECK_SECONDS:
                checked = clock()
                if not await is_welcome():
                    return
            if part.done():
                try:
                    found = part.result()
                except StopAsyncIteration:
                    return
                part, told = None, clock()
                yield found
            elif end.done():
                return
            elif beat and clock() - told >= HEARTBEAT_SECONDS:
                told = clock()
                yield beat
    finally:
        end.cancel()
        if part is not None:
            part.cancel()
            with suppress(asyncio.CancelledError, StopAsyncIteration):
                await part
        await source.aclose()
