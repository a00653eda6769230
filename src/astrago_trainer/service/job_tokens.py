"""Tokens with which a running job reports its progress, and can do nothing else.

A token follows from a key of this installation and the job, so none is stored: it is made anew whenever the job is
handed to an engine, and stops working when the job is gone. The key is a file that its owner alone can read; servers
that share a database share the file.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from astrago_trainer.service.identity import Identity
from astrago_trainer.service.installation_key import InstallationKey
from astrago_trainer.store.jobs import Job

PREFIX = "astrago_job_"

FindJob = Callable[[str, str], Job | None]
"""By namespace and name."""


class JobTokens:
    """Makes them and knows them again."""

    def __init__(self, key: InstallationKey) -> None:
        self._key = key

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
        return hmac.new(self._key.secret(), text.encode(), hashlib.sha256).hexdigest()
