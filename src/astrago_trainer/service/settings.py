"""What an installation decides about the service itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from astrago_trainer.store.drivers import BUSY_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Read once, by whoever starts the service."""

    data: Path
    """The data folder: the SQLite file, and what the local engine keeps."""
    database: str | None = None
    """`postgresql://…` or `sqlite:///…`; None is the file `astrago.db` in the data folder."""
    job_key: Path | None = None
    """The key of the tokens that jobs report with; None is the file `job-key` in the data folder."""
    busy_seconds: float = BUSY_SECONDS
    """How long a write waits for another process that has the SQLite file locked."""
    tenant_max_jobs: int = 0
    """Jobs of one namespace that have not ended; 0: no limit. Administrators of the installation are not limited."""
    keys_kept_seconds: float = 7 * 86400.0
    """How long a request may be repeated with its Idempotency-Key."""
