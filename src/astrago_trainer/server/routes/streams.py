"""Changes of jobs as they happen: one stream feeds a list and the page of a job."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from astrago_trainer.progress.points import Progress
from astrago_trainer.server import rules
from astrago_trainer.server.collecting import progress_view
from astrago_trainer.server.context import Caller, Context, Shared
from astrago_trainer.server.problems import encoded
from astrago_trainer.server.sse import event, streamed
from astrago_trainer.service.board import EVERYWHERE
from astrago_trainer.service.feed import News
from astrago_trainer.store.jobs import Job

router = APIRouter(tags=["jobs"])

_STREAM = "/api/v1/namespaces/{namespace}/stream"


@router.get(
    _STREAM,
    responses={
        200: {
            "description": "Events ready, changed, removed, progress, resync.",
            "content": {
                "text/event-stream": {
                    "schema": {"type": "string"},
                    "example": "event: ready\nid: 0\ndata: {}\n\n",
                }
            },
        }
    },
    response_class=Response,
    operation_id="streamJobs",
)
async def stream(
    namespace: str,
    request: Request,
    shared: Shared,
    caller: Caller,
    last_event_id: Annotated[str, Header(max_length=100)] = "",
) -> Response:
    """Changes of jobs from now on."""
    place = EVERYWHERE if namespace == rules.ALL_NAMESPACES else namespace
    source = _events(shared, place, is_back=bool(last_event_id))
    return streamed(request, shared, caller, source, "text/event-stream")


async def _events(shared: Context, namespace: str, *, is_back: bool) -> AsyncGenerator[bytes, None]:
    """What was missed meanwhile is not told one by one: who comes back reads the list again, which is one request."""
    progress = _NewestProgress(namespace)
    shared.collector.listeners.add(progress.hear)
    number = 0
    try:
        with shared.service.subscribe(namespace) as news:
            yield event(b"{}", name="resync" if is_back else "ready", id_="0")
            waiting = asyncio.ensure_future(anext(news))
            told = asyncio.ensure_future(progress.wait())
            try:
                while True:
                    await asyncio.wait((waiting, told), return_when=asyncio.FIRST_COMPLETED)
                    if told.done():
                        told = asyncio.ensure_future(progress.wait())
                    for data in progress.take():
                        yield event(data, name="progress")
                    if waiting.done():
                        number += 1
                        yield _told(waiting.result(), str(number))
                        waiting = asyncio.ensure_future(anext(news))
            except StopAsyncIteration:
                return
            finally:
                waiting.cancel()
                told.cancel()
    finally:
        shared.collector.listeners.discard(progress.hear)


def _told(news: News, number: str) -> bytes:
    if news.record is None:
        return event(b"{}", name="resync", id_=number)
    if news.kind == "changed":
        return event(news.record.body, name="changed", id_=number)
    job = news.record.job
    gone = {"name": job.name, "namespace": job.namespace, "uid": job.uid}
    return event(encoded(gone), name="removed", id_=number)


class _NewestProgress:
    """Of each job the newest; a slow listener misses what is out of date."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._waiting: dict[int, tuple[Job, Progress]] = {}
        self._told = asyncio.Event()

    def hear(self, job: Job, progress: Progress) -> None:
        if self._namespace in (EVERYWHERE, job.namespace):
            self._waiting[job.number] = (job, progress)
            self._told.set()

    async def wait(self) -> None:
        await self._told.wait()
        self._told.clear()

    def take(self) -> list[bytes]:
        found, self._waiting = self._waiting, {}
        return [progress_view(*each) for each in found.values()]
