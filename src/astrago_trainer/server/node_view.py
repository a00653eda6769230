"""A node as a caller may see it: everybody sees how full it is, and by name only whose jobs they may look at."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from astrago_trainer.engines.base import Amounts, Node, NodeShare
from astrago_trainer.service.identity import Identity, Role

ANOTHER = "another tenant"


def node_to_view(node: Node, caller: Identity) -> dict[str, Any]:
    view = asdict(node)
    del view["shares"], view["is_ready"]
    return {
        **view,
        "ready": node.is_ready,
        "gpus": node.capacity.gpus or None,
        "free": asdict(node.free),
        "remarks": list(node.remarks),
        "jobs": _jobs(node.shares, caller),
    }


def _jobs(shares: Iterable[NodeShare], caller: Identity) -> list[dict[str, Any]]:
    """Those of others are one entry: neither their names nor their number is anybody's business."""
    own, pods, amounts = [], 0, Amounts()
    for each in shares:
        if each.namespace and caller.may(Role.VIEWER, each.namespace):
            own.append(_job(each.namespace, each.job, each.pods, each.amounts))
        else:
            pods, amounts = pods + each.pods, amounts + each.amounts
    if pods or amounts != Amounts():
        own.append(_job(None, ANOTHER, pods, amounts))
    return own


def _job(namespace: str | None, name: str, pods: int, amounts: Amounts) -> dict[str, Any]:
    return {"namespace": namespace, "name": name, "pods": pods, **asdict(amounts)}
