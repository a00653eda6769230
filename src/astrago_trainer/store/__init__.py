"""What is remembered: tables, durable writes in groups, reads. It knows databases and nothing of engines."""

from astrago_trainer.store.errors import (
    DataGone,
    DiskFull,
    StoreBusy,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)
from astrago_trainer.store.store import Store, database_url

__all__ = [
    "DataGone",
    "DiskFull",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoreRefused",
    "StoreUnavailable",
    "database_url",
]
