"""Connections that are given up while they shake hands are closed.

httpcore closes the connection of a handshake that fails, but not of one that is cancelled: it would stay open, at both
ends, until the garbage collector finds it. Watches are cancelled at any moment, so that ours are closed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx


async def close_if_cut(request: httpx.Request) -> None:
    """An event hook of a client, for each request that it sends."""
    request.extensions["trace"] = _Handshake()


class _Handshake:
    """What httpcore tells of one request."""

    def __init__(self) -> None:
        self._connection: Any = None

    async def __call__(self, event: str, told: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            self._connection = told["return_value"]
        elif event == "connection.start_tls.failed":
            await self._connection.aclose()
