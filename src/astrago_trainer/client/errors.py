"""What a call can end with instead of an answer, cut by what the caller does next.

ClientError
├─ Refused          the request breaks rules: `problems` has all of them; nothing was done
├─ Unauthenticated  no token, or one that opens nothing: `astrago login`
├─ Forbidden        you are known, and may not do this
├─ NotFound         there is no such object, or it is another tenant's
├─ Conflict         the object is there and not in a state for this: look at it and decide
├─ Unavailable      no server, no answer, or not now: try again later
└─ Unexpected       an answer that is none of ours: wrong address, or a bug of the server
"""

from __future__ import annotations

from collections.abc import Iterable

from astrago_trainer.core.errors import AstragoError, InvalidRequest, Problem


class ClientError(AstragoError):
    """Base of everything the client raises; `request_id` finds it in the server's log."""

    request_id: str = ""


class Refused(ClientError, InvalidRequest):  # noqa: N818 - named for what the caller sees, as the house style has it
    """The request breaks rules; carries every problem, not only the first."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        InvalidRequest.__init__(self, problems)


class Unauthenticated(ClientError):  # noqa: N818
    """The server does not know who asks."""


class Forbidden(ClientError):  # noqa: N818
    """The server knows who asks, and this one may not."""


class NotFound(ClientError):  # noqa: N818
    """There is no such object for this caller."""


class Conflict(ClientError):  # noqa: N818
    """The object is not in a state that allows this."""


class Unavailable(ClientError):  # noqa: N818
    """Not now; the same call may succeed later."""


class Unexpected(ClientError):  # noqa: N818
    """The answer cannot be understood."""
