"""Small jobs for the engine on a cluster: a runtime of their own and a TrainJob, as they are rendered."""

from __future__ import annotations

from typing import Any

from tests.cluster.contract.jobs import a_node, a_runtime, a_trainjob

from astrago_trainer.core.render.configmaps import USER_LABEL
from astrago_trainer.engines.base import Effective

Json = dict[str, Any]

GROUP_RESTART: Json = {"backoffLimit": 0, "restart": "Never"}
"""For `node`: any failure is the group's, as in our runtimes."""


def effective(
    script: str = "exit 0",
    *,
    name: str = "job",
    nodes: int = 1,
    suspend: bool = False,
    restarts: int | None = None,
    node: Json | None = None,
    objects: tuple[Json, ...] = (),
    deadline: int | None = None,
) -> Effective:
    """A job whose containers run a shell script; `node` adds to its replicated job, as `a_node` takes it."""
    policy = {} if restarts is None else {"failurePolicy": {"maxRestarts": restarts}}
    group = {} if restarts is None else GROUP_RESTART
    runtime = a_runtime(
        a_node(script, **{**group, **(node or {})}), name=f"{name}-runtime", **policy
    )
    trainjob = a_trainjob(name, nodes=nodes)
    trainjob["spec"]["runtimeRef"]["name"] = f"{name}-runtime"
    return Effective({}, (*objects, runtime, trainjob), suspend, deadline)


def code(name: str = "code", text: str = "print('hello')") -> Json:
    """A user's code, as it is rendered."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {USER_LABEL: "ann"}},
        "data": {"train.py": text},
    }
