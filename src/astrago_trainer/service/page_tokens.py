"""Tokens of pages: where a list goes on, for the same list alone, and without anything to learn from them.

The place is a job's number, which counts the jobs of all tenants. So it is encrypted, and sealed together with the
namespace and the filters, with a key of the installation: each of its servers can read the tokens of the others.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from astrago_trainer.core.errors import InvalidRequest, Problem
from astrago_trainer.service.installation_key import InstallationKey

_SEAL_BYTES = 12
_NUMBER_BYTES = 8


class PageTokens:
    """Makes them and reads them."""

    def __init__(self, key: InstallationKey | None = None) -> None:
        """Without a key the tokens are of this object alone."""
        self._installation = key
        self._key = None if key is not None else secrets.token_bytes(32)

    def token(self, scope: Sequence[Any], number: int) -> str:
        """The same every time; `scope` is what was asked for, see `scope_of`."""
        plain = number.to_bytes(_NUMBER_BYTES)
        seal = self._seal(scope, plain)
        return _text(seal + self._mixed(seal, plain))

    def number(self, scope: Sequence[Any], token: str) -> int:
        """Raises InvalidRequest for a token that is damaged, or of another list."""
        try:
            raw = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise _refusal() from None
        seal, hidden = raw[:_SEAL_BYTES], raw[_SEAL_BYTES:]
        # Text that is written in another way than ours is no token of ours, whatever it decodes to.
        if len(hidden) != _NUMBER_BYTES or _text(raw) != token:
            raise _refusal()
        plain = self._mixed(seal, hidden)
        if not hmac.compare_digest(seal, self._seal(scope, plain)):
            raise _refusal()
        return int.from_bytes(plain)

    def _seal(self, scope: Sequence[Any], plain: bytes) -> bytes:
        return self._digest(b"seal", json.dumps(scope).encode() + plain)[:_SEAL_BYTES]

    def _mixed(self, seal: bytes, number: bytes) -> bytes:
        """Encrypts and decrypts: the seal is another one for each place, and so are these bytes."""
        stream = self._digest(b"number", seal)
        return bytes(a ^ b for a, b in zip(number, stream, strict=False))

    def _digest(self, purpose: bytes, text: bytes) -> bytes:
        if self._key is None:
            assert self._installation is not None
            self._key = self._installation.derived("page tokens")
        return hmac.digest(self._key, purpose + b"\n" + text, hashlib.sha256)


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def scope_of(
    namespace: str,
    phases: Iterable[str] = (),
    owner: str = "",
    framework: str = "",
    text: str = "",
) -> Sequence[Any]:
    """The list that a token belongs to: one of another namespace or with other filters is another list."""
    return namespace, sorted(phases), owner, framework, text


def _refusal() -> InvalidRequest:
    problem = Problem(
        "page_token",
        "FieldValueInvalid",
        "is no token of this list.",
        "Take it from the page before, with the same namespace and filters, or leave it out to begin again.",
    )
    return InvalidRequest([problem])
