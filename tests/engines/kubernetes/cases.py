"""Objects of a job as the API server has them, with only what a test is about."""

from __future__ import annotations

from typing import Any

import msgspec

from astrago_trainer.engines.kubernetes.objects import ClusterEvent, Job, JobSet, Pod, TrainJob
from astrago_trainer.engines.kubernetes.phase import JobObjects

Json = dict[str, Any]

BEGIN = "2026-01-01T00:00:00Z"
NOW = 1767225605.0
"""Five seconds after BEGIN."""


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02d}:{second % 60:02d}Z"


def trainjob(*conditions: Json, **changes: Any) -> TrainJob:
    meta = {
        "name": "job",
        "namespace": "team",
        "uid": "tj",
        "resourceVersion": "1",
        "creationTimestamp": BEGIN,
        "labels": {"trainer.astrago.io/job-uid": "u"},
        **changes.pop("metadata", {}),
    }
    body = {"metadata": meta, "spec": changes, "status": {"conditions": list(conditions)}}
    return msgspec.convert(body, TrainJob)


def condition(kind: str, reason: str = "", message: str = "", status: str = "True") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(9),
    }


def job_set(
    *conditions: Json,
    nodes: int = 1,
    restarts: int = 0,
    allowed: int | None = None,
    jobs: Any = None,
) -> JobSet:
    replicated = jobs or [
        {"name": "node", "replicas": 1, "template": {"spec": {"parallelism": nodes}}}
    ]
    policy = {} if allowed is None else {"failurePolicy": {"maxRestarts": allowed}}
    body = {
        "metadata": {"name": "job", "namespace": "team", "uid": "js", "creationTimestamp": BEGIN},
        "spec": {"replicatedJobs": replicated, **policy},
        "status": {"restarts": restarts, "conditions": list(conditions)},
    }
    return msgspec.convert(body, JobSet)


def job(*conditions: Json) -> Job:
    body = {
        "metadata": {"name": "job-node-0", "namespace": "team"},
        "status": {"conditions": list(conditions)},
    }
    return msgspec.convert(body, Job)


def pod(
    rank: int = 0,
    state: Json | None = None,
    *,
    phase: str = "Running",
    attempt: int = 0,
    group: str = "node",
    container: str = "node",
    init: list[Json] | None = None,
    last: Json | None = None,
    restarts: int = 0,
    status: Json | None = None,
    node: str = "n1",
    policy: str = "Never",
    is_going: bool = False,
    limits: Json | None = None,
) -> Pod:
    """A pod whose container is in this state: running unless told."""
    meta = {
        "name": f"job-{group}-0-{rank}-abcde-{attempt}",
        "namespace": "team",
        "uid": f"{group}-{rank}-{attempt}",
        "creationTimestamp": BEGIN,
        "labels": {
            "jobset.sigs.k8s.io/jobset-name": "job",
            "jobset.sigs.k8s.io/replicatedjob-name": group,
            "jobset.sigs.k8s.io/job-index": "0",
            "jobset.sigs.k8s.io/restart-attempt": str(attempt),
            "batch.kubernetes.io/job-completion-index": str(rank),
        },
        **({"deletionTimestamp": at(35), "deletionGracePeriodSeconds": 30} if is_going else {}),
    }
    own = {
        "name": container,
        "restartCount": restarts,
        "state": {"running": {"startedAt": at(1)}} if state is None else state,
        "lastState": last or {},
    }
    spec = {
        "nodeName": node,
        "restartPolicy": policy,
        "containers": [
            {"name": container, "image": "img:1", "resources": {"limits": limits or {}}}
        ],
        "initContainers": [{"name": each["name"], "image": "git:1"} for each in init or ()],
    }
    body = {
        "metadata": meta,
        "spec": spec,
        "status": {
            "phase": phase,
            "containerStatuses": [own],
            "initContainerStatuses": init or [],
            **(status or {}),
        },
    }
    return msgspec.convert(body, Pod)


def waiting(reason: str, message: str = "") -> Json:
    return {"waiting": {"reason": reason, "message": message}}


def ended(code: int, second: int = 5, reason: str = "", message: str = "") -> Json:
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason or ("Completed" if code == 0 else "Error"),
            "message": message,
            "startedAt": at(1),
            "finishedAt": at(second),
        }
    }


def event(
    reason: str,
    message: str,
    *,
    kind: str = "TrainJob",
    name: str = "job",
    uid: str = "",
    second: int = 2,
) -> ClusterEvent:
    body = {
        "metadata": {"name": f"e{reason}{second}", "namespace": "team", "uid": f"{reason}{second}"},
        "involvedObject": {"kind": kind, "name": name, "uid": uid},
        "reason": reason,
        "message": message,
        "lastTimestamp": at(second),
    }
    return msgspec.convert(body, ClusterEvent)


def objects(
    job_: TrainJob | None = None,
    set_: JobSet | None = None,
    *pods: Pod,
    jobs: tuple[Job, ...] | None = None,
    events: tuple[ClusterEvent, ...] = (),
) -> JobObjects:
    made = (job(),) if jobs is None and set_ is not None else jobs or ()
    return JobObjects(
        job_ or trainjob(),
        set_,
        {each.metadata.name: each for each in made},
        {each.metadata.name: each for each in pods},
        {each.metadata.uid: each for each in events},
    )
