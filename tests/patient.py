"""Requests that wait long for their answer: a machine that does other things too is no fault of the server."""

from __future__ import annotations

from functools import partial

import httpx

SECONDS = 120.0
"""Only a failing test takes them; httpx itself would wait for 5."""

get = partial(httpx.get, timeout=SECONDS)
post = partial(httpx.post, timeout=SECONDS)
put = partial(httpx.put, timeout=SECONDS)
delete = partial(httpx.delete, timeout=SECONDS)
stream = partial(httpx.stream, timeout=SECONDS)
