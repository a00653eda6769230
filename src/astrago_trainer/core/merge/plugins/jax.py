"""JAX (2.2 and later): one process a node, found by its coordinator."""

from __future__ import annotations

from astrago_trainer.core.merge.lists import env_field, env_value, set_env
from astrago_trainer.core.merge.model import COMPLETION_INDEX, PORT, ControllerFailure, Plan
from astrago_trainer.core.merge.origins import Origin
from astrago_trainer.core.merge.plugins.plainml import set_node_count
from astrago_trainer.core.merge.plugins.torch import master_address, open_port

ORIGIN = Origin("mlPolicy.jax")


def enforce(plan: Plan) -> None:
    """Active where the runtime has `mlPolicy.jax`."""
    if plan.version == "2.1" or plan.runtime.policy("jax") is None:
        return
    pods = plan.trainer_set()
    if pods is None and plan.version == "2.2":
        raise ControllerFailure(
            "mlPolicy.jax needs a replicated job labelled as trainer, the controller crashes without it"
        )
    set_node_count(plan)
    container = plan.trainer_container()
    if plan.job.trainer is None or container is None or pods is None:
        return
    entries = [
        env_value("JAX_NUM_PROCESSES", str(pods.count)),
        env_field("JAX_PROCESS_ID", COMPLETION_INDEX),
        env_value("JAX_COORDINATOR_ADDRESS", f"{master_address(plan)}:{PORT}"),
    ]
    set_env(container, [(entry, ORIGIN) for entry in entries], plan.origins)
    open_port(plan, container, ORIGIN)
