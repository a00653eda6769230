"""What is told, to whom, and the rows that make it durable.

A delivery is written in the same transaction as the change of state that it tells of, so neither is ever without the
other. Its id follows from what it tells and to whom: writing it again after a crash makes no second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Kind = Literal["complete", "failed", "restarted"]


class _Data(BaseModel):
    """Plain data, stored as JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Notice(_Data):
    """Something that happened to a job."""

    kind: Kind
    namespace: str
    job: str
    uid: str
    time: float
    """Seconds since 1970."""
    attempt: int = 0
    """The attempt that ended, or for `restarted` the one that begins; counts from 0."""
    max_restarts: int = 0
    reason: str = ""
    """A word: `BackoffLimitExceeded`."""
    message: str = ""
    """What the engine or the training said; may be anything."""
    duration_seconds: float | None = None
    url: str = ""
    """The job's page, where the server knows its own address."""


class Webhook(_Data):
    """A program that gets JSON."""

    kind: Literal["webhook"] = "webhook"
    url: str = Field(repr=False)
    """Not shown: an address may hold a token."""
    secrets: tuple[str, ...] = Field(default=(), repr=False, max_length=4)
    """Keys for signatures, the newest first; more than one while receivers change theirs."""


class Chat(_Data):
    """Slack, or what takes the same: Mattermost, Rocket.Chat, Discord (`…/slack`)."""

    kind: Literal["slack"] = "slack"
    url: str = Field(repr=False)


class Mail(_Data):
    """One address: with several, a mail that some of them refuse could be neither sent nor not sent."""

    kind: Literal["mail"] = "mail"
    address: str


Target = Annotated[Webhook | Chat | Mail, Field(discriminator="kind")]
TARGETS: TypeAdapter[Webhook | Chat | Mail] = TypeAdapter(Target)
"""Reads a target from JSON."""


class Delivery(_Data):
    """One notice for one target: a row of the outbox."""

    id: str
    notice: Notice
    target: Target
    created_at: float
    tries: int = 0
    """Times that it was claimed, this one included; tells this claim from a later one."""

    def claimed(self) -> Self:
        return self.model_copy(update={"tries": self.tries + 1})


def deliveries(
    notice: Notice, targets: Iterable[Webhook | Chat | Mail], now: float
) -> list[Delivery]:
    """What to put into the outbox; the same notice and target give the same id, whenever it is asked."""
    return [
        Delivery(id=_delivery_id(notice, target), notice=notice, target=target, created_at=now)
        for target in dict.fromkeys(targets)
    ]


def _delivery_id(notice: Notice, target: Webhook | Chat | Mail) -> str:
    where = target.address if isinstance(target, Mail) else target.url
    parts = (notice.uid, notice.kind, str(notice.attempt), target.kind, where)
    return (
        "msg_" + hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    )
