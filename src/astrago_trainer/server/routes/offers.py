"""What there is to use: runtimes, nodes, and oneself."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Response

from astrago_trainer import __version__, catalogue
from astrago_trainer.core.errors import InvalidRequest
from astrago_trainer.core.names import tenant_namespace
from astrago_trainer.core.platform import FRAMEWORKS, Framework, Platform
from astrago_trainer.server import schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.context import Caller, Context, Shared
from astrago_trainer.server.disk import disk_of_server
from astrago_trainer.server.node_view import node_to_view
from astrago_trainer.service.errors import NotFound
from astrago_trainer.service.identity import Identity

router = APIRouter(prefix="/api/v1", tags=["what there is"])

MOST_NAMESPACES = 100
"""In an answer about oneself; `GET /tenants` has all."""


@router.get("/runtimes", responses={200: said(schemas.Runtimes)}, operation_id="listRuntimes")
async def runtimes(shared: Shared) -> Response:
    """What a job can run on."""
    return json_answer({"items": [_view(each) for each in shared.service.runtimes.entries()]})


@router.get(
    "/runtimes/{name}",
    responses={200: said(schemas.RuntimeWithManifest)},
    operation_id="getRuntime",
)
async def runtime(name: str, shared: Shared) -> Response:
    """One of them, with its manifest."""
    found = shared.service.runtimes
    try:
        return json_answer({**_view(found.entry(name)), "manifest": found(name)})
    except InvalidRequest as error:
        raise NotFound(str(error)) from None


@router.get("/nodes", responses={200: said(schemas.Nodes)}, operation_id="listNodes")
async def nodes(shared: Shared, caller: Caller) -> Response:
    """The machines that jobs run on: what they have, what is used, and by whom."""
    found = await shared.service.nodes()
    return json_answer({"items": [node_to_view(each, caller) for each in found]})


@router.get("/offers", responses={200: said(schemas.Offers)}, operation_id="listOffers")
async def offers(shared: Shared) -> Response:
    """What a form for a new job begins with: presets, runtimes and images of the frameworks, a sample."""
    platform = shared.service.platform
    images = {each.name: each.image for each in shared.service.runtimes.entries()}
    return json_answer(
        {
            "presets": [asdict(each) for each in platform.presets],
            "frameworks": [_framework(platform, images, name) for name in FRAMEWORKS],
            "trainer_version": platform.trainer_version,
            "max_nodes": platform.max_nodes,
            "max_gpus_per_node": platform.max_gpus_per_node,
            "default_ttl_seconds": platform.default_ttl_seconds,
            "default_max_restarts": platform.default_max_restarts,
            "sample": catalogue.sample_job(),
        }
    )


@router.get(
    "/namespaces/{namespace}/images",
    responses={200: said(schemas.Images)},
    operation_id="listImages",
)
async def images(namespace: str, shared: Shared) -> Response:
    """Container images that jobs of this namespace have named, the newest first."""
    return json_answer({"items": await shared.service.images(namespace)})


@router.get(
    "/namespaces/{namespace}/quota",
    responses={200: said(schemas.QuotaList)},
    operation_id="getQuota",
)
async def quota(namespace: str, shared: Shared) -> Response:
    """The ceilings of this namespace, and what is used of them now. None where nothing is rationed."""
    found = await shared.service.quota(namespace)
    return json_answer({"items": [asdict(each) for each in found]})


@router.get("/whoami", responses={200: said(schemas.WhoAmI)}, operation_id="whoAmI")
async def whoami(shared: Shared, caller: Caller) -> Response:
    """Who is calling, and what this server can do."""
    settings, engine = shared.settings, shared.service.engine
    how = "tokens and oidc" if settings.oidc_issuer else settings.auth
    usable = shared.service.access.usable_by(caller)
    disk = await disk_of_server(shared) if caller.is_administrator else None
    return json_answer(
        {
            "name": caller.name,
            "is_administrator": caller.is_administrator,
            "roles": dict(caller.roles),
            "backend": list(caller.backend),
            "namespaces": usable[:MOST_NAMESPACES],
            "default_namespace": _default_namespace(shared, caller, usable),
            "authentication": how,
            "engine": engine.name,
            "abilities": sorted(engine.abilities),
            "version": __version__,
            "sign_up": settings.signup,
            "disk": None if disk is None else disk.view(),
        }
    )


def _default_namespace(shared: Context, caller: Identity, usable: list[str]) -> str | None:
    """Where jobs go when no namespace is named: one's own, the only one, or that of the kubeconfig."""
    settings = shared.settings
    if not settings.has_auth and settings.engine != "kubernetes":
        return None  # each client has its own
    if len(caller.roles) == 1:
        return next(iter(caller.roles))
    with suppress(InvalidRequest):  # a name that clusters reserve
        if (own := tenant_namespace(caller.name)) in caller.roles:
            return own
    if shared.rights is not None and settings.namespace_rule.allows(shared.rights.namespace, {}):
        return shared.rights.namespace
    return usable[0] if len(usable) == 1 and not caller.roles else None


def _framework(platform: Platform, images: Mapping[str, str], name: Framework) -> dict[str, Any]:
    """`images`: of the runtimes that there are, by name."""
    runtime = platform.default_runtimes[name]
    return {
        "name": name,
        "runtime": runtime,
        "image": platform.default_images.get(name, images.get(runtime, "")),
        "images": platform.images.get(name, ()),
    }


def _view(entry: catalogue.RuntimeEntry) -> dict[str, Any]:
    view = asdict(entry)
    del view["folder"], view["has_script"]
    return view
