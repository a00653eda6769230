"""Tokens of an OpenID Connect issuer: its keys are fetched when first needed, kept, and fetched again when it changes
them.

A token must be signed by the issuer with one of its public keys, for this installation, and not be too old. What it
says of groups or rights is not read: who may do what is decided here.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import httpx
import jwt

from astrago_trainer.server.settings import is_safe_url

ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""With public keys only: a key that everybody may read must not be taken for a shared secret."""
SKEW_SECONDS = 60
FETCH_SECONDS = 5.0
KEYS_SECONDS = 3600.0
"""After which the keys are asked for again, whether or not a new one was seen."""
PAUSE_SECONDS = 10.0
"""Between two fetches because of an unknown key: forged tokens must not make us call the issuer all day."""
_MOST_BYTES = 1 << 20
_MOST_KNOWN = 10_000
_MOST_SUBJECT = 255

_log = logging.getLogger(__name__)


class Issuer:
    """One issuer."""

    def __init__(
        self,
        url: str,
        audience: str,
        *,
        claim: str = "sub",
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._url = url.rstrip("/")
        self._issuer = url
        self._audience = audience
        self._claim = claim
        self._monotonic = monotonic
        self._wall = wall
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching = asyncio.Lock()
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    @property
    def url(self) -> str:
        return self._issuer

    async def subject_of(self, token: str) -> str | None:
        """Whom a good token names; None for a bad one, or when the issuer's keys cannot be had."""
        mark = hashlib.sha256(token.encode("utf-8", "replace")).digest()
        known = self._known.get(mark)
        if known is not None:
            if self._wall() <= known[1] + SKEW_SECONDS:
                return known[0]
            del self._known[mark]
            return None
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            key = await self._key(kid) if isinstance(kid, str) else None
            if key is None:
                return None
            claims = self._claims(token, key)
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            _log.info("a token of the issuer is refused: %s", type(error).__name__)
            return None
        return self._remember(mark, claims)

    def _claims(self, token: str, key: jwt.PyJWK) -> dict[str, Any]:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(ALGORITHMS),
            audience=self._audience,
            issuer=self._issuer,
            leeway=SKEW_SECONDS,
            options={"require": ["exp", "iat", "iss", "aud"]},
        )
        return claims

    def _remember(self, mark: bytes, claims: dict[str, Any]) -> str | None:
        name = claims.get(self._claim)
        if (
            not isinstance(name, str)
            or not 0 < len(name) <= _MOST_SUBJECT
            or not name.isprintable()
        ):
            _log.warning("a token of the issuer has no name in its claim %s", self._claim)
            return None
        self._known[mark] = (name, float(claims["exp"]))
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return name

    async def _key(self, kid: str) -> jwt.PyJWK | None:
        if self._must_ask(kid):
            async with self._fetching:  # those who come meanwhile wait for the same answer
                if self._must_ask(kid) and self._monotonic() - self._tried_at >= PAUSE_SECONDS:
                    self._tried_at = self._monotonic()
                    await self._fetch()
        return self._keys.get(kid)

    def _must_ask(self, kid: str) -> bool:
        return kid not in self._keys or self._monotonic() - self._fetched_at > KEYS_SECONDS

    async def _fetch(self) -> None:
        """Keys that are known stay when the issuer does not answer."""
        try:
            async with (
                asyncio.timeout(FETCH_SECONDS),
                httpx.AsyncClient(trust_env=False, follow_redirects=False) as client,
            ):
                about = await _get(client, f"{self._url}/.well-known/openid-configuration")
                if about.get("issuer") != self._issuer:
                    raise ValueError(f"it calls itself {str(about.get('issuer'))[:200]!r}")
                place = about.get("jwks_uri")
                if not isinstance(place, str) or not is_safe_url(place):
                    raise ValueError("its keys are not at an https address")
                found = await _get(client, place)
            self._keys = _usable(found)
            self._fetched_at = self._monotonic()
            # Tokens signed by a key that the issuer took back must be looked at again.
            self._known.clear()
        except (httpx.HTTPError, TimeoutError, ValueError, jwt.PyJWTError) as error:
            _log.warning("the keys of the issuer %s cannot be read: %s", self._url, error)


async def _get(client: httpx.AsyncClient, url: str) -> dict[str, Any]:
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as answer:
        answer.raise_for_status()
        data = b""
        async for part in answer.aiter_raw():
            data += part
            if len(data) > _MOST_BYTES:
                raise ValueError("its answer is too large")
    from pydantic_core import from_json

    found = from_json(data)
    if not isinstance(found, dict):
        raise ValueError("its answer is no JSON object")
    return found


def _usable(found: dict[str, Any]) -> dict[str, jwt.PyJWK]:
    """Keys for signatures by their ids; what we cannot use is left out."""
    keys = {}
    for each in found.get("keys") or ():
        if not isinstance(each, dict) or each.get("use", "sig") != "sig":
            continue
        if each.get("kty") not in ("RSA", "EC", "OKP") or not isinstance(each.get("kid"), str):
            continue
        try:
            keys[each["kid"]] = jwt.PyJWK(each)
        except jwt.PyJWTError:
            continue
    return keys
