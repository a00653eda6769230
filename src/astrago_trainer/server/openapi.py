"""OpenAPI: what FastAPI knows of the routes, completed by the bodies that the core checks.

The answers that every route can give (401, 429, …) are added here, so that no route has to repeat them.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from astrago_trainer import __version__
from astrago_trainer.core.seeds import FlatBody, NestedBody
from astrago_trainer.core.spec import JobSpec
from astrago_trainer.server import schemas
from astrago_trainer.server.rules import RULES, Where

Json = dict[str, Any]

BODIES: tuple[type[BaseModel], ...] = (
    JobSpec,
    NestedBody,
    FlatBody,
    schemas.SignUp,
    schemas.TokenRequest,
    schemas.TenantRequest,
    schemas.InvitationRequest,
    schemas.MemberRequest,
    schemas.BackendRequest,
    schemas.UserRequest,
    schemas.ProblemBody,
    schemas.FirstProblem,
    schemas.TrainerStatus,
)

JOB_EXAMPLE: Json = {
    "name": "hello",
    "user": "user123",
    "framework": "pytorch",
    "nodes": 2,
    "resources": {"cpu": "1", "memory": "1Gi"},
    "code": {"inline": "print('hello')\n"},
}
NESTED_EXAMPLE: Json = {
    "user_id": "user123",
    "namespace": "user-123",
    "framework": "pytorch",
    "training_code": "import torch\nprint('hi')\n",
    "config": {"num_nodes": 2, "gpu_per_node": 1, "cpu_per_node": 4, "memory_per_node": "16Gi"},
}
FLAT_EXAMPLE: Json = {
    "user_id": "user123",
    "namespace": "user-123",
    "framework": "pytorch",
    "training_code": "print('hi')",
    "image": "pytorch/pytorch:2.2.2-cuda11.8-cudnn8-runtime",
    "num_nodes": 2,
    "cpu_request": "2",
    "cpu_limit": "4",
    "memory_request": "8Gi",
    "memory_limit": "16Gi",
    "gpu_count": 1,
    "command": "python /workspace/scripts/train.py",
    "env_vars": [{"name": "EPOCHS", "value": "10"}],
    "volumes": [
        {"name": "dataset", "pvc": "user123-dataset-pvc", "mountPath": "/data", "readOnly": True}
    ],
}

_WHAT = {
    400: "No JSON that can be read.",
    401: "No token, or no good one.",
    403: "Not with this role, or from this page.",
    404: "There is no such thing for this caller.",
    408: "The body came too slowly.",
    409: "Not in this state, or the name is taken.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "Rules are broken: `errors` lists them, at most 100; or the engine cannot (`ability`).",
    429: "Too much at a time.",
    503: "Not now: try again after Retry-After seconds.",
}


def body(model: str, *examples: Json, required: bool = True) -> Json:
    """`openapi_extra` of a route whose body the core checks."""
    return {
        "requestBody": {
            "required": required,
            "content": {
                "application/json": {
                    "schema": _ref(model),
                    "examples": {
                        f"example {number}": {"value": example}
                        for number, example in enumerate(examples, 1)
                    },
                }
            },
        }
    }


def first_body() -> Json:
    extra = body("NestedBody", NESTED_EXAMPLE, FLAT_EXAMPLE)
    schema = {"anyOf": [_ref("NestedBody"), _ref("FlatBody")]}
    extra["requestBody"]["content"]["application/json"]["schema"] = schema
    return extra


def document(app: FastAPI) -> Json:
    """Made once, when first asked for."""
    made = get_openapi(
        title="Astrago Trainer",
        version=__version__,
        description="Distributed training on Kubernetes, or on one machine.",
        routes=app.routes,
    )
    components = made.setdefault("components", {}).setdefault("schemas", {})
    _, extra = models_json_schema(
        [(model, "validation") for model in BODIES], ref_template="#/components/schemas/{model}"
    )
    components.update(extra["$defs"])
    _adapt_job(components)
    for name in ("HTTPValidationError", "ValidationError"):
        components.pop(name, None)
    made["components"]["securitySchemes"] = {
        "bearer": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of this server, or OIDC.",
        }
    }
    for path, verbs in made["paths"].items():
        for verb, operation in verbs.items():
            _complete(path, verb.upper(), operation)
    return made


def _adapt_job(components: Json) -> None:
    """Over HTTP, user and namespace follow from the caller and the path; an amount may be a bare value."""
    job = components["JobSpec"]
    job["required"] = [name for name in job["required"] if name not in ("user", "namespace")]
    amount = components["Amount"]
    components["Amount"] = {
        "anyOf": [{"type": "string"}, {"type": "number"}, amount],
        "description": amount.get("description", ""),
        "examples": ["16Gi"],
    }
    job["examples"] = [JOB_EXAMPLE]
    # The same with nothing required: fields that replace those of the job that is cloned.
    components["JobChanges"] = {
        **job,
        "required": [],
        "title": "JobChanges",
        "examples": [{"nodes": 4}],
    }


def _complete(path: str, verb: str, operation: Json) -> None:
    rule = RULES[verb, path]
    if rule.where is not Where.ANYBODY:
        operation["security"] = [{"bearer": []}, {}]
    is_first = path.startswith("/api/trainjob/")
    schema = _ref("FirstProblem" if is_first else "ProblemBody")
    media = "application/json" if is_first else "application/problem+json"
    for status in _statuses(rule.where, verb, operation):
        operation["responses"][str(status)] = {
            "description": _WHAT[status],
            "content": {media: {"schema": schema}},
        }


def _statuses(where: Where, verb: str, operation: Json) -> list[int]:
    found = [403, 503]
    if where is not Where.ANYBODY:
        found += [401, 404, 422]
    if verb != "GET":
        found += [400, 409, 422]
    if "requestBody" in operation:
        found += [408, 413, 415]
    return sorted({*found, 429})


def _ref(model: str) -> Json:
    return {"$ref": f"#/components/schemas/{model}"}
