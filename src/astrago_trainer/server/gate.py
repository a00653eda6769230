"""Who is calling: the one place where a request becomes an identity.

Without authentication everybody who reaches the port is the person at this machine. A web page open in that person's
browser reaches it too, so the request must be for this machine (DNS rebinding) and not from another site.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import urlsplit

from astrago_trainer.core.names import check_user_id
from astrago_trainer.server.problems import forbidden, unauthenticated
from astrago_trainer.server.settings import is_loopback
from astrago_trainer.server.user_names import hashed_name, user_name
from astrago_trainer.service.access import PREFIX, Access
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.job_tokens import PREFIX as JOB_PREFIX

MAX_TOKEN = 8192
"""Bytes; tokens of issuers that put groups into them have some thousands."""

Headers = Mapping[bytes, bytes]


class Gate(Protocol):
    """Names the caller of a request."""

    def check_origin(self, method: str, headers: Headers) -> None:
        """Raises ApiError for a request that another site's page may have sent."""
        ...

    async def identify(self, headers: Headers) -> Identity | None:
        """None where there is no token; raises ApiError for a bad one."""
        ...


class Verifier(Protocol):
    """Reads tokens of somebody else."""

    @property
    def url(self) -> str: ...

    async def subject_of(self, token: str) -> str | None:
        """Whom a good token names; None for a bad one."""
        ...


class Loopback:
    """No authentication: the person at this machine."""

    def __init__(self, host: str) -> None:
        self._identity = Identity(_login_name(), is_administrator=True)
        self._host = host.strip("[]").lower()

    def check_origin(self, method: str, headers: Headers) -> None:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_here(host):
            raise forbidden(
                f"this server answers to localhost alone, not to {host[:100]!r}; a page may be trying to reach it."
            )
        origin = headers.get(b"origin")
        if origin is not None and not _is_same(origin.decode("latin-1"), host):
            raise forbidden("requests from pages of other sites are refused.")
        site = headers.get(b"sec-fetch-site", b"none")
        if method not in ("GET", "HEAD") and site not in (b"none", b"same-origin"):
            raise forbidden("requests from pages of other sites are refused.")

    async def identify(self, headers: Headers) -> Identity | None:
        return self._identity

    def _is_here(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return is_loopback(name) or name == self._host


class Tokens:
    """Bearer tokens: ours, and where an issuer is named, its."""

    def __init__(
        self,
        access: Access,
        issuer: Verifier | None = None,
        job_of: Callable[[str], Identity | None] = lambda _: None,
    ) -> None:
        self._access = access
        self._issuer = issuer
        self._job_of = job_of

    def check_origin(self, method: str, headers: Headers) -> None:
        """A page cannot send a token that it does not have; there are no cookies."""

    async def identify(self, headers: Headers) -> Identity | None:
        value = headers.get(b"authorization")
        if value is None:
            return None
        scheme, _, token = value.decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            raise unauthenticated("only bearer tokens are known here: Authorization: Bearer …")
        identity = await self._owner(token.strip(" "))
        if identity is None:
            raise unauthenticated("the token is unknown, revoked or too old.")
        return identity

    async def _owner(self, token: str) -> Identity | None:
        if not token or len(token) > MAX_TOKEN:
            return None
        if token.startswith(JOB_PREFIX):
            return self._job_of(token)
        if token.startswith(PREFIX):
            return self._access.verify(token)
        if self._issuer is None:
            return None
        subject = await self._issuer.subject_of(token)
        if subject is None:
            return None
        # A person of the issuer who is no user here yet may sign up, and nothing else.
        url = self._issuer.url
        return await self._access.of_issuer(
            url, subject, user_name(subject), hashed_name(subject, url)
        )


def _is_same(origin: str, host: str) -> bool:
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place.lower() == host.lower()


def _login_name() -> str:
    """Of the person at this machine, where it can begin the names of jobs."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        return "local"
    return "local" if check_user_id(name) else name
