"""HTTP/1.1 as uvicorn speaks it, with what it leaves out: a limit on headers, and on how slowly they may come.

Without them a thousand clients that send a byte a minute hold a thousand connections for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from astrago_trainer.server.connections import Connections
from astrago_trainer.server.edge import ABORT, PLACE
from astrago_trainer.server.problems import ApiError, answer_of
from astrago_trainer.server.settings import ServerSettings

MOST_HEADERS = 200
_REASONS = {408: b"Request Timeout", 431: b"Request Header Fields Too Large", 400: b"Bad Request"}


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `bounded_by` makes the class for an installation."""

    bounds: ServerSettings
    all: Connections

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_bytes = 0
        self._has_moved = False
        self._header_timer: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None
        self._unanswered = 0
        """Complete requests without a complete answer; -1 while the rest of an answered request comes."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if not self.all.enter(self, self.client[0] if self.client else ""):
            transport.abort()
            return
        self._await_headers()

    def cut(self) -> None:
        """Others need the place."""
        self.transport.abort()

    def know(self) -> None:
        """The caller has sent a good token."""
        self.all.know(self)

    @property
    def is_scarce(self) -> bool:
        """Whether the places that are left are kept for probes and callers with a token."""
        return self.all.is_scarce

    def connection_lost(self, exc: Exception | None) -> None:
        self.all.leave(self)
        self._stop_timer()
        # uvicorn tells the newest request alone; one that is answered before it would write to a closed connection.
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        if not self._is_answering and self._header_timer is None:
            self._await_headers()
        self._has_moved = False
        super().data_received(data)
        # Bytes of headers and trailers, which are kept until they end, also behind an answer that is being sent.
        self._head_bytes = 0 if self._has_moved else self._head_bytes + len(data)
        if self._head_bytes > self.bounds.max_headers:
            self._refuse_headers()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse_headers(self) -> None:
        self._refuse(431, "too-large", f"headers may have {self.bounds.max_headers} bytes.")

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self.headers) < MOST_HEADERS:
            super().on_header(name, value)
        else:  # a short one takes forty times its bytes in memory
            detail = f"a request may have {MOST_HEADERS} headers and trailers."
            self._refuse(431, "too-large", detail)

    def on_headers_complete(self) -> None:
        self._has_moved = True
        self._stop_timer()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.bounds.max_headers:
            self._refuse_headers()
        if self.transport.is_closing():
            return
        self.scope["extensions"] = {ABORT: self.transport.abort, PLACE: self}  # type: ignore[dict-item]
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        self._unanswered -= 1
        super().on_response_complete()
        if self._unanswered <= 0:
            self.all.rest(self)

    def on_body(self, body: bytes) -> None:
        self._has_moved = True
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_moved = True
        if not self.transport.is_closing():
            # Not before: a client that sends half a body and waits must not hold its place against others.
            self._unanswered += 1
            if self._unanswered > 0:
                self.all.work(self)
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "bad-request", "this is no HTTP request that can be read.")

    def _await_headers(self) -> None:
        self._header_timer = self.loop.call_later(self.bounds.header_seconds, self._too_slow)

    def _too_slow(self) -> None:
        seconds = self.bounds.header_seconds
        self._refuse(408, "too-slow", f"the headers did not come within {seconds:g} s.")

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _refuse(self, status: int, code: str, detail: str) -> None:
        """An answer without a request; the connection ends with it, at once while an earlier answer is being sent."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        begun = self._answered
        if begun is not None and begun.response_started and not begun.response_complete:
            self.transport.abort()
            return
        answer = answer_of(ApiError(status, code, detail), path="", request_id="")
        head = (
            b"HTTP/1.1 %d %s\r\ncontent-type: %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            % (
                status,
                _REASONS[status],
                answer.media_type.encode(),
                len(answer.body),
            )
        )
        self.transport.write(head + answer.body)
        self.transport.close()


def bounded_by(settings: ServerSettings) -> type[BoundedProtocol]:
    own = {"bounds": settings, "all": Connections(settings.max_connections)}
    return type("BoundedProtocol", (BoundedProtocol,), own)
