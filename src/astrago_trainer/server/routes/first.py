"""The first API: M21 to M28 and M51 to M57, to the letter."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from astrago_trainer.core.seeds import read_seed_body
from astrago_trainer.engines.base import IsLimited
from astrago_trainer.logs.reader import LogFile
from astrago_trainer.server import bodies, openapi, reads, rules, schemas
from astrago_trainer.server.admission import admit
from astrago_trainer.server.answers import acting, json_answer, said
from astrago_trainer.server.context import Caller, Shared
from astrago_trainer.server.log_answers import as_json_text
from astrago_trainer.server.log_places import TRAINING_CONTAINER, find_places
from astrago_trainer.service.effective import handle_of
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Role
from astrago_trainer.service.submission import too_large

router = APIRouter(prefix="/api/trainjob", tags=["first API"])

Namespace = Annotated[str, Query(description="The user's namespace.", examples=["user-123"])]
HANDED_SECONDS = 10.0
Key = Annotated[str | None, Header(alias="Idempotency-Key")]


@router.post(
    "/create",
    responses={200: said(schemas.FirstCreated)},
    openapi_extra=openapi.first_body(),
    operation_id="firstCreate",
)
async def create(
    request: Request, shared: Shared, caller: Caller, idempotency_key: Key = None
) -> Response:
    """Accept a job: either body, the answer of both.

    As pydantic does by default, values of another type are converted where that is safe, and unknown fields are
    ignored. `warnings` names each, and what a job larger than the machine does not get; it is left out where there is
    none.
    """
    data = await bodies.read_bytes(request)
    spec, warnings = await shared.plan(
        caller, lambda: read_seed_body(bodies.decode(data)), len(data)
    )
    rules.enter(Role.MEMBER, caller, spec.namespace)
    bodies.check_owner(spec.user, caller, spec.namespace, "user_id")
    await admit(shared, acting(caller, request), spec.namespace)
    record = await shared.service.submit(
        acting(caller, request),
        spec.namespace,
        spec,
        idempotency_key,
        run=partial(shared.plan, caller, size=len(data)),
    )
    # Its objects exist when the answer is sent (M22); a cluster that does not answer gets them later.
    with suppress(TimeoutError):
        async with asyncio.timeout(HANDED_SECONDS):
            await shared.service.until_handed(record.job.namespace, record.job.name)
    reported = [
        {"path": each.path, "code": each.code, "message": each.message} for each in warnings
    ]
    if isinstance(shared.service.engine, IsLimited):
        with suppress(NotFound):  # deleted meanwhile
            documents = await shared.service.manifest(record.job.namespace, record.job.name)
            short = shared.service.shortfall(json.loads(documents.effective)[0])
            if short is not None:
                found = too_large(short)
                reported.append({"path": found.path, "code": found.code, "message": found.message})
    return json_answer(
        {
            "status": "success",
            "trainjob_name": record.job.name,
            "namespace": record.job.namespace,
            "created_at": reads.seconds_to_text(record.job.created_at),
            **({"warnings": reported} if reported else {}),
        }
    )


@router.get(
    "/{trainjob_name}/status",
    responses={200: said(schemas.FirstStatus)},
    operation_id="firstStatus",
)
async def status(
    trainjob_name: str, shared: Shared, caller: Caller, namespace: Namespace
) -> Response:
    """How a job is."""
    found = reads.first_status(shared.service, caller, trainjob_name, {"namespace": namespace})
    return Response(found.body, 200, {"etag": found.etag}, "application/json")


@router.get(
    "/{trainjob_name}/logs", responses={200: said(schemas.FirstLogs)}, operation_id="firstLogs"
)
async def logs(
    trainjob_name: str,
    shared: Shared,
    caller: Caller,
    namespace: Namespace,
    worker: Annotated[int, Query(ge=0, le=10**8, description="Index of the worker.")] = 0,
    tail: Annotated[int | None, Query(ge=1, le=10**6, description="The last lines alone.")] = None,
) -> Response:
    """The log of one worker, of the newest attempt."""
    job = reads.first_job(shared.service, caller, Role.VIEWER, trainjob_name, namespace).job
    folder = shared.service.engine.logs(handle_of(job))
    (place,) = find_places(job, folder, job.attempt, (worker,), TRAINING_CONTAINER)
    log = LogFile(place.path)
    stop = await asyncio.to_thread(lambda: log.size)
    start = 0 if tail is None else await asyncio.to_thread(log.tail_offset, tail)
    head: dict[str, object] = {
        "trainjob_name": job.name,
        "namespace": job.namespace,
        "worker": worker,
    }
    return StreamingResponse(as_json_text(head, place, start, stop), media_type="application/json")


@router.delete(
    "/{trainjob_name}", responses={200: said(schemas.FirstDeleted)}, operation_id="firstDelete"
)
async def delete(
    trainjob_name: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    namespace: Namespace,
    keep_code: Annotated[bool, Query(description="The user's ConfigMap stays.")] = False,
) -> Response:
    """Delete a job, and its code when no other job uses it; the platform's ConfigMap stays."""
    record = reads.first_job(shared.service, caller, Role.MEMBER, trainjob_name, namespace)
    await shared.service.delete(
        acting(caller, request), namespace, record.job.name, keep_code=keep_code
    )
    return json_answer(
        {"status": "success", "trainjob_name": trainjob_name, "namespace": namespace}
    )
