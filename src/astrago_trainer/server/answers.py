"""Small answers, all made in one way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fastapi import Request, Response

from astrago_trainer.server.problems import encoded
from astrago_trainer.service.board import Record
from astrago_trainer.service.identity import Identity


def json_answer(
    value: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(encoded(value), status, headers, "application/json")


def job_answer(record: Record, status: int = 200, *, location: bool = False) -> Response:
    headers = {"etag": record.etag}
    if location:
        job = record.job
        headers["location"] = f"/api/v1/namespaces/{job.namespace}/jobs/{job.name}"
    return Response(record.body, status, headers, "application/json")


def acting(caller: Identity, request: Request) -> Identity:
    """The caller, with the id of this request for the audit."""
    request_id: str = request.scope["request_id"]
    return replace(caller, request_id=request_id)


def said(model: type[Any], description: str = "") -> dict[str, Any]:
    """An entry of `responses` in a route."""
    return {"model": model, "description": description or (model.__doc__ or "").split("\n")[0]}
