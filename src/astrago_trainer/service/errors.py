"""What keeps the service from doing what it was asked to, cut by what the caller does next.

AstragoError
├─ InvalidRequest   (core) the request breaks rules: correct it
├─ NotFound         there is no such object, or it is another tenant's: the two look alike
├─ TooMany          a limit of the namespace is reached: end something, or try again later
├─ Conflict         the object is there and not in a state for this: look at it and decide
├─ Unsupported      the engine cannot do this, known before it is called
├─ StoreError       (store) not now, or the database needs a hand
└─ EngineError      (engines) never seen by callers: it becomes a state with a reason
"""

from __future__ import annotations

from astrago_trainer.core.errors import AstragoError


class NotFound(AstragoError):  # noqa: N818 - named for what the caller sees, as the house style has it
    """There is no such object for this caller."""


class TooMany(AstragoError):  # noqa: N818
    """A limit of the namespace is reached."""


class Conflict(AstragoError):  # noqa: N818
    """The object is not in a state that allows this."""


class Unsupported(AstragoError):  # noqa: N818
    """The engine of this installation cannot do it."""

    def __init__(self, ability: str, engine: str) -> None:
        self.ability = ability
        self.engine = engine
        super().__init__(f"the {engine} engine cannot {ability}; ask for something else.")
