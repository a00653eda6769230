"""The outermost layer: every request passes here, and every answer leaves here.

It gives the request an id, finds out who is calling, answers the frequent reads, bounds what a client may send and how
slowly it may read, turns what goes wrong into an answer, and counts.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from astrago_trainer.server import reads
from astrago_trainer.server.context import Context
from astrago_trainer.server.problems import Answer, ApiError, answer_of
from astrago_trainer.service.identity import Identity

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

ABORT = "astrago.abort"
"""In `scope["extensions"]`: cuts the connection; `protocol` puts it there."""
PLACE = "astrago.place"
"""There, too: the connection's place among all of them, a `Place`."""
PROBES = ("/healthz", "/readyz")
SLOW_SECONDS = 1.0
"""A read that took longer is worth a line of the log."""

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_COMMON: list[tuple[bytes, bytes]] = [
    (b"cache-control", b"private, no-cache"),
    (b"x-content-type-options", b"nosniff"),
]
_JSON: list[tuple[bytes, bytes]] = [(b"content-type", b"application/json"), *_COMMON]

_log = logging.getLogger("astrago_trainer.server.requests")


class Edge:
    """An ASGI application around another."""

    def __init__(self, app: App, context: Context) -> None:
        self._app = app
        self._context = context
        # Counted from somewhere: unique is enough, and asking the kernel for each costs more than a status.
        self._ids = itertools.count(secrets.randbits(62))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # no websockets; and the life of the server is not ASGI's here
            return
        begin = time.perf_counter()
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        request_id = given if _REQUEST_ID.fullmatch(given) else b"%016x" % next(self._ids)
        method, path = scope["method"], scope["path"]
        try:
            _check_single(scope, headers)
            self._context.gate.check_origin(method, headers)
            scope["identity"] = identity = await self._context.gate.identify(headers)
            _take_place(scope, identity)
            if self._context.service.has_others:
                await self._context.service.keep_up()
            if method == "GET":
                fast = reads.answer(self._context.service, identity, path, scope["query_string"])
                if fast is not None:
                    status = await _send_read(fast.read, headers, request_id, send)
                    seconds = time.perf_counter() - begin
                    self._context.counters.note("GET", fast.route, status, seconds)
                    return
        except Exception as error:
            answer = answer_of(error, path=path, request_id=request_id.decode())
            if answer.status == 500:
                _log.exception("a request broke", extra={"request_id": request_id.decode()})
            is_unread = _has_body(headers)
            await _send_answer(answer, request_id, send, is_last=is_unread)
            self._note(scope, request_id, answer.status, begin)
            return
        scope["request_id"] = request_id.decode()
        await self._pass_on(scope, receive, send, headers, request_id, begin)

    async def _pass_on(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: dict[bytes, bytes],
        request_id: bytes,
        begin: float,
    ) -> None:
        settings = self._context.settings
        incoming = _Incoming(receive, headers, settings.max_body, settings.body_seconds)
        outgoing = _Outgoing(send, request_id, settings.send_seconds, incoming)
        try:
            await self._app(scope, incoming, outgoing)
        except _SlowReader:
            _log.info("a client that does not read is cut off", extra=_keys(scope, request_id))
            scope.get("extensions", {}).get(ABORT, _nothing)()
        except Exception as error:
            # What routes raise has been answered within; this is what broke in the answering.
            _log.exception("a request broke", extra=_keys(scope, request_id))
            if not outgoing.status:
                answer = answer_of(error, path=scope["path"], request_id=request_id.decode())
                await _send_answer(answer, request_id, send)
                outgoing.status = answer.status
            else:
                scope.get("extensions", {}).get(ABORT, _nothing)()
        self._note(scope, request_id, outgoing.status, begin)

    def _note(self, scope: Scope, request_id: bytes, status: int, begin: float) -> None:
        route = getattr(scope.get("route"), "path", "(none)")
        seconds = time.perf_counter() - begin
        self._context.counters.note(_method(scope["method"]), route, status, seconds)
        is_read = scope["method"] in ("GET", "HEAD")
        level = logging.INFO
        if is_read and status < 400 and (seconds < SLOW_SECONDS or scope.get("is_stream")):
            level = logging.DEBUG
        if _log.isEnabledFor(level):
            extra = {
                **_keys(scope, request_id),
                "status": status,
                "milliseconds": round(seconds * 1000, 1),
            }
            _log.log(level, "%s %s %d", _method(scope["method"]), route, status, extra=extra)


class Place(Protocol):
    """Of a connection."""

    @property
    def is_scarce(self) -> bool: ...

    def know(self) -> None: ...


def _take_place(scope: Scope, identity: Identity | None) -> None:
    """Raises ApiError for an anonymous request when the places that are left are not for those."""
    place: Place | None = scope.get("extensions", {}).get(PLACE)
    if place is None:  # in tests without a connection
        return
    if identity is not None:
        place.know()
    elif place.is_scarce and scope["path"] not in PROBES:
        detail = "the server has too many connections now, and serves callers with a token first. Try again in 5 s."
        raise ApiError(
            503, "unavailable", detail, headers={"retry-after": "5", "connection": "close"}
        )


class _SlowReader(Exception):  # noqa: N818 - not an error of ours
    """The client leaves its answer unread."""


class _Outgoing:
    """Adds what every answer has, and waits for no client for ever."""

    def __init__(self, send: Send, request_id: bytes, seconds: float, incoming: _Incoming) -> None:
        self._send = send
        self._request_id = request_id
        self._seconds = seconds
        self._incoming = incoming
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            held = {name for name, _ in message["headers"]}
            message["headers"] = [
                *message["headers"],
                *(pair for pair in _COMMON if pair[0] not in held),
                (b"x-request-id", self._request_id),
            ]
            if not self._incoming.is_whole and b"connection" not in held:
                # The rest of the body must not be taken for the next request.
                message["headers"].append((b"connection", b"close"))
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(message)
        except TimeoutError:
            raise _SlowReader from None


class _Incoming:
    """The body of a request, no longer and no slower than allowed."""

    def __init__(
        self, receive: Receive, headers: dict[bytes, bytes], most: int, seconds: float
    ) -> None:
        self._receive = receive
        self._most = most
        self._seconds = seconds
        self._deadline: float | None = None
        self._size = 0
        self.is_whole = not _has_body(headers)
        length = headers.get(b"content-length", b"0")
        self._is_refused = length.isdigit() and (len(length) > 12 or int(length) > most)

    async def __call__(self) -> Message:
        if (
            self._deadline is not None and self.is_whole
        ):  # only the end of the connection can follow
            return await self._receive()
        if self._is_refused:
            raise self._too_large()
        now = asyncio.get_running_loop().time()
        if self._deadline is None:
            self._deadline = now + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            detail = f"the body did not come within {self._seconds:g} s."
            raise ApiError(408, "too-slow", detail, headers={"connection": "close"}) from None
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self.is_whole = not message.get("more_body", False)
            if self._size > self._most:
                raise self._too_large()
        return message

    def _too_large(self) -> ApiError:
        return ApiError(
            413,
            "too-large",
            f"a body may have at most {self._most} bytes. Put large code into git or a volume.",
            headers={"connection": "close"},
        )


async def _send_read(
    read: reads.Read, headers: dict[bytes, bytes], request_id: bytes, send: Send
) -> int:
    etag = read.etag.encode()
    known = headers.get(b"if-none-match")
    if known is not None and _has(known, etag):
        held = [(b"etag", etag), (b"x-request-id", request_id), *_COMMON]
        await send({"type": "http.response.start", "status": 304, "headers": held})
        await send({"type": "http.response.body", "body": b""})
        return 304
    length = str(len(read.body)).encode()
    held = [(b"content-length", length), (b"etag", etag), (b"x-request-id", request_id), *_JSON]
    await send({"type": "http.response.start", "status": 200, "headers": held})
    await send({"type": "http.response.body", "body": read.body})
    return 200


def _has(known: bytes, etag: bytes) -> bool:
    """If-None-Match: one, several, weak ones, or `*`."""
    return any(each.strip().removeprefix(b"W/") in (etag, b"*") for each in known.split(b","))


_SINGLE = (b"host", b"authorization")
"""Headers that decide whose request this is: with two of them, a proxy and this server may read different ones."""


def _check_single(scope: Scope, headers: dict[bytes, bytes]) -> None:
    """Raises ApiError (400) for a request without Host (RFC 9112, 3.2), or with one of these headers twice."""
    if b"host" not in headers and scope.get("http_version") == "1.1":
        raise _bad_header("the header Host is missing; HTTP/1.1 requires it. Send it once.")
    if len(headers) == len(scope["headers"]):
        return
    names = [name for name, _ in scope["headers"]]
    for name in _SINGLE:
        if names.count(name) > 1:
            shown = name.decode().capitalize()
            raise _bad_header(
                f"the header {shown} must be sent once; found it {names.count(name)} times."
            )


def _bad_header(detail: str) -> ApiError:
    return ApiError(400, "bad-request", detail, headers={"connection": "close"})


def _has_body(headers: dict[bytes, bytes]) -> bool:
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


async def _send_answer(
    answer: Answer, request_id: bytes, send: Send, *, is_last: bool = False
) -> None:
    headers = [
        (b"content-type", answer.media_type.encode()),
        (b"content-length", str(len(answer.body)).encode()),
        (b"x-request-id", request_id),
        *_COMMON,
        *((name.encode(), value.encode()) for name, value in answer.headers.items()),
    ]
    if is_last:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def _keys(scope: Scope, request_id: bytes) -> dict[str, Any]:
    """What a line of the log says of a request: never headers or bodies."""
    identity = scope.get("identity")
    names = scope.get("path_params") or {}
    return {
        "request_id": request_id.decode(),
        "user": None if identity is None else identity.name,
        "tenant": names.get("namespace"),
        "job": names.get("name") or names.get("trainjob_name"),
    }


def _method(method: str) -> str:
    """One of the usual words: it becomes a label, and anybody may send any."""
    return (
        method
        if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
        else "OTHER"
    )


def _nothing() -> None:
    """In tests without a connection there is none to cut."""
