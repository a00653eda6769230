"""Names of users for people whom an issuer names by something else."""

from __future__ import annotations

import hashlib
import re

from astrago_trainer.core.names import MAX_USER_ID, check_user_id

_HASHED = re.compile(r".*-[0-9a-f]{12}")


def user_name(claim: str) -> str:
    """The user whom a claim names. No two claims give the same: what cannot begin the name of a job, or looks like
    what is made here, gets a hash."""
    if not check_user_id(claim) and _HASHED.fullmatch(claim) is None:
        return claim
    return hashed_name(claim)


def hashed_name(claim: str, issuer: str = "") -> str:
    """A name that no other claim of this issuer gives."""
    known = f"{issuer}\n{claim}" if issuer else claim
    mark = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    head = re.sub(r"[^a-z0-9]+", "-", claim.lower()).strip("-")[: MAX_USER_ID - 14].strip("-")
    head = head if head[:1].isalpha() else f"u{head}"
    return f"{head}-{mark}"
