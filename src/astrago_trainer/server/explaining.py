"""What a job's state means, why it is so, and what to do next, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from signal import SIGKILL, SIGTERM
from typing import Any

from astrago_trainer.core.lifecycle import MEANINGS, Phase
from astrago_trainer.engines.base import (
    ENVIRONMENT_FAILED,
    REQUIREMENTS_FAILED,
    TOO_LARGE,
    Shortfall,
)
from astrago_trainer.server.log_places import rank_of
from astrago_trainer.service.decide import REJECTED
from astrago_trainer.service.view import time_to_text
from astrago_trainer.store.jobs import Attempt, Event, Job, PodRow

SHOWN_EVENTS = 10
_ENDED_BY_OTHERS = (128 + SIGKILL, 128 + SIGTERM)


def explain(
    job: Job,
    pods: Sequence[PodRow],
    attempts: Sequence[Attempt],
    events: Sequence[Event],
    short: Shortfall | None = None,
) -> dict[str, Any]:
    """`short`: what the job asks for and the engine has not."""
    phase = Phase(job.phase)
    failed = [pod for pod in pods if pod.exit_code or pod.phase == "Failed"]
    causes = [_cause(job, pod) for pod in sorted(failed, key=_blame)]
    return {
        "name": job.name,
        "namespace": job.namespace,
        "phase": job.phase,
        "meaning": MEANINGS[phase],
        "summary": _summary(job, causes),
        "reason": job.reason,
        "message": job.message,
        "causes": causes,
        "attempts": [attempt_view(each) for each in attempts],
        "events": [event_view(each) for each in events[-SHOWN_EVENTS:]],
        "next_steps": _next_steps(job, phase, causes),
        "shortfall": shortfall_view(short),
    }


def shortfall_view(short: Shortfall | None) -> dict[str, Any] | None:
    if short is None:
        return None
    return {
        "asked": asdict(short.asked),
        "nodes": short.nodes,
        "has": asdict(short.has),
        "is_refused": short.is_refused,
        "message": str(short),
    }


def event_view(each: Event) -> dict[str, Any]:
    return {
        "number": each.number,
        "time": time_to_text(each.time),
        "actor": each.actor,
        "reason": each.reason,
        "message": each.message,
    }


def attempt_view(each: Attempt) -> dict[str, Any]:
    return {
        "run": each.run,
        "attempt": each.attempt,
        "phase": each.phase,
        "reason": each.reason,
        "message": each.message,
        "started_at": time_to_text(each.started_at),
        "ended_at": time_to_text(each.ended_at),
    }


def pod_view(job: Job, pod: PodRow) -> dict[str, Any]:
    return {
        "name": pod.name,
        "replicated_job": pod.replicated_job,
        "index": pod.pod_index,
        "rank": rank_of(job, pod.replicated_job, pod.pod_index),
        "run": pod.run,
        "attempt": pod.attempt,
        "phase": pod.phase,
        "restarts": pod.restarts,
        "exit_code": pod.exit_code,
        "reason": pod.reason,
        "node": pod.node,
        "address": pod.address,
    }


def _blame(pod: PodRow) -> int:
    """Who failed by itself comes first: the others are ended then, and have these codes or none."""
    if not pod.exit_code:
        return 2
    return 1 if pod.exit_code in _ENDED_BY_OTHERS and pod.reason != "OOMKilled" else 0


def _cause(job: Job, pod: PodRow) -> dict[str, Any]:
    return {
        "pod": pod.name,
        "rank": rank_of(job, pod.replicated_job, pod.pod_index),
        "exit_code": pod.exit_code,
        "reason": pod.reason,
    }


def _summary(job: Job, causes: Sequence[dict[str, Any]]) -> str:
    said = f"{job.phase}: {MEANINGS[Phase(job.phase)]}."
    if job.reason or job.message:
        said += f" {': '.join(filter(None, (job.reason, job.message)))}."
    if causes and not job.message:
        first = causes[0]
        said += f" Rank {first['rank']} ended with {first['exit_code']}."
    if job.restarts:
        said += f" Restarted {job.restarts} of at most {job.max_restarts} times."
    return said.replace("..", ".")


def _next_steps(job: Job, phase: Phase, causes: Sequence[dict[str, Any]]) -> list[str]:
    here = f"{job.name} --namespace {job.namespace}"
    if phase is Phase.FAILED and job.reason == TOO_LARGE:
        # It never started: there is nothing to read, and starting it again changes nothing.
        smaller = [f"astrago clone {here} --nodes 1"] if job.nodes > 1 else []
        return [*smaller, "ASTRAGO_LOCAL_OVERSIZE=squeeze astrago up"]
    if phase is Phase.FAILED and job.reason == ENVIRONMENT_FAILED:
        # No rank has run. The log is the installer's; a restart helps where the cause has gone, which broken
        # requirements never do.
        is_lasting = job.message.startswith(REQUIREMENTS_FAILED)
        again = [] if is_lasting else [f"astrago restart {here}"]
        return [f"astrago logs {here}", "astrago environments", *again]
    if phase is Phase.FAILED and job.reason == REJECTED:
        return [f"astrago events {here}", f"astrago clone {here}"]
    if phase is Phase.FAILED:
        rank = f" --rank {causes[0]['rank']}" if causes else ""
        return [f"astrago logs {here}{rank} --tail 50", f"astrago restart {here}"]
    if phase is Phase.SUSPENDED:
        return [f"astrago resume {here}"]
    if phase is Phase.COMPLETE:
        return [f"astrago logs {here} --tail 50", f"astrago metrics {here}"]
    if phase is Phase.DELETING:
        return []
    return [f"astrago logs {here} -f", f"astrago events {here}"]
