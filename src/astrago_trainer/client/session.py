"""Calls and streams over the wire, without a loop: what `TrainerClient` and the command line stand on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from astrago_trainer.client import answers, wire
from astrago_trainer.client.calls import Call
from astrago_trainer.client.errors import Unavailable
from astrago_trainer.client.sse import Parser, ServerEvent

ANSWER_SECONDS = 60.0
STREAM_SECONDS = 45.0
"""The server says something every 15 s, so a stream that is silent for three times as long is dead."""
PATIENCE_SECONDS = 60.0
"""How long a stream tries to come back before it gives up: a server that is restarted needs a few."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class TimeOver(Exception):  # noqa: N818 - no error: what was waited for has not happened
    """The time that was given has passed."""


class Session:
    """A server and who asks. Holds no connection: it may be kept, and used by several threads."""

    def __init__(
        self, url: str, token: str = "", *, timeout_seconds: float = ANSWER_SECONDS
    ) -> None:
        self._parts = wire.parse_url(url)
        self.url = f"{self._parts.scheme}://{self._parts.netloc}{self._parts.path.rstrip('/')}"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout_seconds

    def call(self, call: Call) -> Any:
        """The JSON of the answer; raises ClientError."""
        try:
            answer = self._send(call, self._timeout)
            try:
                return answers.value_of(answer.status, answer.read(), self.url)
            finally:
                answer.close()
        except OSError as error:
            raise lost(self.url, call, error) from error

    def lines(self, call: Call) -> Iterator[bytes]:
        """The lines of an answer that may be long."""
        try:
            answer = self._send(call, self._timeout)
            try:
                if answer.status != 200:
                    raise answers.error_of(answer.status, answer.read(), self.url)
                rest = b""
                for block in answer.blocks():
                    *whole, rest = (rest + block).split(b"\n")
                    yield from whole
                if rest:
                    yield rest
            finally:
                answer.close()
        except OSError as error:
            raise lost(self.url, call, error) from error

    def events(self, call: Call, *, until: float | None = None) -> Iterator[ServerEvent]:
        """A stream that comes back after a lost connection, where it was. It never ends: leave it when you have enough.

        Raises ClientError when the server refuses, Unavailable when it stays away, and TimeOver when the steady
        clock has passed `until`.
        """
        parser = Parser()
        pause, silent_since = FIRST_PAUSE, time.monotonic()
        while True:
            try:
                answer = self._send(call, _left(until), last_id=parser.last_id)
                try:
                    if answer.status != 200:
                        raise answers.error_of(answer.status, answer.read(), self.url)
                    for block in answer.blocks():
                        pause, silent_since = FIRST_PAUSE, time.monotonic()
                        yield from parser.feed(block)
                        _left(until)
                    raise ConnectionResetError("the server ended the stream")
                finally:
                    answer.close()
            except (OSError, Unavailable) as error:
                _left(until)
                if time.monotonic() - silent_since > PATIENCE_SECONDS:
                    raise lost(self.url, call, error) from error
                parser.restart()
                time.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)

    def _send(self, call: Call, timeout: float, last_id: str = "") -> wire.Answer:
        headers = {**self._headers, **call.headers}
        if last_id:
            headers["Last-Event-ID"] = last_id
        body = None if call.body is None else json.dumps(call.body).encode()
        return wire.send(self._parts, call.method, call.path, headers, body, timeout=timeout)


def lost(url: str, call: Call, error: Exception) -> Unavailable:
    """A connection that broke, in words; whether it is safe to repeat depends on what was asked."""
    if isinstance(error, Unavailable):
        return error
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    after = (
        "Try again."
        if call.method == "GET"
        else "It may have been done: look before you repeat it."
    )
    return Unavailable(f"the answer of {url} was lost: {reason}. {after}")


def _left(until: float | None) -> float:
    """How long a stream may be silent; raises TimeOver when the time is over."""
    if until is None:
        return STREAM_SECONDS
    left = until - time.monotonic()
    if left <= 0:
        raise TimeOver
    return min(left, STREAM_SECONDS)
