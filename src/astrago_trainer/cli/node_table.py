"""Nodes as rows: the columns of M113, then what is free and who has the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from astrago_trainer.cli.terminal import Terminal
from astrago_trainer.cli.words import columns

Json = Mapping[str, Any]

_NONE = "<none>"
_OS_IMAGE = 3
"""The column that gives way."""


def node_table(nodes: Sequence[Json], terminal: Terminal, *, is_wide: bool) -> list[str]:
    if not nodes:
        return ["No nodes."]
    heading = ["NAME", "INSTANCE-TYPE", "ARCH", "OS-IMAGE", "GPU", "CAPACITY", "FREE"]
    rows = [_row(each) for each in nodes]
    if is_wide:
        heading += ["ZONE", "STATE", "JOBS"]
        rows = [[*row, *_more(each)] for row, each in zip(rows, nodes, strict=True)]
    return columns([heading, *rows], terminal, give=_OS_IMAGE)


def _row(node: Json) -> list[str]:
    return [
        node["name"],
        node["instance_type"] or _NONE,
        node["architecture"] or _NONE,
        node["os_image"] or _NONE,
        _NONE if node["gpus"] is None else str(node["gpus"]),
        node["capacity_type"] or _NONE,
        _free(node) if node["ready"] else "not ready",
    ]


def _free(node: Json) -> str:
    free, all_ = node["free"], node["capacity"]
    parts = [
        f"{free['cpu']:.4g}/{all_['cpu']:.4g} CPU",
        f"{free['memory'] / 2**30:.4g}/{all_['memory'] / 2**30:.4g} GiB",
    ]
    return " ".join([*parts, *([f"{free['gpus']}/{all_['gpus']} GPU"] if all_["gpus"] else [])])


def _more(node: Json) -> list[str]:
    state = ["ready" if node["ready"] else "not ready", *node["remarks"]]
    return [node["zone"] or _NONE, ", ".join(state), ", ".join(map(_job, node["jobs"])) or "-"]


def _job(job: Json) -> str:
    name = job["name"] if job["namespace"] is None else f"{job['namespace']}/{job['name']}"
    return f"{name} ({job['pods']})"
