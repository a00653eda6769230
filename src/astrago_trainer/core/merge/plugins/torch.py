"""PyTorch: the PET_* variables that torchrun reads, and the rendezvous port."""

from __future__ import annotations

from typing import Any

from astrago_trainer.core.merge.lists import env_field, env_value, set_env, upsert_port
from astrago_trainer.core.merge.model import COMPLETION_INDEX, NODE, PORT, ControllerFailure, Plan
from astrago_trainer.core.merge.origins import Origin
from astrago_trainer.core.merge.plugins import torchtune
from astrago_trainer.core.merge.plugins.plainml import set_node_count, set_trainer_env
from astrago_trainer.core.merge.resources import cpus, gpus, int32, resources_for_processes

Json = dict[str, Any]

RESERVED = (
    "PET_MASTER_ADDR",
    "PET_MASTER_PORT",
    "PET_NNODES",
    "PET_NODE_RANK",
    "PET_NPROC_PER_NODE",
)
ORIGIN = Origin("mlPolicy.torch")


def enforce(plan: Plan) -> None:
    """Active where the runtime has `mlPolicy.torch`."""
    policy = plan.runtime.policy("torch")
    if policy is None:
        return
    set_node_count(plan)
    processes, gpu_count = processes_per_node(plan)
    pods = plan.trainer_set()
    nodes = pods.count if pods is not None else 1
    ranks = [
        env_value("PET_NNODES", str(nodes)),
        env_value("PET_NPROC_PER_NODE", str(processes)),
        env_field("PET_NODE_RANK", COMPLETION_INDEX),
    ]
    master = [
        env_value("PET_MASTER_ADDR", master_address(plan)),
        env_value("PET_MASTER_PORT", str(PORT)),
    ]
    container = plan.trainer_container()
    if plan.job.trainer is not None and container is not None:
        set_trainer_env(plan)
        _set(plan, container, ranks)
        if torchtune.is_entrypoint(plan.job.command):
            plan.command = torchtune.lengthened_command(plan, nodes, processes, gpu_count)
        else:
            _set(plan, container, master)
        open_port(plan, container, ORIGIN)
    for target in (policy.get("envInjection") or {}).get("targets", ()):
        for name in target.get("containerNames", ()):
            _set(plan, _target(plan, target.get("jobName", ""), name), [*ranks, *master])


def processes_per_node(plan: Plan) -> tuple[int | str, int]:
    """What PET_NPROC_PER_NODE says, and the number of GPUs it was derived from."""
    wanted: int | str = (plan.runtime.policy("torch") or {}).get("numProcPerNode", "auto")
    if plan.job.trainer is not None:
        wanted = plan.job.trainer.get("numProcPerNode", wanted)
    resources = resources_for_processes(plan)
    gpu_count = gpus(resources)
    if wanted == "cpu" or (wanted == "auto" and gpu_count == 0):
        wanted = int32(max(1, cpus(resources)))
    return wanted, gpu_count


def master_address(plan: Plan) -> str:
    """The first training pod by its service name."""
    return f"{plan.job.name}-{NODE}-0-0.{plan.job.name}"


def open_port(plan: Plan, container: Json, origin: Origin) -> None:
    """The port the ranks meet on."""
    upsert_port(
        container.setdefault("ports", []), plan.origins.mark({"containerPort": PORT}, origin)
    )


def _set(plan: Plan, container: Json, entries: list[Json]) -> None:
    set_env(container, [(entry.copy(), ORIGIN) for entry in entries], plan.origins)


def _target(plan: Plan, job_name: str, container_name: str) -> Json:
    found = find_in_job(plan, job_name, container_name)
    if found is None:
        raise ControllerFailure(
            f'envInjection target podSet "{job_name}" container "{container_name}" not found in runtime template'
        )
    return found


def find_in_job(plan: Plan, job_name: str, container_name: str) -> Json | None:
    """A container of the named job, containers before init containers."""
    pods = plan.named(job_name)
    if pods is None:
        return None
    init = pods.pod.get("initContainers", ())
    return pods.container(container_name) or next(
        (c for c in init if c["name"] == container_name), None
    )
