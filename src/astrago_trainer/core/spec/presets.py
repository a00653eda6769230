"""Sizes of a node that the form offers by name (M83)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from astrago_trainer.core.spec.models import Amount, Resources


def _size(gpus: int, cpu: str, memory: str) -> Resources:
    return Resources(gpus=gpus, cpu=Amount(limit=cpu), memory=Amount(limit=memory))


PRESETS: Mapping[str, Resources] = MappingProxyType(
    {
        "small": _size(1, "4", "16Gi"),
        "medium": _size(2, "8", "32Gi"),
        "large": _size(4, "16", "64Gi"),
    }
)
