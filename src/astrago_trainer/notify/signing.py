"""Signatures of webhooks, as Standard Webhooks has them: receivers find a library that checks them in every language.

`webhook-signature` is `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`; several, separated by spaces, while
a secret is being changed. The timestamp is that of the sending: nobody else can send an old message again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets as randomness
from collections.abc import Iterable, Mapping

PREFIX = "whsec_"
MIN_KEY, MAX_KEY = 24, 64
"""Bytes: what the standard asks for."""
TOLERANCE_SECONDS = 300.0


def new_secret() -> str:
    return PREFIX + base64.b64encode(randomness.token_bytes(32)).decode()


def find_key(secret: str) -> bytes | None:
    """The key in a secret; None when it is no secret of the standard's form."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if secret.startswith(PREFIX) and MIN_KEY <= len(key) <= MAX_KEY else None


def signature_headers(
    message_id: str, body: bytes, secrets: Iterable[str], now: float
) -> dict[str, str]:
    """The headers of one sending; without secrets there is no signature."""
    timestamp = str(int(now))
    keys = [key for secret in secrets if (key := find_key(secret)) is not None]
    headers = {"webhook-id": message_id, "webhook-timestamp": timestamp}
    if keys:
        signatures = (_signature(key, message_id, timestamp, body) for key in keys)
        headers["webhook-signature"] = " ".join(signatures)
    return headers


def is_genuine(headers: Mapping[str, str], body: bytes, secret: str, now: float) -> bool:
    """What a receiver does; `headers` with names in lower case."""
    key, timestamp = find_key(secret), headers.get("webhook-timestamp", "")
    if key is None or not (timestamp.isascii() and timestamp.isdecimal() and len(timestamp) < 12):
        return False
    if abs(now - int(timestamp)) > TOLERANCE_SECONDS:
        return False
    expected = _signature(key, headers.get("webhook-id", ""), timestamp, body).encode()
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected, each.encode()) for each in given)


def _signature(key: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
