"""The Python SDK: jobs on a server, from scripts and notebooks.

    from astrago_trainer.client import TrainerClient

Stands on the REST API alone: nothing of the server, the engines or Kubernetes is imported. The asynchronous client and
its HTTP library are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from astrago_trainer.client.asynchronous import AsyncTrainerClient
    from astrago_trainer.client.errors import (
        ClientError,
        Conflict,
        Forbidden,
        NotFound,
        Refused,
        Unauthenticated,
        Unavailable,
        Unexpected,
    )
    from astrago_trainer.client.models import Event, Job, LogLine, Point
    from astrago_trainer.client.sync import TrainerClient

_HOMES = {
    "TrainerClient": "sync",
    "AsyncTrainerClient": "asynchronous",
    "Event": "models",
    "Job": "models",
    "LogLine": "models",
    "Point": "models",
}

__all__ = [
    "AsyncTrainerClient",
    "ClientError",
    "Conflict",
    "Event",
    "Forbidden",
    "Job",
    "LogLine",
    "NotFound",
    "Point",
    "Refused",
    "TrainerClient",
    "Unauthenticated",
    "Unavailable",
    "Unexpected",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
