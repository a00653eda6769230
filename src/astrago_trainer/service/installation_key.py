"""The one secret of an installation: a file that its owner alone can read, shared by servers that share a database."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path

KEY_FILE = "job-key"
_KEY_BYTES = 32


class InstallationKey:
    """Read, or made, with its first use."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._secret: bytes | None = None

    def secret(self) -> bytes:
        """Raises ValueError for a file that holds no key."""
        if self._secret is None:
            self._secret = _read_or_make(self._file)
        return self._secret

    def derived(self, purpose: str) -> bytes:
        """A key for one purpose; it says nothing about the keys for other purposes."""
        return hmac.digest(self.secret(), f"key\n{purpose}".encode(), hashlib.sha256)


def _read_or_make(path: Path) -> bytes:
    """Of several who make it at once one wins, and no reader ever sees half of it."""
    with suppress(FileNotFoundError):
        return _checked(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        with suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
    return _checked(path)


def _checked(path: Path) -> bytes:
    key = path.read_bytes()
    if len(key) < _KEY_BYTES:
        raise ValueError(
            f"{path} has {len(key)} bytes; a key has at least {_KEY_BYTES}. Remove it and start again: "
            "a new one is made, and running jobs can report no more."
        )
    return key
