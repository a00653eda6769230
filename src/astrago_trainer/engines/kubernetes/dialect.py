"""Which release of the Trainer a cluster has, read off its schema: releases differ under one API version.

Asked as OpenAPI, which every account may read; the CRD itself is for administrators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from astrago_trainer.engines.base import EngineRejected
from astrago_trainer.engines.kubernetes.client import Client, NotFound

_SCHEMA = "/openapi/v3/apis/trainer.kubeflow.org/v1alpha1"


async def find_dialect(client: Client) -> str:
    """`2.1`, `2.2` or `2.3`; a later one counts as the last that is known."""
    try:
        document = msgspec.json.decode(await client.read(_SCHEMA))
    except NotFound as error:
        raise EngineRejected(
            "the cluster has no Kubeflow Trainer (trainer.kubeflow.org/v1alpha1): install it, "
            "2.1 or later, and start again"
        ) from error
    return schema_to_dialect(document)


def schema_to_dialect(document: Mapping[str, Any]) -> str:
    schemas = document.get("components", {}).get("schemas", {})
    spec: Mapping[str, Any] = next(
        (
            schema.get("properties", {}).get("spec", {}).get("properties", {})
            for name, schema in schemas.items()
            if name.endswith(".TrainJob")
        ),
        {},
    )
    if "podTemplateOverrides" in spec:
        return "2.1"
    if "runtimePatches" not in spec:
        raise EngineRejected(
            "the cluster's TrainJob has neither podTemplateOverrides nor runtimePatches: "
            "Kubeflow Trainer 2.1, 2.2 or 2.3 is needed"
        )
    # 2.3 added this to what a patch may say about a pod; no other field tells it from 2.2.
    return "2.3" if "terminationGracePeriodSeconds" in str(spec["runtimePatches"]) else "2.2"
