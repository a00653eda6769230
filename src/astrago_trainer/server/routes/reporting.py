"""The Trainer's status contract: what a training reports of itself."""

from __future__ import annotations

import math

from fastapi import APIRouter, Request, Response

from astrago_trainer.progress.status import read_status
from astrago_trainer.server import openapi, rules, schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.collecting import progress_points
from astrago_trainer.server.context import Caller, Shared
from astrago_trainer.store.metrics import Point

router = APIRouter(tags=["progress"])

_EXAMPLE = {
    "trainerStatus": {
        "progressPercentage": 45,
        "estimatedRemainingSeconds": 120,
        "metrics": [{"name": "loss", "value": "0.5"}],
        "lastUpdatedTime": "2026-01-31T12:00:00Z",
    }
}


@router.post(
    rules.STATUS,
    responses={200: said(schemas.TrainerStatus)},
    openapi_extra=openapi.body("TrainerStatus", _EXAMPLE),
    operation_id="reportStatus",
)
async def report(
    namespace: str, name: str, request: Request, shared: Shared, caller: Caller
) -> Response:
    """Progress and numbers, as transformers and the Kubeflow SDK send them."""
    job = shared.service.get(namespace, name).job
    now = shared.service.clock.time()
    found = read_status(await request.body(), attempt=job.attempt, received=now)
    if found is None:
        return json_answer({})
    points = [
        (
            each.series,
            Point(each.step if each.step is not None else int(each.time), each.time, each.value),
        )
        for each in found.points
        if each.value is not None and math.isfinite(each.value)
    ]
    shared.service.record_metric(namespace, name, [*points, *progress_points(found.progress)])
    shared.collector.tell(job, found.progress)
    return json_answer(found.accepted)
