"""Jobs and tokens as every door shows them; a job is one JSON text, the same in a list, in a stream and alone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json

from astrago_trainer.core.lifecycle import MEANINGS, Phase, seed_state
from astrago_trainer.service.identity import Identity
from astrago_trainer.store.access import Invitation, Tenant, Token, User
from astrago_trainer.store.jobs import Job


def job_to_json(job: Job) -> bytes:
    return to_json(job_to_view(job))


def job_to_view(job: Job) -> dict[str, Any]:
    phase = Phase(job.phase)
    outcome = None if job.outcome is None else Phase(job.outcome)
    return {
        "name": job.name,
        "namespace": job.namespace,
        "uid": job.uid,
        "owner": job.owner,
        "framework": job.framework,
        "runtime": job.runtime,
        "nodes": job.nodes,
        "gpus_per_node": job.gpus,
        "engine": job.engine,
        "phase": job.phase,
        "meaning": MEANINGS[phase],
        "state": seed_state(phase, outcome=outcome),
        "reason": job.reason,
        "message": job.message,
        "run": job.run,
        "attempt": job.attempt,
        "restarts": job.restarts,
        "max_restarts": job.max_restarts,
        "is_suspended": job.is_suspended,
        "is_deleting": job.is_deleting,
        "is_expired": job.is_reaped,
        "ttl_seconds": job.ttl_seconds,
        "created_at": time_to_text(job.created_at),
        "started_at": time_to_text(job.started_at),
        "finished_at": time_to_text(job.finished_at),
        "cloned_from": _original(job),
        "version": job.version,
    }


def _original(job: Job) -> dict[str, Any] | None:
    if job.cloned_from_uid is None:
        return None
    return {"name": job.cloned_from, "uid": job.cloned_from_uid}


def tenant_to_view(tenant: Tenant) -> dict[str, Any]:
    return {
        "namespace": tenant.namespace,
        "title": tenant.title,
        "created_at": time_to_text(tenant.created_at),
        "is_adopted": tenant.is_adopted,
    }


def invitation_to_view(invitation: Invitation) -> dict[str, Any]:
    return {
        "namespace": invitation.namespace,
        "user": invitation.user,
        "role": invitation.role,
        "invited_by": invitation.invited_by,
        "created_at": time_to_text(invitation.created_at),
        "expires_at": time_to_text(invitation.expires_at),
    }


def token_to_view(token: Token) -> dict[str, Any]:
    """Without its secret, which nobody has."""
    return {
        "id": token.id,
        "user": token.user,
        "label": token.label,
        "created_at": time_to_text(token.created_at),
        "expires_at": time_to_text(token.expires_at),
        "revoked_at": time_to_text(token.revoked_at),
    }


def user_to_view(user: User, identity: Identity) -> dict[str, Any]:
    return {
        "name": user.name,
        "is_administrator": user.is_administrator,
        "is_disabled": user.is_disabled,
        "issuer": user.issuer,
        "roles": dict(identity.roles),
        "backend": list(identity.backend),
    }


def time_to_text(seconds: float | None) -> str | None:
    """RFC 3339 in UTC, to the millisecond."""
    if seconds is None:
        return None
    return f"{datetime.fromtimestamp(seconds, UTC).isoformat(timespec='milliseconds')[:-6]}Z"
