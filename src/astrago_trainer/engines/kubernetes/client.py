"""The only module that calls the API server; its refusals and troubles become ours here.

    EngineUnavailable      not reached, overloaded, a webhook down, credentials expired: later
    ├─ Expired             410: what was asked to be gone on from is no longer kept
    ├─ Forbidden           403 of the server's own role, not of what it asks for: until somebody binds it
    └─ Conflict            409: changed meanwhile, or not the one that was meant: look again
    EngineRejected
    └─ Refused             what it answered, with code and reason
       ├─ NotFound
       └─ AlreadyExists

Every write asks for strict field validation: a field that this release does not know is an error, not a silent loss.
Every call has a time limit.
"""

from __future__ import annotations

import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec

from astrago_trainer.engines.base import EngineRejected, EngineUnavailable
from astrago_trainer.engines.kubernetes.credentials import Access
from astrago_trainer.engines.kubernetes.handshakes import close_if_cut
from astrago_trainer.engines.kubernetes.resources import BY_KIND, Resource

Json = Mapping[str, Any]

CALL_SECONDS = 30.0
"""Of one call; a mutating call has an SLO of 1 s, a webhook may take 10."""
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
"""Server-side apply: made if it is not there, our fields set if it is; JSON is YAML too."""

_ROLE = re.compile(r'User "[^"]*" cannot [a-z]+ resource')
"""How RBAC says no; admission says why in other words."""
_LATER = frozenset({401, 408, 425, 429, 500, 502, 503, 504})


class Refused(EngineRejected):
    """The API server said no."""

    def __init__(self, message: str, *, code: int, reason: str) -> None:
        super().__init__(message)
        self.status = code
        self.reason = reason


class NotFound(Refused):
    """No such object."""


class AlreadyExists(Refused):
    """There is one of this name."""


class Expired(EngineUnavailable):
    """What was to be gone on from is no longer kept: list anew."""


class Conflict(EngineUnavailable):
    """It was changed meanwhile, or is not the one that was meant; a quota that others use up at once says so too."""


class Forbidden(EngineUnavailable):
    """Our role does not allow it. A binding counts a moment after it was made, so this is no final answer."""


class Busy(EngineUnavailable):
    """Asked to come later."""

    def __init__(self, message: str, after: float) -> None:
        super().__init__(message)
        self.after = after


class Client:
    """One API server, as one user."""

    def __init__(self, access: Access) -> None:
        transport = httpx.AsyncHTTPTransport(
            verify=access.tls if access.tls is not None else True,
            # One connection per watch and per followed container; the server has its own limits.
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            socket_options=_keepalive(),
            trust_env=False,
        )
        self._http = httpx.AsyncClient(
            base_url=access.server,
            auth=access.auth,
            headers=dict(access.headers),
            timeout=CALL_SECONDS,
            transport=transport,
            trust_env=False,
            event_hooks={"request": [close_if_cut]},
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def read(self, path: str, **query: str) -> bytes:
        return await self._ask("GET", path, query)

    async def find(self, resource: Resource, namespace: str, name: str) -> Json | None:
        try:
            found: Json = msgspec.json.decode(await self.read(resource.path(namespace, name)))
        except NotFound:
            return None
        return found

    async def list(self, resource: Resource, namespace: str, selector: str) -> list[Json]:
        """All at once: for the few objects of one job."""
        body = await self.read(resource.path(namespace), labelSelector=selector)
        found: list[Json] = msgspec.json.decode(body)["items"]
        return found

    async def create(self, manifest: Json, namespace: str) -> Json:
        path = BY_KIND[manifest["kind"]].path(namespace)
        return await self._write("POST", path, manifest)

    async def replace(self, manifest: Json, namespace: str) -> Json:
        path = BY_KIND[manifest["kind"]].path(namespace, manifest["metadata"]["name"])
        return await self._write("PUT", path, manifest)

    async def patch(
        self, resource: Resource, namespace: str, name: str, change: Json, kind: str = MERGE
    ) -> Json:
        return await self._write("PATCH", resource.path(namespace, name), change, kind)

    async def apply(self, manifest: Json, namespace: str) -> Json:
        """Makes it so, whatever is there; fields that are not named stay somebody else's."""
        path = BY_KIND[manifest["kind"]].path(namespace, manifest["metadata"]["name"])
        return await self._write("PATCH", path, manifest, APPLY, force="true")

    async def review(self, path: str, question: Json) -> Json:
        """Answers that are computed and never stored: who am I, may I."""
        return await self._write("POST", path, question)

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str,
        version: str = "",
        at_once: bool = False,
    ) -> None:
        """Deletes this very object; NotFound or Conflict when it is another one, or none.

        A pod goes `at_once` without its node having said that it ended.
        """
        expected = {"uid": uid, **({"resourceVersion": version} if version else {})}
        options: dict[str, Any] = {"propagationPolicy": "Background", "preconditions": expected}
        if at_once:
            options["gracePeriodSeconds"] = 0
        body = msgspec.json.encode(options)
        await self._ask("DELETE", resource.path(namespace, name), {}, body, "application/json")

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, silence: float | None
    ) -> AsyncIterator[httpx.Response]:
        """An answer that goes on. EngineUnavailable when nothing comes for `silence` seconds: the line may be dead."""
        limits = httpx.Timeout(CALL_SECONDS, read=silence)
        try:
            async with self._http.stream("GET", path, params=query, timeout=limits) as response:
                if response.status_code >= 400:
                    raise _problem(response, await response.aread())
                yield response
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise EngineUnavailable(f"{path} was cut off: {_words(error)}") from error

    async def _write(
        self, method: str, path: str, body: Json, content: str = "application/json", **more: str
    ) -> Json:
        query = {"fieldValidation": "Strict", "fieldManager": "astrago", **more}
        answer = await self._ask(method, path, query, msgspec.json.encode(body), content)
        written: Json = msgspec.json.decode(answer)
        return written

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: bytes | None = None,
        content: str | None = None,
    ) -> bytes:
        headers = {} if content is None else {"Content-Type": content}
        try:
            response = await self._http.request(
                method, path, params=query, content=body, headers=headers
            )
        except httpx.HTTPError as error:
            raise EngineUnavailable(
                f"the API server at {self._http.base_url} did not answer {method} {path}: {_words(error)}"
            ) from error
        if response.status_code >= 400:
            raise _problem(response, response.content)
        return response.content


class Status(msgspec.Struct):
    """How the API server says no, in answers and in watches."""

    message: str = ""
    reason: str = ""
    code: int = 0


def problem(status: Status, retry_after: str = "") -> EngineRejected | EngineUnavailable:
    """What a refusal means for the caller."""
    code, message = status.code, status.message or status.reason or f"HTTP {status.code}"
    if code == 410:
        return Expired(message)
    if code in _LATER:
        # A webhook that cannot be reached answers 500: it will be back, and then the same request is fine.
        after = float(retry_after) if retry_after.isdecimal() else 0.0
        return Busy(f"the API server asks to try again later: {message}", after)
    if code == 403 and _ROLE.search(message):
        return Forbidden(f"this server's role does not allow it; bind it: {message}")
    kind = Refused
    if code == 404:
        kind = NotFound
    elif code == 409 and status.reason == "AlreadyExists":
        kind = AlreadyExists
    elif code == 409:
        return Conflict(message)
    return kind(message, code=code, reason=status.reason)


def _problem(response: httpx.Response, body: bytes) -> EngineRejected | EngineUnavailable:
    try:
        status = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:  # a proxy in between, or a kubelet, which answers in plain words
        status = Status(body.decode(errors="replace").strip()[:500])
    status.code = response.status_code
    return problem(status, response.headers.get("Retry-After", ""))


def _keepalive() -> list[tuple[int, int, int]]:
    """The kernel asks a silent peer after half a minute, so that a follower of a quiet log notices a dead line."""
    found = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if (option := getattr(socket, name, None)) is not None:  # macOS lacks some
            found.append((socket.IPPROTO_TCP, option, value))
    return found


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
