"""Streams: server-sent events with a sign of life, that end when the server does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.server import rules
from astrago_trainer.server.context import Context
from astrago_trainer.server.edge import ABORT
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

    It ends when the caller may not read it any more.
    """
    request.scope["is_stream"] = True
    place = context.stream(caller.name)
    place.__enter__()  # here, so that a refusal is an answer; given back when the answer ends
    welcome = Welcome(request, context, caller)

    async def content() -> AsyncGenerator[bytes, None]:
        try:
            beat = _COMMENT if media_type == "text/event-stream" else b""
            async with aclosing(living(source, context.closing, beat, welcome.lasts)) as parts:
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


class Welcome:
    """Whether the caller of a long answer may still have it. Asked for each part of it."""

    def __init__(self, request: Request, context: Context, caller: Identity) -> None:
        self._request = request
        self._context = context
        self._caller = caller
        self._clock = asyncio.get_running_loop().time
        self._stamp = context.service.access.stamp
        self._checked = self._clock()

    async def lasts(self) -> bool:
        """Looks again after each change of users, roles or tokens, and else every few seconds: tokens grow too old."""
        stamp, now = self._context.service.access.stamp, self._clock()
        if stamp == self._stamp and now - self._checked < CHECK_SECONDS:
            return True
        self._stamp, self._checked = stamp, now
        scope = self._request.scope
        try:
            found = await self._context.gate.identify(dict(scope["headers"]))
            names = scope["path_params"]
            rule = rules.RULES[self._request.method, scope["route"].path]
            rules.check(rule, found, names.get("namespace"), names.get("name"))
        except AstragoError:
            return False
        return found is not None and found.name == self._caller.name


async def while_welcome(
    request: Request, context: Context, caller: Identity, parts: AsyncIterator[bytes]
) -> AsyncGenerator[bytes, None]:
    """The parts of an answer of known length. The connection is cut when the caller may not have the rest."""
    welcome = Welcome(request, context, caller)
    async for part in parts:
        if not await welcome.lasts():
            request.scope.get("extensions", {}).get(ABORT, lambda: None)()
            await asyncio.sleep(0)  # the server notices before the answer would end too short
            return
        yield part


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
    told = clock()
    try:
        while True:
            if part is None:
                part = asyncio.ensure_future(anext(source))
            await asyncio.wait(
                (part, end), timeout=CHECK_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
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
