"""Jobs: submitted, listed, changed, looked at."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from astrago_trainer.core.errors import InvalidRequest, Problem, listed
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.retelling import FORMS, Door, retell, spec_to_body
from astrago_trainer.server import bodies, openapi, reads, rules, schemas
from astrago_trainer.server.admission import admit
from astrago_trainer.server.answers import acting, job_answer, json_answer, said
from astrago_trainer.server.checkpoint_list import list_checkpoints
from astrago_trainer.server.context import Caller, Context, Shared
from astrago_trainer.server.explaining import event_view, explain, pod_view, shortfall_view
from astrago_trainer.server.metric_view import (
    ALL,
    MEAN,
    PROGRESS,
    REMAINING,
    metrics_view,
    ranks_to_load,
    starts_of,
)
from astrago_trainer.service.board import Record
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Identity
from astrago_trainer.service.jobs import cloned
from astrago_trainer.service.submission import Runner
from astrago_trainer.store.jobs import Original

router = APIRouter(tags=["jobs"])

Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", description="Repeating a request with it is safe."),
]
Run = Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The newest when left out.")]


@router.post(
    rules.JOBS,
    status_code=201,
    responses={201: said(schemas.Job)},
    openapi_extra=openapi.body("JobSpec", openapi.JOB_EXAMPLE),
    operation_id="submitJob",
)
async def submit(
    namespace: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    cloned_from: Annotated[
        str | None,
        Query(max_length=63, description="The job of this namespace that it was made of."),
    ] = None,
    idempotency_key: Key = None,
) -> Response:
    """Accept a job."""
    data = await bodies.read_bytes(request)
    spec = await shared.plan(caller, partial(bodies.read_job, data, caller, namespace), len(data))
    await admit(shared, acting(caller, request), namespace)
    original = None if cloned_from is None else await _original(shared, namespace, cloned_from)
    plan = partial(shared.plan, caller, size=len(data))
    return await _submit(
        shared, acting(caller, request), namespace, spec, idempotency_key, original, plan
    )


async def _submit(
    shared: Context,
    actor: Identity,
    namespace: str,
    spec: JobSpec,
    key: str | None,
    original: Original | None,
    plan: Runner,
) -> Response:
    """Store the job and answer with it; `plan` runs the planning in the share of the caller."""
    record = await shared.service.submit(actor, namespace, spec, key, original, plan)
    return job_answer(record, 201, location=True)


async def _original(shared: Context, namespace: str, name: str) -> Original:
    """A job of the same namespace, which whoever submits there may read."""
    try:
        return await shared.service.original(namespace, name)
    except NotFound as error:
        problem = Problem("cloned_from", "FieldValueInvalid", str(error), "Leave it out.")
        raise InvalidRequest([problem]) from None


@router.get(rules.JOBS, responses={200: said(schemas.JobPage)}, operation_id="listJobs")
async def list_jobs(
    namespace: str,
    request: Request,
    shared: Shared,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    page_token: Annotated[str, Query(description="Of the page before.")] = "",
    phase: Annotated[str, Query(description="One, or several with commas between.")] = "",
    owner: Annotated[str, Query(max_length=200)] = "",
    framework: Annotated[str, Query(max_length=200)] = "",
    q: Annotated[str, Query(max_length=200, description="Part of the name or the owner.")] = "",
) -> Response:
    """Jobs, newest first. `-` means all namespaces, for administrators of the installation."""
    read = reads.page(shared.service, namespace, reads.parameters(request.scope["query_string"]))
    return Response(read.body, 200, {"etag": read.etag}, "application/json")


@router.post(
    rules.JOBS + ":preview",
    responses={200: said(schemas.PreviewBody)},
    openapi_extra=openapi.body("JobSpec", openapi.JOB_EXAMPLE),
    operation_id="previewJob",
)
async def preview(namespace: str, request: Request, shared: Shared, caller: Caller) -> Response:
    """What a submit would lead to, and everything that would refuse it; nothing is stored."""
    data = await bodies.read_bytes(request)

    def work() -> Response:
        spec = bodies.read_job(data, caller, namespace)
        return _preview_answer(shared, namespace, spec)

    return await shared.plan(caller, work, len(data))


def _preview_answer(shared: Context, namespace: str, spec: JobSpec) -> Response:
    found = shared.service.preview(namespace, spec)
    short = shared.service.shortfall(found.objects[0]) if found.objects else None
    return json_answer(
        {
            "version": found.version,
            "is_refused": found.is_refused,
            "objects": found.objects,
            "problems": [
                {
                    "path": each.path,
                    "code": each.code,
                    "message": each.message,
                    "remedy": each.remedy,
                    "severity": each.severity,
                }
                for each in listed(found.problems)
            ],
            "provenance": found.provenance,
            "shortfall": shortfall_view(short),
        }
    )


@router.post(
    rules.JOBS + ":retell",
    responses={200: said(schemas.Retold)},
    openapi_extra=openapi.body("JobSpec", openapi.JOB_EXAMPLE),
    operation_id="retellJob",
)
async def retell_job(
    namespace: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    form: Annotated[
        str, Query(pattern=f"^({'|'.join(FORMS)})$", description=f"{', '.join(FORMS)}.")
    ],
    server: Annotated[
        str,
        Query(
            max_length=300,
            pattern=r"^(https?://[^\s/?#]+)?$",
            description="As the reader reaches it; as this request did when left out.",
        ),
    ] = "",
) -> Response:
    """The same job for another door: a command, a script or manifests to paste. Nothing is stored."""
    data = await bodies.read_bytes(request)
    door = Door(
        server or str(request.base_url).rstrip("/"), namespace, has_auth=shared.settings.has_auth
    )

    def work() -> Response:
        spec = bodies.read_job(data, caller, namespace)
        objects = shared.service.rendered(spec).objects if form == "trainjob" else ()
        text = retell(form, spec_to_body(spec, caller=caller.name), objects, door)
        return json_answer({"form": form, "text": text})

    return await shared.plan(caller, work, len(data))


# The verbs come before the job itself: `{name}` would take `hello:suspend` for a name.
def _verb(word: str, what: str) -> None:
    async def act(
        namespace: str, name: str, request: Request, shared: Shared, caller: Caller
    ) -> Response:
        record: Record = await getattr(shared.service, word)(
            acting(caller, request), namespace, name
        )
        return job_answer(record, 202)

    router.post(
        f"{rules.JOB}:{word}",
        status_code=202,
        responses={202: said(schemas.Job, "The wish is stored.")},
        operation_id=f"{word}Job",
        summary=what,
        description=what,
    )(act)


_verb("suspend", "Stop its pods; the job stays.")
_verb("resume", "Start its pods again.")
_verb("restart", "Run the same request again, from the beginning.")


@router.post(
    rules.JOB + ":clone",
    status_code=201,
    responses={201: said(schemas.Job)},
    openapi_extra=openapi.body("JobChanges", {"nodes": 4}, required=False),
    operation_id="cloneJob",
)
async def clone(
    namespace: str,
    name: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    idempotency_key: Key = None,
) -> Response:
    """A new job of the same request; fields in the body replace those of the old one."""
    original = await shared.service.original(namespace, name)
    data = await bodies.read_bytes(request, may_be_empty=True)

    def changed() -> JobSpec:
        changes = bodies.decode(data)
        if not isinstance(changes, dict):
            raise InvalidRequest([Problem("", "FieldValueTypeInvalid", "must be an object.")])
        base = cloned(original)
        if not caller.acts_for_others_in(namespace):
            base.pop("user", None)  # it becomes the caller's
        return bodies.job_spec({**base, **changes}, caller, namespace)

    spec = await shared.plan(caller, changed, len(data))
    plan = partial(shared.plan, caller, size=len(data))
    return await _submit(
        shared, acting(caller, request), namespace, spec, idempotency_key, original, plan
    )


@router.get(rules.JOB, responses={200: said(schemas.Job)}, operation_id="getJob")
async def get(namespace: str, name: str, shared: Shared) -> Response:
    """A job."""
    read = reads.job(shared.service, namespace, name)
    return Response(read.body, 200, {"etag": read.etag}, "application/json")


@router.delete(
    rules.JOB,
    status_code=202,
    responses={202: said(schemas.Job, "It is being deleted.")},
    operation_id="deleteJob",
)
async def delete(
    namespace: str,
    name: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    uid: Annotated[str | None, Query(description="Only this very job.")] = None,
    keep_code: Annotated[bool, Query(description="The name of its code stays taken.")] = False,
) -> Response:
    """Stop the job and remove all of it; the audit stays."""
    record = await shared.service.delete(
        acting(caller, request), namespace, name, uid=uid, keep_code=keep_code
    )
    return job_answer(record, 202)


@router.get(rules.JOB + "/events", responses={200: said(schemas.Events)}, operation_id="listEvents")
async def events(
    namespace: str,
    name: str,
    shared: Shared,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="Only later ones.")] = -1,
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> Response:
    """What happened to a job, oldest first."""
    found = await shared.service.events(namespace, name, after=after, limit=limit)
    more = found[-1].number if len(found) == limit else None
    return json_answer({"items": [event_view(each) for each in found], "next_after": more})


@router.get(
    rules.JOB + "/metrics", responses={200: said(schemas.Metrics)}, operation_id="getMetrics"
)
async def metrics(
    namespace: str,
    name: str,
    shared: Shared,
    run: Run = None,
    series: Annotated[
        str, Query(max_length=1000, description="Names, several with commas; default all.")
    ] = "",
    points: Annotated[
        int | None, Query(ge=1, le=10_000, description="At most so many of each, evenly chosen.")
    ] = None,
    rank: Annotated[
        str,
        Query(
            pattern=rf"^([0-9]{{1,9}}|{MEAN}|{ALL})$",
            description="Of which rank: its number; mean, over the ranks that have a step; all, each of them.",
        ),
    ] = "0",
) -> Response:
    """The series of numbers that the training printed or reported."""
    service = shared.service
    record = service.get(namespace, name)
    await shared.collector.catch_up(record)
    run = run or record.job.run
    names = set(filter(None, series.split(",")))
    found = await service.metrics(
        namespace,
        name,
        run,
        ranks=ranks_to_load(rank),
        names=names and {*names, PROGRESS, REMAINING},
    )
    view = partial(metrics_view, run, found, rank, names=names, points=points)
    if rank != MEAN or len(found) == 1:
        return json_answer(view())
    starts = starts_of(await service.attempts(namespace, name), run)
    # In a thread: 12 series of 8 ranks with 2,000 points each take 250 ms.
    return json_answer(await asyncio.to_thread(view, starts=starts))


@router.get(rules.JOB + "/pods", responses={200: said(schemas.Pods)}, operation_id="listPods")
async def pods(namespace: str, name: str, shared: Shared) -> Response:
    """The pods of the newest attempt."""
    job = shared.service.get(namespace, name).job
    found = await shared.service.pods(namespace, name)
    return json_answer({"items": [pod_view(job, each) for each in found]})


@router.get(
    rules.JOB + "/explain", responses={200: said(schemas.Explanation)}, operation_id="explainJob"
)
async def explanation(namespace: str, name: str, shared: Shared) -> Response:
    """What its state means, why it is so, and what to do next."""
    service = shared.service
    job = service.get(namespace, name).job
    found = await asyncio.gather(
        service.pods(namespace, name),
        service.attempts(namespace, name),
        service.events(namespace, name, after=max(-1, job.events - 20)),
    )
    documents = await service.manifest(namespace, name)
    short = service.shortfall(json.loads(documents.effective)[0])
    return json_answer(explain(job, *found, short))


@router.get(
    rules.JOB + "/checkpoints",
    responses={200: said(schemas.Checkpoints)},
    operation_id="listCheckpoints",
)
async def checkpoints(namespace: str, name: str, shared: Shared) -> Response:
    """What can be resumed from, newest first."""
    documents = await shared.service.manifest(namespace, name)
    spec = json.loads(documents.spec)
    found = await asyncio.to_thread(list_checkpoints, shared.service.engine, namespace, spec)
    return json_answer(found)


@router.get(
    rules.JOB + "/manifest",
    responses={
        200: {
            **said(schemas.Manifest),
            "content": {"application/yaml": {"schema": {"type": "string"}}},
        }
    },
    operation_id="getManifest",
)
async def manifest(
    namespace: str,
    name: str,
    shared: Shared,
    caller: Caller,
    format: Annotated[str, Query(pattern="^(json|yaml)$", description="json or yaml.")] = "json",
) -> Response:
    """What was asked for, rendered, and is run."""
    found = await shared.service.manifest(namespace, name)
    if format == "yaml":
        text = await shared.plan(caller, partial(_yaml, found.objects))
        return Response(text.encode(), media_type="application/yaml")
    origins = await shared.plan(caller, partial(shared.service.origins, name, found))
    raw = ",".join(
        f'"{field}":{text}'
        for field, text in (
            ("digest", json.dumps(found.digest)),
            ("spec", found.spec),
            ("runtime", found.runtime),
            ("objects", found.objects),
            ("effective", found.effective),
            ("provenance", json.dumps(origins)),
            ("original", found.original or "null"),
        )
    )
    return Response(f"{{{raw}}}".encode(), media_type="application/json")


def _yaml(objects: str) -> str:
    import yaml

    text: str = yaml.safe_dump_all(json.loads(objects), sort_keys=False, allow_unicode=True)
    return text
