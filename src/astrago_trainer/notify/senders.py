"""What every way of sending has in common: it works, or it fails now, or it fails for good."""

from __future__ import annotations

from typing import Protocol

from astrago_trainer.core.errors import AstragoError
from astrago_trainer.notify.notices import Delivery


class Sender(Protocol):
    """Sends one delivery; returns when the receiver has taken it."""

    async def send(self, delivery: Delivery, now: float) -> None:
        """Raises SendFailed, or SendRefused when trying again is useless. Ends within its time limit."""
        ...


class SendFailed(AstragoError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """Not this time."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        """Seconds that the receiver asked for."""
        super().__init__(reason)


class SendRefused(AstragoError):  # noqa: N818
    """Never."""
