"""What there is to use: runtimes, nodes, and oneself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Protocol, runtime_checkable

from fastapi import APIRouter, Response

from astrago_trainer import __version__, catalogue
from astrago_trainer.engines.base import Ability
from astrago_trainer.server import schemas
from astrago_trainer.server.answers import json_answer, said
from astrago_trainer.server.context import Caller, Shared
from astrago_trainer.server.problems import ApiError
from astrago_trainer.service.errors import NotFound

router = APIRouter(prefix="/api/v1", tags=["what there is"])


@runtime_checkable
class ListsNodes(Protocol):
    """An engine with the ability `nodes`."""

    async def nodes(self) -> list[dict[str, Any]]: ...


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
async def nodes(shared: Shared) -> Response:
    """The nodes of the cluster."""
    engine = shared.service.engine
    if Ability.NODES not in engine.abilities or not isinstance(engine, ListsNodes):
        detail = f"the {engine.name} engine cannot list nodes."
        raise ApiError(422, "unsupported", detail, ability=Ability.NODES.value)
    return json_answer({"items": await engine.nodes()})


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


def _view(entry: catalogue.RuntimeEntry) -> dict[str, Any]:
    view = asdict(entry)
    del view["folder"], view["has_script"]
    return view
