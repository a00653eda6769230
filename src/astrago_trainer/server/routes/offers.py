"""What there is to use: runtimes, nodes, and oneself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from astrago_trainer import __version__, catalogue
from astrago_trainer.core.platform import FRAMEWORKS, Framework, Platform
from astrago_trainer.core.spec.models import Resources
from astrago_trainer.core.spec.presets import PRESETS
from astrago_trainer.server import schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.context import Caller, Shared
from astrago_trainer.server.node_view import node_to_view
from astrago_trainer.service.errors import NotFound

router = APIRouter(prefix="/api/v1", tags=["what there is"])


@router.get("/runtimes", responses={200: said(schemas.Runtimes)}, operation_id="listRuntimes")
async def runtimes() -> Response:
    """What a job can run on."""
    return json_answer({"items": [_view(each) for each in catalogue.runtimes()]})


@router.get(
    "/runtimes/{name}",
    responses={200: said(schemas.RuntimeWithManifest)},
    operation_id="getRuntime",
)
async def runtime(name: str) -> Response:
    """One of them, with its manifest."""
    if name not in catalogue.names():
        raise NotFound(
            f"there is no runtime {name[:100]!r}; there are {', '.join(catalogue.names())}."
        )
    entry = catalogue.get_runtime(name)
    return json_answer({**_view(entry), "manifest": catalogue.load_runtime(name)})


@router.get("/nodes", responses={200: said(schemas.Nodes)}, operation_id="listNodes")
async def nodes(shared: Shared, caller: Caller) -> Response:
    """The machines that jobs run on: what they have, what is used, and by whom."""
    found = await shared.service.nodes()
    return json_answer({"items": [node_to_view(each, caller) for each in found]})


@router.get("/offers", responses={200: said(schemas.Offers)}, operation_id="listOffers")
async def offers(shared: Shared) -> Response:
    """What a form for a new job begins with: sizes by name, runtimes of the frameworks, a sample."""
    platform = shared.service.platform
    return json_answer(
        {
            "presets": [_preset(name, size) for name, size in PRESETS.items()],
            "frameworks": [_framework(platform, name) for name in FRAMEWORKS],
            "trainer_version": platform.trainer_version,
            "default_ttl_seconds": platform.default_ttl_seconds,
            "sample": catalogue.sample_job(),
        }
    )


@router.get("/whoami", responses={200: said(schemas.WhoAmI)}, operation_id="whoAmI")
async def whoami(shared: Shared, caller: Caller) -> Response:
    """Who is calling, and what this server can do."""
    settings, engine = shared.settings, shared.service.engine
    how = "tokens and oidc" if settings.oidc_issuer else settings.auth
    return json_answer(
        {
            "name": caller.name,
            "is_administrator": caller.is_administrator,
            "roles": dict(caller.roles),
            "authentication": how,
            "engine": engine.name,
            "abilities": sorted(engine.abilities),
            "version": __version__,
            "sign_up": settings.signup,
        }
    )


def _preset(name: str, size: Resources) -> dict[str, Any]:
    return {
        "name": name,
        "gpus": size.gpus,
        "cpu": size.cpu.limit,
        "memory": size.memory.limit,
    }


def _framework(platform: Platform, name: Framework) -> dict[str, Any]:
    runtime = platform.default_runtimes[name]
    known = catalogue.get_runtime(runtime).image if runtime in catalogue.names() else ""
    return {
        "name": name,
        "runtime": runtime,
        "image": platform.default_images.get(name, known),
    }


def _view(entry: catalogue.RuntimeEntry) -> dict[str, Any]:
    view = asdict(entry)
    del view["folder"], view["has_script"]
    return view
