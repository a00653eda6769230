"""Tokens with which a running job reports its progress, and can do nothing else.

A token follows from a key of this installation and the job, so none is stored: it is made anew whenever the job is
handed to an engine, and stops working when the job is gone. The key is a file that its owner alone can read; servers
that share a database share the file.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from astrago_trainer.service.identity import Identity
from astrago_trainer.store.jobs import Job

PREFIX = "astrago_job_"
KEY_FILE = "job-key"
_KEY_BYTES = 32

FindJob = Callable[[str, str], Job | None]
"""By namespace and name."""


class JobTokens:
    """Makes them and knows them again."""

    def __init__(self, key_file: Path) -> None:
        self._file = key_file
        self._key: bytes | None = None

    def token(self, job: Job) -> str:
        """The same every time. Names of jobs and namespaces have no '_', so the parts can be told apart."""
        return f"{PREFIX}{job.namespace}_{job.name}_{self._seal(job)}"

    def verify(self, token: str, find: FindJob) -> Identity | None:
        """The job whose token this is, as it is now; None for a bad one, and when that very job is gone."""
        namespace, _, rest = token.removeprefix(PREFIX).partition("_")
        name, _, seal = rest.partition("_")
        job = find(namespace, name) if token.startswith(PREFIX) else None
        if job is None or job.is_deleting:
            return None
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal(job).encode()):
            return None
        return Identity(f"{job.namespace}/{job.name}", job=(job.namespace, job.name))

    def _seal(self, job: Job) -> str:
        # The uid makes it this job's alone: a later one of the same name has another.
        text = f"progress\n{job.namespace}\n{job.name}\n{job.uid}"
        return hmac.new(self._secret(), text.encode(), hashlib.sha256).hexdigest()

    def _secret(self) -> bytes:
        if self._key is None:
            self._key = _read_or_make(self._file)
        return self._key


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
