"""CPU, memory and GPUs as Kubernetes wants them: limits, and requests that are always set."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from astrago_trainer.core.render.draft import Draft
from astrago_trainer.core.spec import Amount, LauncherResources, Resources


def resources_of(
    wanted: Resources | LauncherResources, field: str, base: Mapping[str, Any]
) -> Draft:
    """`{limits, requests}` for a container; `base` is what the runtime gives it.

    Setting any resource replaces the runtime's as a whole (Trainer 2.1 and 2.2), so what the
    request leaves open is taken over. Zero GPUs is no key (X8).
    """
    draft = Draft()
    for name, amount in (("cpu", wanted.cpu), ("memory", wanted.memory)):
        _put_amount(draft, name, amount, f"{field}.{name}")
    if isinstance(wanted, Resources) and wanted.gpus > 0:
        for side in ("limits", "requests"):
            draft.put((side, wanted.gpu_resource), str(wanted.gpus), f"{field}.gpus")
    return _with_base(draft, base) if draft.value else draft


def _put_amount(draft: Draft, name: str, amount: Amount, field: str) -> None:
    limit, request = amount.limit, amount.request
    if limit is not None:
        draft.put(("limits", name), limit, f"{field}.limit")
    if request is not None:
        draft.put(("requests", name), request, f"{field}.request")
    elif limit is not None:
        draft.put(("requests", name), limit, f"{field}.limit")


def _with_base(draft: Draft, base: Mapping[str, Any]) -> Draft:
    asked = {name for side in draft.value.values() for name in side}
    for side in ("limits", "requests"):
        entries = base.get(side)
        for name, value in entries.items() if isinstance(entries, dict) else ():
            if name not in asked and "gpu" not in name.lower():
                draft.put((side, name), copy.deepcopy(value))
    return draft
