"""For those who look after the server: alive, ready, numbers."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from astrago_trainer import __version__
from astrago_trainer.server import schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.context import Shared
from astrago_trainer.server.disk import disk_of_server
from astrago_trainer.server.problems import ApiError

router = APIRouter(tags=["health"])

READY_SECONDS = 5.0
"""A database that needs longer for one small write takes no job now."""


@router.get("/healthz", responses={200: said(schemas.Health, "It answers.")}, operation_id="health")
async def health() -> Response:
    """Whether the server answers at all; it asks nobody else, so that trouble elsewhere does not restart it."""
    return json_answer({"status": "ok", "version": __version__})


@router.get(
    "/readyz", responses={200: said(schemas.Ready, "It would take a job.")}, operation_id="ready"
)
async def ready(shared: Shared) -> Response:
    """Whether a job would be accepted now: the database is written to and read."""
    if shared.closing.is_set():
        raise ApiError(503, "unavailable", "the server is stopping.", headers={"retry-after": "5"})
    try:
        async with asyncio.timeout(READY_SECONDS):
            await shared.service.check_ready()
    except TimeoutError:
        detail = f"the database needs more than {READY_SECONDS:g} s."
        raise ApiError(503, "unavailable", detail, headers={"retry-after": "5"}) from None
    state = await disk_of_server(shared)
    disk = None if state is None else state.view()
    return json_answer({"status": "ready", "jobs": len(shared.service.board), "disk": disk})


@router.get(
    "/metrics",
    responses={
        200: {
            "description": "Prometheus' text.",
            "content": {
                "text/plain; version=0.0.4; charset=utf-8": {
                    "schema": {"type": "string"},
                    "example": "astrago_streams 0\n",
                }
            },
        }
    },
    response_class=Response,
    operation_id="numbers",
)
async def numbers(shared: Shared) -> Response:
    """Numbers for Prometheus."""
    disk = await disk_of_server(shared)
    gauges = {
        "astrago_streams": ("Open streams of logs and changes.", shared.streams.total()),
        "astrago_plans_running": (
            "Jobs that are read and planned now.",
            shared.plans.slots.running,
        ),
        "astrago_plans_waiting": ("Requests that wait for that.", shared.plans.slots.waiting),
    }
    text = shared.counters.text(shared.service.board.counts(), gauges, shared.loop_times, disk)
    return Response(text, media_type="text/plain; version=0.0.4")
