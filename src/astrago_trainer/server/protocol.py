"""HTTP/1.1 as uvicorn speaks it, with what it leaves out: a limit on headers, and on how slowly they may come.

Without them a thousand clients that send a byte a minute hold a thousand connections for ever.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from astrago_trainer.server.edge import ABORT
from astrago_trainer.server.problems import ApiError, answer_of
from astrago_trainer.server.settings import ServerSettings

_REASONS = {408: b"Request Timeout", 431: b"Request Header Fields Too Large", 400: b"Bad Request"}


class BoundedProtocol(HttpToolsProtocol):
    """One connection. `bounded_by` makes the class for an installation."""

    bounds: ServerSettings

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._header_bytes = 0
        self._header_timer: asyncio.TimerHandle | None = None
        self._answered: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.bounds.max_connections:
            transport.abort()
            return
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
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
        is_between = self.cycle is None or self.cycle.response_complete
        if is_between:
            self._header_bytes += len(data)
            if self._header_timer is None:
                self._await_headers()
        super().data_received(data)
        if self._header_timer is not None and self._header_bytes > self.bounds.max_headers:
            self._refuse(431, "too-large", f"headers may have {self.bounds.max_headers} bytes.")

    def on_headers_complete(self) -> None:
        self._stop_timer()
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        self._header_bytes = 0
        if size > self.bounds.max_headers:
            self._refuse(431, "too-large", f"headers may have {self.bounds.max_headers} bytes.")
            return
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.transport.is_closing():
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
        """An answer without a request; the connection ends with it."""
        self._stop_timer()
        if self.transport.is_closing():
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
    return type("BoundedProtocol", (BoundedProtocol,), {"bounds": settings})
