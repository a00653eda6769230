"""Two lengths of one test: what every run takes, and what `make campaign` adds."""

from __future__ import annotations

import os
from typing import TypeVar

V = TypeVar("V")


def in_campaign(*values: V) -> tuple[V, ...]:
    """These values in a campaign, else none."""
    return values if os.environ.get("ASTRAGO_CAMPAIGN") else ()
