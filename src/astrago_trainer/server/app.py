"""The composition root: opens everything a server has, and makes the application around it."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from astrago_trainer import catalogue
from astrago_trainer.catalogue import default_platform
from astrago_trainer.core.errors import AstragoError, InvalidRequest, Problem
from astrago_trainer.core.platform import Platform
from astrago_trainer.core.platform_settings import PlatformSettings
from astrago_trainer.engines.base import Engine
from astrago_trainer.logs.follow import LogHub
from astrago_trainer.platform_file import read_platform_file
from astrago_trainer.server import openapi, page, rules
from astrago_trainer.server.collecting import Collector
from astrago_trainer.server.context import PLANS, Context, OwnRights
from astrago_trainer.server.edge import App, Edge
from astrago_trainer.server.fair import FairThreads
from astrago_trainer.server.gate import Gate, Loopback, Tokens
from astrago_trainer.server.memory import give_back
from astrago_trainer.server.notifying import read_notifications
from astrago_trainer.server.problems import ApiError, answer_of
from astrago_trainer.server.routes import (
    first,
    health,
    jobs,
    logs,
    offers,
    people,
    reporting,
    streams,
)
from astrago_trainer.server.settings import ServerSettings
from astrago_trainer.server.watching import JobWatch
from astrago_trainer.service.clock import Clock
from astrago_trainer.service.identity import SYSTEM
from astrago_trainer.service.service import Service
from astrago_trainer.service.settings import Settings

ROUTERS: tuple[APIRouter, ...] = (
    health.router,
    first.router,
    jobs.router,
    logs.router,
    streams.router,
    reporting.router,
    offers.router,
    people.router,
    page.router,
)
CLIENT_GONE = 499
"""As nginx logs it; never sent."""
ADMIN_TOKEN = "admin-token"  # noqa: S105 - the name of a file
_log = logging.getLogger(__name__)


@asynccontextmanager
async def opened(
    settings: ServerSettings,
    engine: Engine | None = None,
    *,
    address: str = "",
    clock: Clock | None = None,
) -> AsyncIterator[Context]:
    """A server without its port; closed in the opposite order. Jobs go on afterwards.

    `address` is where it listens, for jobs on this machine.
    """
    _make_private(settings.data)
    async with AsyncExitStack() as stack:
        decided = _decided(settings)
        runs, platform, rights = (
            (engine, None, None)
            if engine is not None
            else await stack.enter_async_context(_engine(settings))
        )
        notifications = read_notifications(settings.notify)
        plans = FairThreads(PLANS, "plans of jobs")
        stack.callback(plans.close)  # after the service, which ends what it has begun
        service = await stack.enter_async_context(
            Service(
                Settings(
                    data=settings.data,
                    database=settings.database,
                    job_key=settings.job_key,
                    tenant_max_jobs=settings.tenant_max_jobs,
                ),
                runs,
                platform=_listening(
                    decided.applied_to(platform or _named_platform(settings)), settings, address
                ),
                clock=clock,
                targets=notifications.targets_of,
            )
        )
        if settings.has_auth:
            await _first_administrator(service, settings)
        hub = LogHub()
        stack.callback(hub.close)
        watch = JobWatch(service)
        collector = Collector(service, hub, watch, settings.data / "progress")
        collector.start()
        stack.push_async_callback(collector.close)
        deliverer = notifications.deliverer(service.outbox, service.clock.time)
        watch.add(lambda _: deliverer.wake())
        for name, work in (
            ("watch", watch.run()),
            ("notifications", deliverer.run()),
            ("memory", give_back()),
        ):
            stack.push_async_callback(_end, asyncio.create_task(work, name=name))
        context = Context(
            settings, service, _gate(settings, service), hub, watch, collector, plans, rights
        )
        context.loop_times.start()
        stack.callback(context.loop_times.stop)
        yield context


def make_app(context: Context, page_folder: Path = page.BUILT) -> App:
    """The ASGI application."""
    app = FastAPI(
        title="Astrago Trainer",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(_authorise)],
        exception_handlers={
            AstragoError: _answer,
            HTTPException: _answer_http,
            RequestValidationError: _answer_validation,
            ClientDisconnect: _answer_nobody,
            Exception: _answer,
        },
    )
    app.state.context = context
    app.state.page = page_folder
    for router in ROUTERS:
        app.include_router(router)
    document: list[Response] = []

    async def describe() -> Response:
        """This API."""
        if not document:
            content = await asyncio.to_thread(openapi.document, app)
            from astrago_trainer.server.answers import json_answer

            document.append(json_answer(content))
        return Response(document[0].body, media_type="application/json")

    app.get("/openapi.json", include_in_schema=False)(describe)
    return Edge(app, context)


async def _authorise(request: Request) -> None:
    """Every route passes here, and one without a rule is refused."""
    key = (request.method, request.scope["route"].path)
    rule = rules.RULES.get(key)
    if rule is None:
        raise RuntimeError(f"the route {key} has no rule")
    names = request.path_params
    rules.check(rule, request.scope["identity"], names.get("namespace"), names.get("name"))


async def _answer(request: Request, error: Exception) -> Response:
    request_id: str = request.scope.get("request_id", "")
    answer = answer_of(error, path=request.url.path, request_id=request_id)
    return Response(answer.body, answer.status, dict(answer.headers), answer.media_type)


async def _answer_nobody(request: Request, error: Exception) -> Response:
    """The client went away while its body was read: this is no error of the server, and no answer is read."""
    return Response(status_code=CLIENT_GONE)


async def _answer_http(request: Request, error: Exception) -> Response:
    """What the framework itself refuses."""
    assert isinstance(error, HTTPException)
    codes = {404: "not-found", 405: "method-not-allowed"}
    words = {
        404: "there is nothing at this path; /openapi.json has all that there is.",
        405: f"{request.method[:20]} is not for this path.",
    }
    status = error.status_code
    made = ApiError(
        status,
        codes.get(status, "bad-request"),
        words.get(status, "the request cannot be read."),
        headers=dict(error.headers or {}),
    )
    return await _answer(request, made)


async def _answer_validation(request: Request, error: Exception) -> Response:
    """Parameters that are not what they should be; values are not repeated."""
    assert isinstance(error, RequestValidationError)
    problems = [
        Problem(str(each["loc"][-1]), "FieldValueInvalid", f"{each['msg'].rstrip('.')}.")
        for each in error.errors()
    ]
    return await _answer(request, InvalidRequest(problems))


@asynccontextmanager
async def _engine(
    settings: ServerSettings,
) -> AsyncIterator[tuple[Engine, Platform | None, OwnRights | None]]:
    """The engine; the platform and the rights of a person where they follow from what the engine finds."""
    if settings.engine == "fake":
        from astrago_trainer.engines.fake import FakeEngine

        yield FakeEngine(data=settings.data / "fake"), None, None
        return
    if settings.engine == "kubernetes":
        from astrago_trainer.server.cluster import opened_cluster

        async with opened_cluster(settings) as found:
            yield found
        return
    from astrago_trainer.engines.local.engine import LocalEngine
    from astrago_trainer.environments import images_here

    engine = LocalEngine(
        settings.data,
        images=images_here(),
        warm=settings.warm,
        log_limits=settings.log_limits,
    )
    if settings.warm and engine.pool is not None:
        await engine.pool.warm_up(engine.images.default)
    try:
        yield engine, None, None
    finally:
        if engine.pool is not None:
            await engine.pool.close()


def _decided(settings: ServerSettings) -> PlatformSettings:
    """The administrator's file; raises InvalidRequest. A cluster may have runtimes that the catalogue does not know."""
    if settings.platform is None:
        return PlatformSettings()
    known = None if settings.engine == "kubernetes" else catalogue.names()
    return read_platform_file(settings.platform, runtimes=known)


def _named_platform(settings: ServerSettings) -> Platform:
    """For engines that speak every dialect: the one that was named, so that jobs can be taken to such a cluster."""
    if settings.trainer == "auto":
        return default_platform()
    return default_platform(settings.trainer)  # type: ignore[arg-type]


def _listening(platform: Platform, settings: ServerSettings, address: str) -> Platform:
    """The platform, with where its jobs report to. Pods of a cluster need an address that somebody has named."""
    return replace(
        platform,
        progress_server=settings.job_url or (address if settings.engine == "local" else ""),
        progress_ca_file=settings.job_ca_file,
    )


def _gate(settings: ServerSettings, service: Service) -> Gate:
    if not settings.has_auth:
        return Loopback(settings.host)
    if not settings.oidc_issuer:
        return Tokens(service.access, job_of=service.verify_job)
    from astrago_trainer.server.oidc import Issuer

    issuer = Issuer(settings.oidc_issuer, settings.oidc_audience, claim=settings.oidc_claim)
    return Tokens(service.access, issuer, service.verify_job)


def _make_private(folder: Path) -> None:
    """Code, logs and tokens of all users lie in there. A folder of somebody else is as they decided."""
    with suppress(OSError):  # what is wrong with it is reported where it is used
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid == os.geteuid():
            folder.chmod(0o700)


async def _first_administrator(service: Service, settings: ServerSettings) -> None:
    """An installation that nobody can enter is given its first key, in a file that only its owner reads."""
    access = service.access
    if access.tokens():
        return
    if access.find("admin") is None:
        await access.create_user(SYSTEM, "admin", is_administrator=True)
    token = await access.create_token(SYSTEM, "admin", "first")
    path = settings.data / ADMIN_TOKEN
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(token.secret + "\n")
    _log.warning("the first token, of the administrator 'admin', is in %s", path)


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
