"""No framework: the number of nodes and the user's variables, nothing else."""

from __future__ import annotations

from astrago_trainer.core.merge.lists import job_env, set_env
from astrago_trainer.core.merge.model import Plan


def enforce(plan: Plan) -> None:
    """Active where the runtime names no framework that brings its own plugin."""
    others = ("torch", "mpi") if plan.version == "2.1" else ("torch", "mpi", "jax")
    if any(plan.runtime.policy(name) is not None for name in others):
        return
    set_node_count(plan)
    set_trainer_env(plan)


def set_node_count(plan: Plan) -> None:
    """`spec.trainer.numNodes` decides how many pods train."""
    trainer, pods = plan.job.trainer, plan.trainer_set()
    if trainer is not None and "numNodes" in trainer and pods is not None:
        pods.count = trainer["numNodes"]


def set_trainer_env(plan: Plan) -> None:
    """`spec.trainer.env` on the training container."""
    container = plan.trainer_container()
    if plan.job.trainer is not None and container is not None:
        set_env(container, job_env(plan.job.trainer.get("env"), "spec.trainer.env"), plan.origins)
